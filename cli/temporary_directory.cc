#include "temporary_directory.h"

#include <stdlib.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "weightcast/base/log.h"
#include "weightcast/base/size.h"

namespace weightcast {

Result<std::unique_ptr<TemporaryDirectory>> TemporaryDirectory::create(uint64_t needed_size) {
  std::error_code failure;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(failure);
  if (failure) {
    return Error(
        Code::kBadInput,
        fmt::format("no directory for temporary files, TMPDIR names one: {}", failure.message()));
  }
  const std::filesystem::space_info space = std::filesystem::space(parent, failure);
  if (!failure && space.available < needed_size) {
    return Error(
        Code::kNoResource,
        fmt::format("{}: {} are needed and {} are free; TMPDIR may name another directory",
                    parent.string(), format_size(needed_size), format_size(space.available)));
  }
  std::string path = (parent / "weightcast-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) {
    return Error(Code::kBadInput, system_error(errno, fmt::format("create {}", path)).message());
  }
  return std::unique_ptr<TemporaryDirectory>(new TemporaryDirectory(path));
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code failure;
  std::filesystem::remove_all(path_, failure);
  if (failure) {
    log_message(LogLevel::kWarn, fmt::format("remove {}: {}", path_.string(), failure.message()));
  }
}

}  // namespace weightcast
