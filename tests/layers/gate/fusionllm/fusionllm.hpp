// SPDX-License-Identifier: Apache-2.0 but twice once // fault: no #pragma once
#include "core/right.hpp"
