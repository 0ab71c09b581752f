// A file that nobody sees until it is whole.
// One owner, one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "weightcast/base/fd.h"
#include "weightcast/base/result.h"

namespace weightcast {

/// A new file for `path()`, in the same directory. It has no name where the file system can do that
/// (O_TMPFILE), so that even SIGKILL leaves nothing behind; elsewhere it has a hidden name of its
/// own, which the destructor removes.
class TemporaryFile {
 public:
  enum class Kind { kUnnamed, kNamed };

  /// Without a name if possible. Errors: `kBadInput` when the directory can not be written;
  /// `kNoResource`.
  static Result<TemporaryFile> create(std::filesystem::path path);
  /// With the kind given. Errors: as above; `kUnsupported` where the file system or the process
  /// (without /proc) can not give an unnamed file its name later.
  static Result<TemporaryFile> create(std::filesystem::path path, Kind kind);

  ~TemporaryFile() { remove(); }
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&& other) noexcept;
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Makes the file `size` bytes long and reserves them on the disk. Requires: `size` > 0. Errors:
  /// `kNoResource`, naming path, size, and the space left or the limit to raise.
  Status reserve(uint64_t size);
  /// Writes all of `bytes` at `offset`. Errors: `kNoResource`, `kInternal`.
  Status write(uint64_t offset, std::span<const std::byte> bytes);
  /// Puts the file at `path()`, atomically replacing what is there, and closes it; nothing can be
  /// written afterwards. Errors leave what was there.
  Status commit();

 private:
  TemporaryFile(std::filesystem::path path, std::filesystem::path temporary, Fd fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}
  Status link_unnamed();
  void remove();

  std::filesystem::path path_;
  std::filesystem::path temporary_;  ///< the file's own name, or empty while it has none
  Fd fd_;
};

}  // namespace weightcast
