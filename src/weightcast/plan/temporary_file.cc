#include "weightcast/plan/temporary_file.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "weightcast/base/check.h"
#include "weightcast/base/log.h"
#include "weightcast/base/random.h"
#include "weightcast/base/size.h"

namespace weightcast {
namespace {

constexpr mode_t kMode = 0666;  // less what the umask takes
// Below what one system call moves (2 GiB - 4 KiB).
constexpr size_t kMaxWriteSize = 1u << 30;

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// A hidden name beside `path`. It is short whatever `path` is, so that the file system takes it.
std::filesystem::path hidden_name(const std::filesystem::path& path) {
  return directory_of(path) / (".weightcast-" + random_hex(8) + ".tmp");
}

std::string proc_path(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

// A file that can not be made: the caller named a bad place, unless a resource ran out.
Error open_error(int number, const std::filesystem::path& path) {
  Error error = system_error(number, path.native() + ": create a file beside it");
  if (error.code() == Code::kNoResource) return error;
  return Error(Code::kBadInput, error.message());
}

Status check_size_limit(const std::filesystem::path& path, uint64_t size) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  if (size <= limit.rlim_cur) return {};
  // Writing past the limit would end the process (SIGXFSZ).
  return Error(Code::kNoResource,
               fmt::format("{}: needs {}, but the file size limit is {}: raise it (ulimit -f)",
                           path.native(), format_size(size), format_size(limit.rlim_cur)));
}

Error no_space(const std::filesystem::path& path, uint64_t size, uint64_t free) {
  return Error(Code::kNoResource,
               fmt::format("{}: needs {} ({} bytes), but its disk has {} free", path.native(),
                           format_size(size), size, format_size(free)));
}

}  // namespace

Result<TemporaryFile> TemporaryFile::create(std::filesystem::path path) {
  Result<TemporaryFile> unnamed = create(path, Kind::kUnnamed);
  if (unnamed || unnamed.error().code() != Code::kUnsupported) return unnamed;
  return create(std::move(path), Kind::kNamed);
}

Result<TemporaryFile> TemporaryFile::create(std::filesystem::path path, Kind kind) {
  if (kind == Kind::kNamed) {
    std::filesystem::path temporary = hidden_name(path);
    Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
    if (!fd.valid()) return open_error(errno, path);
    return TemporaryFile(std::move(path), std::move(temporary), std::move(fd));
  }
  Fd fd(::open(directory_of(path).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, kMode));
  // EISDIR and ENOENT come from kernels that do not know the flag; ENOENT also means that there is
  // no such directory, which the attempt with a name will then say.
  if (!fd.valid() && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
    return Error(Code::kUnsupported, path.native() + ": no unnamed files here");
  }
  if (!fd.valid()) return open_error(errno, path);
  if (::access(proc_path(fd.get()).c_str(), F_OK) != 0) {
    return Error(Code::kUnsupported, "/proc is not mounted");
  }
  return TemporaryFile(std::move(path), {}, std::move(fd));
}

TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::move(other.fd_)) {}

TemporaryFile& TemporaryFile::operator=(TemporaryFile&& other) noexcept {
  if (this != &other) {
    remove();
    path_ = std::exchange(other.path_, {});
    temporary_ = std::exchange(other.temporary_, {});
    fd_ = std::move(other.fd_);
  }
  return *this;
}

void TemporaryFile::remove() {
  fd_.reset();
  if (temporary_.empty()) return;
  if (::unlink(temporary_.c_str()) != 0) {
    log_message(LogLevel::kWarn, system_error(errno, temporary_.native() + ": unlink").message());
  }
  temporary_.clear();
}

Status TemporaryFile::reserve(uint64_t size) {
  WEIGHTCAST_CHECK(fd_.valid() && size > 0);
  if (size > uint64_t{INT64_MAX}) {
    return Error(Code::kNoResource, fmt::format("{}: no file has {} bytes", path_.native(), size));
  }
  WEIGHTCAST_TRY(check_size_limit(path_, size));
  struct statvfs disk {};
  const bool disk_known = ::fstatvfs(fd_.get(), &disk) == 0 && disk.f_blocks > 0;
  const uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
  // Asked first, so that a hopeless request does not fill the disk for a moment. `f_bfree` counts
  // what only root may use too; fallocate knows who we are.
  if (disk_known && size / disk.f_frsize > disk.f_bfree) return no_space(path_, size, free);
  const auto length = static_cast<off_t>(size);
  int result = 0;
  do {
    result = ::fallocate(fd_.get(), 0, 0, length);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return {};
  if (errno == ENOSPC || errno == EDQUOT) return no_space(path_, size, free);
  if (errno != EOPNOTSUPP && errno != ENOSYS) {
    return system_error(errno, fmt::format("{}: reserve {}", path_.native(), format_size(size)));
  }
  // Not posix_fallocate: where the file system can not reserve, it writes to every block.
  if (disk_known && free < size) return no_space(path_, size, free);
  if (::ftruncate(fd_.get(), length) == 0) return {};
  return system_error(errno, fmt::format("{}: resize to {}", path_.native(), format_size(size)));
}

Status TemporaryFile::write(uint64_t offset, std::span<const std::byte> bytes) {
  WEIGHTCAST_CHECK(fd_.valid());
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd_.get(), bytes.data(), std::min(bytes.size(), kMaxWriteSize),
                                     static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      return system_error(
          written < 0 ? errno : EIO,
          fmt::format("{}: write {} bytes at offset {}", path_.native(), bytes.size(), offset));
    }
    offset += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Status TemporaryFile::link_unnamed() {
  const std::string source = proc_path(fd_.get());
  // linkat(2) can not replace a file. Only where there is one does the new file get a name of its
  // own, for the moment until it is renamed.
  if (::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0) {
    return {};
  }
  if (errno != EEXIST) return system_error(errno, path_.native() + ": link");
  std::filesystem::path temporary = hidden_name(path_);
  if (::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    return system_error(errno, temporary.native() + ": link");
  }
  temporary_ = std::move(temporary);
  return {};
}

Status TemporaryFile::commit() {
  WEIGHTCAST_CHECK(fd_.valid());
  if (temporary_.empty()) WEIGHTCAST_TRY(link_unnamed());
  // Before the rename, since network file systems report here what they could not store.
  if (::close(fd_.release()) != 0 && errno != EINTR) {
    return system_error(errno, path_.native() + ": close");
  }
  if (temporary_.empty()) return {};
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return system_error(errno, path_.native() + ": rename into place");
  }
  temporary_.clear();
  return {};
}

}  // namespace weightcast
