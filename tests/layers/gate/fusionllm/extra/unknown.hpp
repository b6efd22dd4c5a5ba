// SPDX-License-Identifier: Apache-2.0 // fault: the layer extra is not one of core, graph, ops, models, device, estimate, compress, schedule, simulate, transport, runtime, cluster, trainer, run
#pragma once
