// SPDX-License-Identifier: Apache-2.0
// XXH3 compiled in, so that no library has to be linked for it. Everything that hashes includes this and not xxhash.h.
#pragma once

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>
