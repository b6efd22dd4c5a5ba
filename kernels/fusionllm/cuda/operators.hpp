// SPDX-License-Identifier: Apache-2.0
// All operators that have kernels of our own, and the updates of parameters. Element-wise ones are chain.hpp's.
#pragma once

#include "attention.hpp"
#include "average_pool.hpp"
#include "batch_norm.hpp"
#include "convolution.hpp"
#include "copy.hpp"
#include "cross_entropy.hpp"
#include "embedding.hpp"
#include "layer_norm.hpp"
#include "max_pool.hpp"
#include "mean.hpp"
#include "mean_squared_error.hpp"
#include "positions.hpp"
#include "rearrange.hpp"
#include "rms_norm.hpp"
#include "rotary.hpp"
#include "softmax.hpp"
#include "squares.hpp"
#include "updates.hpp"
#include "vectors.hpp"
