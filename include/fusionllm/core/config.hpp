// SPDX-License-Identifier: Apache-2.0
// The only header that defines macros. FL_HD marks what also runs on a GPU; everything else is plain C++20.
#pragma once

#ifdef __CUDACC__
#define FL_HD __host__ __device__
#else
#define FL_HD
#endif
