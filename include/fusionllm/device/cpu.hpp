// SPDX-License-Identifier: Apache-2.0
// `fl::cpu`: oneDNN's matrix products and own vector loops (AVX-512, AVX2 or plain, chosen when a context is made),
// over a team of threads. The bits of its results depend on the instruction set, not on the number of threads.
#pragma once

#include "cpu/attention.hpp"
#include "cpu/batch_norm.hpp"
#include "cpu/chain.hpp"
#include "cpu/convolution.hpp"
#include "cpu/device.hpp"
#include "cpu/embedding.hpp"
#include "cpu/layer_norm.hpp"
#include "cpu/linear.hpp"
#include "cpu/loss.hpp"
#include "cpu/pooling.hpp"
#include "cpu/rearrange.hpp"
#include "cpu/rms_norm.hpp"
#include "cpu/rotary.hpp"
#include "cpu/softmax.hpp"
#include "cpu/updates.hpp"
