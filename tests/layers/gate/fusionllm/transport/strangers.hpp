// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <asio/ip/tcp.hpp>                       // fault: Asio belongs to transport/asio*
#include <cereal/archives/portable_binary.hpp>   // fault: cereal belongs to cluster/
#include <cuda_runtime.h>                        // fault: CUDA belongs to kernels/ and device/cuda
