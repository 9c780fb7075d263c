// SPDX-License-Identifier: Apache-2.0
//
// A convolution that cannot read its input in place.
#ifndef OTF_PASSES_REWRITE_COPYWINDOWS_H
#define OTF_PASSES_REWRITE_COPYWINDOWS_H

#include "dialects/OTF/OTF.h"

namespace otf {

/// Gives a linear with a window a tensor of all windows to read, a row each, and takes the window away.
void copyWindows(LinearOp linear);

} // namespace otf

#endif // OTF_PASSES_REWRITE_COPYWINDOWS_H
