// SPDX-License-Identifier: Apache-2.0
// All operators: with it, a file that only declares a model has what it needs.
#pragma once

#include "../graph/autodiff.hpp"
#include "../graph/cost.hpp"
#include "../graph/fingerprint.hpp"
#include "../graph/graph.hpp"
#include "../graph/live_range.hpp"
#include "../graph/slice.hpp"
#include "add.hpp"
#include "attention.hpp"
#include "dropout.hpp"
#include "embedding.hpp"
#include "gelu.hpp"
#include "layer_norm.hpp"
#include "linear.hpp"
#include "loss.hpp"
#include "multiply.hpp"
#include "relu.hpp"
