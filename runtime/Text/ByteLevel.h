// SPDX-License-Identifier: Apache-2.0
//
// The byte-level alphabet of GPT-2: every byte has a printable character that
// stands for it, so that a vocabulary of strings can cover all byte sequences.
// Printable Latin-1 bytes stand for themselves; the others are numbered from
// U+0100 in byte order (space becomes U+0120).
#ifndef OTF_RUNTIME_TEXT_BYTELEVEL_H
#define OTF_RUNTIME_TEXT_BYTELEVEL_H

#include <string>
#include <string_view>

namespace otf::text {

/// Writes each byte as its character.
std::string toByteLevel(std::string_view bytes);

/// The bytes a token stands for. A token with a character outside the alphabet
/// stands for its own UTF-8 bytes, as in the reference decoder.
std::string fromByteLevel(std::string_view token);

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_BYTELEVEL_H
