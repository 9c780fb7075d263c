// SPDX-License-Identifier: Apache-2.0
//
// The bitcode modules as bytes. The build passes the folder they are in.
        .section .rodata
        .balign 16

#define MODULE(name, file)           \
        .globl  otf_bitcode_##name;  \
        .globl  otf_bitcode_##name##_end; \
otf_bitcode_##name:                  \
        .incbin file;                \
otf_bitcode_##name##_end:            \
        .byte 0;                     \
        .balign 16

MODULE(avx2, "avx2.bc")
MODULE(avx512vnni, "avx512vnni.bc")

        .section .note.GNU-stack,"",@progbits
