// SPDX-License-Identifier: Apache-2.0
// All of fusionllm for a program's main file. A file that only declares a model includes <fusionllm/ops/ops.hpp>.
#pragma once

#include "run/run.hpp"
#include "trainer/trainer.hpp"
#include "transport/asio_tcp.hpp"
