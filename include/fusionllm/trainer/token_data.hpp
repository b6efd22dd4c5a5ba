// SPDX-License-Identifier: Apache-2.0
// Next-token samples from a token file, by the same rules as those from text (text_data.hpp).
#pragma once

#include "text_data.hpp"
#include "token_file.hpp"

namespace fusionllm::inline v0 {

using token_data = next_token_data<mapped_token_file>;

}  // namespace fusionllm::inline v0
