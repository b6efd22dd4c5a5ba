// SPDX-License-Identifier: Apache-2.0
// A move-only function object that keeps small captures inside itself, so that posting work allocates nothing.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace fusionllm::inline v0 {

template <class Signature>
class callback;

/// Captures of up to 56 bytes are stored in place, larger ones on the heap. Calling an empty one is undefined.
template <class Result, class... Arguments>
class callback<Result(Arguments...)> {
 public:
  callback() = default;
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, callback> && std::is_invocable_r_v<Result, F&, Arguments...>)
  callback(F&& f) {
    using T = std::decay_t<F>;
    if constexpr (sizeof(T) <= size && alignof(T) <= alignof(std::max_align_t) &&
                  std::is_nothrow_move_constructible_v<T>) {
      ::new (static_cast<void*>(storage_)) T(std::forward<F>(f));
      operations_ = &inside<T>;
    } else {
      ::new (static_cast<void*>(storage_)) T*(new T(std::forward<F>(f)));
      operations_ = &outside<T>;
    }
  }
  callback(callback&& other) noexcept : operations_(other.operations_) {
    if (operations_) operations_->move(storage_, other.storage_);
    other.operations_ = nullptr;
  }
  callback& operator=(callback&& other) noexcept {
    if (this != &other) {
      reset();
      operations_ = other.operations_;
      if (operations_) operations_->move(storage_, other.storage_);
      other.operations_ = nullptr;
    }
    return *this;
  }
  ~callback() { reset(); }

  void reset() {
    if (operations_) operations_->destroy(storage_);
    operations_ = nullptr;
  }
  explicit operator bool() const { return operations_ != nullptr; }
  Result operator()(Arguments... arguments) {
    return operations_->call(storage_, std::forward<Arguments>(arguments)...);
  }

 private:
  static constexpr std::size_t size = 56;
  struct table {
    Result (*call)(void*, Arguments&&...);
    void (*move)(void*, void*) noexcept;
    void (*destroy)(void*) noexcept;
  };
  template <class T>
  static constexpr table inside{
      [](void* p, Arguments&&... a) -> Result { return (*static_cast<T*>(p))(std::forward<Arguments>(a)...); },
      [](void* to, void* from) noexcept {
        ::new (to) T(std::move(*static_cast<T*>(from)));
        static_cast<T*>(from)->~T();
      },
      [](void* p) noexcept { static_cast<T*>(p)->~T(); }};
  template <class T>
  static constexpr table outside{
      [](void* p, Arguments&&... a) -> Result { return (**static_cast<T**>(p))(std::forward<Arguments>(a)...); },
      [](void* to, void* from) noexcept { ::new (to) T*(*static_cast<T**>(from)); },
      [](void* p) noexcept { delete *static_cast<T**>(p); }};

  alignas(std::max_align_t) std::byte storage_[size];
  const table* operations_ = nullptr;
};

}  // namespace fusionllm::inline v0
