// SPDX-License-Identifier: Apache-2.0
//
// The device library (device/*.cuh) as one text, in the order it compiles in. A plan's CUDA source
// is this text and the generated entries: one translation unit that needs no file.
#ifndef OTF_CODEGEN_CUDA_DEVICELIBRARY_H
#define OTF_CODEGEN_CUDA_DEVICELIBRARY_H

/// Zero-terminated. Written by EmbedText.cmake when OTF is built.
extern const char otfCudaDeviceLibrary[];

#endif // OTF_CODEGEN_CUDA_DEVICELIBRARY_H
