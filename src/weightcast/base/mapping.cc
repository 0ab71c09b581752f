#include "weightcast/base/mapping.h"

#include <cerrno>
#include <cstdint>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>

#include "weightcast/base/size.h"

// Linux 5.14; older headers lack them and older kernels answer EINVAL.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace weightcast {

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    reset();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

Result<Mapping> Mapping::map(const Fd& fd, size_t size, Access access) {
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* data = ::mmap(nullptr, size, protection, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return system_error(errno, fmt::format("mmap {}", format_size(size)));
  return Mapping(static_cast<std::byte*>(data), size);
}

Result<Mapping> Mapping::anonymous(size_t size) {
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return system_error(errno, fmt::format("mmap {}", format_size(size)));
  ::madvise(data, size, MADV_HUGEPAGE);  // a wish, not a need
  return Mapping(static_cast<std::byte*>(data), size);
}

void Mapping::reset() {
  if (data_ != nullptr) ::munmap(data_, size_);
  data_ = nullptr;
  size_ = 0;
}

Result<Fd> create_memfd(const std::string& name, size_t size) {
  // Past RLIMIT_FSIZE the kernel sends SIGXFSZ, which kills; so ask first.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      size > limit.rlim_cur) {
    return Error(Code::kNoResource,
                 fmt::format("shared memory of {} is over the file size limit of {}: raise "
                             "`ulimit -f` or choose a smaller bucket",
                             format_size(size), format_size(limit.rlim_cur)));
  }
  Fd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return system_error(errno, "memfd_create");
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return system_error(errno, fmt::format("shared memory of {}", format_size(size)));
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) != 0) {
    return system_error(errno, "seal shared memory");
  }
  return fd;
}

Status seal_future_writes(const Fd& fd) {
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) {
    return system_error(errno, "seal shared memory against writing");
  }
  return {};
}

Status populate(std::span<std::byte> range, Access access) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const size_t into_page = reinterpret_cast<uintptr_t>(range.data()) % page;
  std::byte* const begin = range.data() - into_page;
  const size_t size = range.size() + into_page;
  const int advice = access == Access::kRead ? MADV_POPULATE_READ : MADV_POPULATE_WRITE;
  while (::madvise(begin, size, advice) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno == EINVAL) return {};  // an older kernel: the pages come with the first access
    return system_error(
        errno == EFAULT ? ENOMEM : errno,
        fmt::format("make {} of shared memory resident", format_size(range.size())));
  }
  return {};
}

}  // namespace weightcast
