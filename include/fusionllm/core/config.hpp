// SPDX-License-Identifier: Apache-2.0
// The only header that defines macros. FL_HD marks what also runs on a GPU; everything else is plain C++20.
#pragma once

#ifdef __CUDACC__
#define FL_HD __host__ __device__
#else
#define FL_HD
#endif

// What a build has beside a C++ compiler; fusionllm_add_trainer defines them for a whole program.
#ifndef FUSIONLLM_WITH_CUDA
#define FUSIONLLM_WITH_CUDA 0  // a .cu file defines the models' device tables
#endif
#ifndef FUSIONLLM_WITH_CUBLASLT
#define FUSIONLLM_WITH_CUBLASLT 0
#endif
