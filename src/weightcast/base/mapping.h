// Memory mapped from a memfd or from nowhere.
// One owner; the bytes may be read and written by any thread and, if shared, any process.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "weightcast/base/fd.h"
#include "weightcast/base/result.h"

namespace weightcast {

enum class Access { kRead, kReadWrite };

/// Owns one mapping and unmaps it.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping() { reset(); }
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  /// Maps the first `size` bytes of `fd`, shared. The descriptor may be closed afterwards.
  static Result<Mapping> map(const Fd& fd, size_t size, Access access);
  /// Private zeroed memory, with huge pages where the kernel has them.
  static Result<Mapping> anonymous(size_t size);

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] size_t size() const { return size_; }
  void reset();

 private:
  Mapping(std::byte* data, size_t size) : data_(data), size_(size) {}
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// A memfd of `size` bytes that can neither grow nor shrink. Its pages are not yet allocated.
/// Errors: `kNoResource` with the limit to raise.
Result<Fd> create_memfd(const std::string& name, size_t size);
/// From now on nobody can map `fd` writable; mappings that exist keep their access.
Status seal_future_writes(const Fd& fd);

/// Makes `range` of a shared mapping resident, so that no later access faults. `access` says
/// whether the pages will be written. Errors: `kNoResource` when memory runs out.
Status populate(std::span<std::byte> range, Access access);

}  // namespace weightcast
