// SPDX-License-Identifier: Apache-2.0
//
// Rewrites a pattern from Oniguruma's Ruby syntax to PCRE2's.
#ifndef OTF_RUNTIME_TEXT_REGEXDIALECT_H
#define OTF_RUNTIME_TEXT_REGEXDIALECT_H

#include "runtime/Text/Expected.h"

#include <string>
#include <string_view>

namespace otf::text {

/// What \w accepts, as the inside of a character class.
inline constexpr std::string_view wordClass =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";

/// What \s accepts (Unicode White_Space), as the inside of a character class.
/// PCRE2's own \s also takes U+180E.
inline constexpr std::string_view spaceClass =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029})"
    R"(\x{202f}\x{205f}\x{3000})";

Expected<std::string> translateToPcre2(std::string_view pattern);

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_REGEXDIALECT_H
