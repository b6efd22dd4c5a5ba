// SPDX-License-Identifier: Apache-2.0
// Megabytes of text per second that the tokenizer encodes and decodes, on one thread, with GPT-2's vocabulary (the
// folder of $FUSIONLLM_GPT2, or gpt2 in the cache folder): all of Shakespeare, and texts that are hard for merges. For two
// of them there is a bar, 5 MB/s; the program ends with 1 where one of them that was measured is below.
#include <benchmark/benchmark.h>
#include <fusionllm/trainer/bpe.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace fl = fusionllm;

namespace {

std::string cached(const char* variable, const char* name) {
  if (const char* path = std::getenv(variable)) return path;
  if (const char* cache = std::getenv("XDG_CACHE_HOME")) return std::string(cache) + "/fusionllm/" + name;
  const char* home = std::getenv("HOME");
  return std::string(home ? home : "/root") + "/.cache/fusionllm/" + name;
}

const fl::bpe_tokenizer& tokenizer() {
  static const fl::bpe_tokenizer t(cached("FUSIONLLM_GPT2", "gpt2"));
  return t;
}

void encode(benchmark::State& state, const std::string& text) {
  std::size_t tokens = 0;
  for (auto _ : state) tokens = tokenizer().encode(text).size();
  state.SetBytesProcessed(std::int64_t(text.size()) * std::int64_t(state.iterations()));
  state.counters["tokens"] = double(tokens);
}

void decode(benchmark::State& state, const std::string& text) {
  const auto ids = tokenizer().encode(text);
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer().decode(ids));
  state.SetBytesProcessed(std::int64_t(text.size()) * std::int64_t(state.iterations()));
}

std::string draw(std::size_t n, std::string_view letters) {
  std::string text;
  for (fl::u64 x = 1; text.size() < n; x = x * 6364136223846793005u + 1442695040888963407u)
    text += letters[(x >> 33) % letters.size()];
  return text;
}

constexpr double least_megabytes_per_second = 5;
constexpr const char* with_bar[] = {"encode/shakespeare", "encode/one letter"};

/// Prints as usual, and keeps the best of each benchmark's repetitions.
class speeds : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& r : runs)
      if (const auto at = r.counters.find("bytes_per_second"); r.run_type == Run::RT_Iteration && at != r.counters.end())
        best_[r.run_name.function_name] = std::max(best_[r.run_name.function_name], double(at->second) / 1e6);
    ConsoleReporter::ReportRuns(runs);
  }
  /// False where a bar is missed.
  bool report() const {
    bool all = true;
    for (const char* name : with_bar) {
      const auto at = best_.find(name);
      if (at == best_.end()) continue;
      const bool pass = at->second >= least_megabytes_per_second;
      std::printf("%s: %.1f MB/s, at least %.0f: %s\n", name, at->second, least_megabytes_per_second, pass ? "pass" : "FAIL");
      all = all && pass;
    }
    return all;
  }

 private:
  std::map<std::string, double> best_;
};

void load(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(fl::bpe_tokenizer(cached("FUSIONLLM_GPT2", "gpt2")));
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  constexpr std::size_t mib = 1 << 20;
  try {
    const fl::mapped_file plays(cached("FUSIONLLM_TEXT", "shakespeare.txt"), fl::errc::data, "text");
    const std::pair<const char*, std::string> texts[] = {
        {"shakespeare", std::string(plays.text())},
        {"one letter", std::string(mib, 'a')},
        {"one space", std::string(mib, ' ')},
        {"letters", draw(mib, "abcdefghijklmnopqrstuvwxyz")},
        {"digits", draw(mib, "0123456789")},
        {"bytes", draw(mib, std::string_view("\x80\xC3\xA9\xE4\xB8\xAD\xFF \n", 9))},
    };
    for (const auto& [name, text] : texts)
      benchmark::RegisterBenchmark(("encode/" + std::string(name)).c_str(), encode, text)
          ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark("decode/shakespeare", decode, texts[0].second)->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark("load", load)->Unit(benchmark::kMillisecond);
    speeds s;
    benchmark::RunSpecifiedBenchmarks(&s);
    return s.report() ? 0 : 1;
  } catch (const fl::error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return int(e.code());
  }
}
