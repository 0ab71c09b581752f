#include <limits>
#include <string>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "weightcast/base/check.h"
#include "weightcast/plan/safetensors.h"
#include "weightcast/plan/text.h"

namespace weightcast {
namespace {

constexpr uint64_t kMaxFileSize = std::numeric_limits<int64_t>::max();

// What a safetensors file can not hold.
Status check_writable(std::span<const TensorMeta> metas) {
  std::unordered_set<std::string_view> names;
  uint64_t end = 0;
  for (const TensorMeta& meta : metas) {
    WEIGHTCAST_TRY(check(meta));
    if (meta.name == "__metadata__") {
      return Error(Code::kBadInput,
                   "no tensor may have the name __metadata__ in a safetensors file");
    }
    if (!names.insert(meta.name).second) {
      return Error(Code::kBadInput, fmt::format("tensor {} comes twice", printable(meta.name)));
    }
    end += byte_size(meta);
    if (end > kMaxFileSize - kMaxTensorSize) {
      return Error(Code::kBadInput,
                   fmt::format("tensor {}: ends past what a file can hold", printable(meta.name)));
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::create(
    const std::filesystem::path& path, std::span<const TensorMeta> metas) {
  if (const Status status = check_writable(metas); !status) {
    return status.error().context(path.native());
  }
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) {
    return Error(Code::kBadInput, path.native() + ": a directory is in the file's place");
  }
  const std::string header = make_safetensors_header(metas);
  if (header.size() - 8 > kMaxSafetensorsHeaderSize) {
    return Error(Code::kBadInput,
                 fmt::format("{}: its header takes {} bytes, more than the {} that readers accept",
                             path.native(), header.size() - 8, kMaxSafetensorsHeaderSize));
  }
  std::vector<uint64_t> offsets = {header.size()};
  for (const TensorMeta& meta : metas) offsets.push_back(offsets.back() + byte_size(meta));
  if (path.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) {
      return Error(Code::kBadInput, fmt::format("{}: create directory: {}",
                                                path.parent_path().native(), error.message()));
    }
  }
  WEIGHTCAST_ASSIGN(TemporaryFile file, TemporaryFile::create(path));
  WEIGHTCAST_TRY(file.reserve(offsets.back()));
  WEIGHTCAST_TRY(file.write(0, std::as_bytes(std::span(header))));
  return std::make_unique<SafetensorsWriter>(
      SafetensorsWriter(std::move(file), std::move(offsets)));
}

Status SafetensorsWriter::write(uint64_t tensor, uint64_t offset,
                                std::span<const std::byte> bytes) {
  WEIGHTCAST_CHECK(tensor + 1 < offsets_.size());
  const uint64_t size = offsets_[tensor + 1] - offsets_[tensor];
  WEIGHTCAST_CHECK(offset <= size && bytes.size() <= size - offset);
  return file_.write(offsets_[tensor] + offset, bytes);
}

Status SafetensorsWriter::commit() { return file_.commit(); }

}  // namespace weightcast
