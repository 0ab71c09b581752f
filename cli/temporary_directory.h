// A directory that is gone when its owner is.
// One owner.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "weightcast/base/result.h"

namespace weightcast {

class TemporaryDirectory {
 public:
  /// Makes one in TMPDIR, else in /tmp, for nobody but this user. Errors: `kNoResource` when less
  /// than `needed_size` bytes are free there; `kBadInput` when it can not be made.
  static Result<std::unique_ptr<TemporaryDirectory>> create(uint64_t needed_size);
  /// Removes it with everything in it.
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace weightcast
