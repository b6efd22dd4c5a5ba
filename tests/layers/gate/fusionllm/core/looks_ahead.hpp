// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "../graph/includes_umbrella.hpp"  // fault: core includes graph, which comes after it
#include "absent.hpp"                      // fault: includes fusionllm/core/absent.hpp, which does not exist
#include <iostream>                        // fault: <iostream> is too heavy for a model declaration
