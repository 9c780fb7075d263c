// SPDX-License-Identifier: Apache-2.0
//
// A short text for who gives none: of --calibrate=default, and of otf-exec compare.
#ifndef OTF_RUNTIME_TEXT_DEFAULTTEXT_H
#define OTF_RUNTIME_TEXT_DEFAULTTEXT_H

#include <string_view>

namespace otf::text {

/// UTF-8, about a thousand tokens.
std::string_view defaultText();

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_DEFAULTTEXT_H
