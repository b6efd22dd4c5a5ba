// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/nearest.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("edit distances") {
  CHECK(fl::edit_distance("", "") == 0);
  CHECK(fl::edit_distance("", "abc") == 3);
  CHECK(fl::edit_distance("kitten", "sitting") == 3);
  CHECK(fl::edit_distance("setps", "steps") == 1);
  CHECK(fl::edit_distance("abc", "abc") == 0);
}

TEST_CASE("the nearest is offered when it is near") {
  CHECK(fl::nearest_text("larning_rate", "steps|learning_rate|batch", '|') == ": did you mean 'learning_rate'?");
  CHECK(fl::nearest_text("btach", "steps|learning_rate|batch", '|') == ": did you mean 'batch'?");
  CHECK(fl::nearest_text("colour", "steps|learning_rate|batch", '|').empty());
  CHECK(fl::nearest_text("x", "", '|').empty());
  CHECK(fl::nearest_text(std::string(100000, 'a'), "steps|batch", '|').empty());
}
