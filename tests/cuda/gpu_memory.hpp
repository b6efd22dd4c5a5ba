// SPDX-License-Identifier: Apache-2.0
// A GPU for tests, and its memory as operator_run.hpp and node_run.hpp want it.
#pragma once

#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <fusionllm/core/half.hpp>
#include <fusionllm/device/cuda.hpp>

#include "catch.hpp"

namespace seam {

namespace fl = fusionllm;

/// The first GPU; without one the test is skipped, by name.
inline fl::cuda_context& gpu_of(const fl::device_side& side, fl::product_precision products = fl::product_precision::f32) {
  if (side.count() == 0) fusionllm_test::skip_program("no GPU");
  static std::unique_ptr<fl::cuda_context> made[2];
  auto& gpu = made[std::size_t(products)];
  if (!gpu) {
    gpu = side.open(0, products);
    std::printf("on %s\n", std::string(gpu->description()).c_str());
  }
  return *gpu;
}

/// Activations are of type T. Parameters and their gradients are fp32.
template <class T = float>
class gpu_memory {
 public:
  explicit gpu_memory(fl::cuda_context& g) : gpu_(g) {}
  ~gpu_memory() {
    for (void* p : kept_) gpu_.release(p);
  }
  gpu_memory(const gpu_memory&) = delete;
  gpu_memory& operator=(const gpu_memory&) = delete;

  void* put_bytes(const void* from, fl::u64 bytes) {
    void* p = kept_.emplace_back(gpu_.allocate(bytes));
    gpu_.upload(p, from, bytes);
    return p;
  }
  template <class E>
  void* put_as(const std::vector<double>& x) {
    std::vector<E> v;
    for (double d : x) v.push_back(E(float(d)));
    return put_bytes(v.data(), v.size() * sizeof(E));
  }
  void* put(const std::vector<double>& x) { return put_as<T>(x); }
  void* put(const std::vector<float>& x) { return put_bytes(x.data(), x.size() * sizeof(float)); }
  void* put_integers(const std::vector<std::int32_t>& x) { return put_bytes(x.data(), x.size() * sizeof(x[0])); }
  void* room(fl::u64 bytes) {
    const std::vector<float> nans((bytes + 3) / 4, std::numeric_limits<float>::quiet_NaN());
    return put_bytes(nans.data(), bytes);
  }
  template <class E>
  std::vector<E> read(const void* p, std::size_t n) const {
    std::vector<E> x(n);
    gpu_.read(x.data(), p, n * sizeof(E));
    return x;
  }
  std::vector<double> get(const void* p, std::size_t n) const {
    std::vector<double> r;
    for (T v : read<T>(p, n)) r.push_back(double(float(v)));
    return r;
  }
  bool intact() const { return true; }  // compute-sanitizer looks after that

 private:
  fl::cuda_context& gpu_;
  std::vector<void*> kept_;
};

}  // namespace seam
