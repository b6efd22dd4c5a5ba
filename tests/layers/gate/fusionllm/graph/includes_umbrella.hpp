// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "../fusionllm.hpp"        // fault: a layer includes the umbrella
#include <fusionllm/core/right.hpp>  // fault: an include of the library by <>, expected a relative path
