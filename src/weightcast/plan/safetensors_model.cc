#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weightcast/base/check.h"
#include "weightcast/plan/safetensors.h"
#include "weightcast/plan/text.h"

namespace weightcast {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModelName = "model.safetensors";
constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr uint64_t kMaxIndexSize = kMaxSafetensorsHeaderSize;
constexpr uint64_t kLengthSize = 8;
constexpr uint64_t kMaxPayloadSize = uint64_t{1} << 62;
// Below what one system call moves (2 GiB - 4 KiB).
constexpr size_t kMaxReadSize = 1u << 30;
constexpr size_t kMaxNamed = 10;

Error bad_input(std::string message) { return Error(Code::kBadInput, std::move(message)); }

struct OpenFile {
  Fd fd;
  uint64_t size = 0;
};

Result<OpenFile> open_file(const fs::path& path) {
  // Not blocking, since opening a FIFO would otherwise wait for a writer.
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid() && (errno == EMFILE || errno == ENFILE)) {
    return Error(Code::kNoResource,
                 fmt::format("{}: no descriptor is left to open it: raise the limit (ulimit -n)",
                             path.native()));
  }
  if (!fd.valid()) {
    return bad_input(path.native() + ": open: " + std::generic_category().message(errno));
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return system_error(errno, path.native() + ": fstat");
  if (!S_ISREG(status.st_mode)) return bad_input(path.native() + ": not a regular file");
  return OpenFile{std::move(fd), static_cast<uint64_t>(status.st_size)};
}

// Reads all of `destination`. Errors have no path yet.
Status read_at(const Fd& fd, uint64_t offset, std::span<std::byte> destination) {
  while (!destination.empty()) {
    const ssize_t count =
        ::pread(fd.get(), destination.data(), std::min(destination.size(), kMaxReadSize),
                static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return bad_input(
          fmt::format("read at offset {}: {}", offset, std::generic_category().message(errno)));
    }
    if (count == 0) {
      return bad_input(fmt::format("the file ends at offset {}, {} bytes short (did it shrink?)",
                                   offset, destination.size()));
    }
    offset += static_cast<uint64_t>(count);
    destination = destination.subspan(static_cast<size_t>(count));
  }
  return {};
}

Result<std::string> read_text(const OpenFile& file, uint64_t offset, uint64_t size) {
  std::string text(size, '\0');
  WEIGHTCAST_TRY(read_at(file.fd, offset, std::as_writable_bytes(std::span(text))));
  return text;
}

// The JSON after the 8-byte length.
Result<std::string> read_header(const OpenFile& file) {
  if (file.size < kLengthSize) {
    return bad_input(fmt::format("truncated: {} bytes, too few for a safetensors file", file.size));
  }
  std::array<std::byte, kLengthSize> word{};
  WEIGHTCAST_TRY(read_at(file.fd, 0, word));
  uint64_t length = 0;
  for (size_t i = 0; i < word.size(); ++i) length |= std::to_integer<uint64_t>(word[i]) << (8 * i);
  if (length > kMaxSafetensorsHeaderSize) {
    return bad_input(fmt::format("header length {} at offset 0 is above the {} that are allowed",
                                 length, kMaxSafetensorsHeaderSize));
  }
  if (length > file.size - kLengthSize) {
    return bad_input(
        fmt::format("header length {} at offset 0 is larger than the file, which has "
                    "{} bytes",
                    length, file.size));
  }
  return read_text(file, kLengthSize, length);
}

// The first ten of `names`, and how many follow.
std::string list(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMaxNamed);
  std::string text = fmt::format("{}", fmt::join(std::span(names).first(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

// Whether a shard holds exactly the tensors, sorted by name, that the index places there.
Status check_shard(std::span<const SafetensorsModel::Tensor> tensors,
                   std::span<const std::string_view> wanted) {
  std::vector<std::string_view> present;
  std::vector<std::string> extra;
  std::vector<std::string> missing;
  for (const SafetensorsModel::Tensor& tensor : tensors) {
    const std::string_view name = tensor.meta.name;
    present.push_back(name);
    if (!std::ranges::binary_search(wanted, name)) extra.push_back(printable(name));
  }
  std::ranges::sort(present);
  for (const std::string_view name : wanted) {
    if (!std::ranges::binary_search(present, name)) missing.push_back(printable(name));
  }
  if (!missing.empty()) {
    return bad_input(fmt::format("lacks {} tensors that the index places there: {}", missing.size(),
                                 list(missing)));
  }
  if (extra.empty()) return {};
  return bad_input(fmt::format("holds {} tensors that the index does not place there: {}",
                               extra.size(), list(extra)));
}

}  // namespace

Result<SafetensorsModel> SafetensorsModel::open(std::span<const fs::path> paths) {
  SafetensorsModel model;
  for (const fs::path& path : paths) WEIGHTCAST_TRY(model.add_path(path));
  WEIGHTCAST_TRY(model.check_names_differ());
  if (!model.tensors_.empty()) return model;
  if (paths.empty()) return bad_input("no model was named");
  return bad_input(paths.front().native() + ": an empty model: it has no tensors");
}

Status SafetensorsModel::add_path(const fs::path& path) {
  std::error_code error;
  const bool directory = fs::is_directory(path, error);
  return directory ? add_directory(path) : add_file(path);
}

Status SafetensorsModel::add_directory(const fs::path& directory) {
  std::error_code error;
  if (fs::exists(directory / kModelName, error)) return add_file(directory / kModelName);
  if (fs::exists(directory / kIndexName, error)) return add_sharded(directory / kIndexName);
  std::vector<std::string> found;
  for (fs::directory_iterator i(directory, error), end; !error && i != end; i.increment(error)) {
    if (i->path().extension() == ".safetensors") found.push_back(i->path().filename().native());
  }
  if (error) return bad_input(directory.native() + ": read directory: " + error.message());
  if (found.size() == 1) return add_file(directory / found.front());
  if (found.empty()) {
    return bad_input(
        fmt::format("{}: no model here: neither {} nor {} nor another .safetensors "
                    "file",
                    directory.native(), kModelName, kIndexName));
  }
  std::ranges::sort(found);
  return bad_input(
      fmt::format("{}: {} .safetensors files but no {}: name the files themselves ({})",
                  directory.native(), found.size(), kIndexName, list(found)));
}

Status SafetensorsModel::add_sharded(const fs::path& index) {
  WEIGHTCAST_ASSIGN(const OpenFile file, open_file(index));
  if (file.size > kMaxIndexSize) {
    return bad_input(fmt::format("{}: {} bytes, above the {} that are allowed", index.native(),
                                 file.size, kMaxIndexSize));
  }
  const Result<std::string> json = read_text(file, 0, file.size);
  if (!json) return json.error().context(index.native());
  const Result<std::vector<ShardOf>> shards = parse_safetensors_index(*json);
  if (!shards) return shards.error().context(index.native());

  std::map<std::string_view, std::vector<std::string_view>> by_file;
  for (const ShardOf& shard : *shards) by_file[shard.file].push_back(shard.tensor);
  for (const auto& [name, wanted] : by_file) {
    const fs::path path = index.parent_path() / name;
    const size_t first = tensors_.size();
    if (const Status status = add_file(path); !status) {
      return status.error().context(fmt::format("{}: shard {}", index.native(), printable(name)));
    }
    if (const Status status = check_shard(std::span(tensors_).subspan(first), wanted); !status) {
      return status.error().context(path.native());
    }
  }
  return {};
}

Status SafetensorsModel::add_file(const fs::path& path) {
  WEIGHTCAST_ASSIGN(OpenFile file, open_file(path));
  const Result<std::string> json = read_header(file);
  if (!json) return json.error().context(path.native());
  const uint64_t data_start = kLengthSize + json->size();
  const uint64_t data_size = file.size - data_start;
  Result<std::vector<TensorEntry>> entries = parse_safetensors_header(*json, data_size);
  if (!entries) return entries.error().context(path.native());
  if (data_size > kMaxPayloadSize - payload_size_) {
    return bad_input(
        fmt::format("{}: the model has more than {} bytes", path.native(), kMaxPayloadSize));
  }
  for (TensorEntry& entry : *entries) {
    tensors_.push_back({.meta = std::move(entry.meta),
                        .file = files_.size(),
                        .file_offset = data_start + entry.offset});
  }
  payload_size_ += data_size;
  files_.push_back(path);
  descriptors_.push_back(std::move(file.fd));
  return {};
}

Status SafetensorsModel::check_names_differ() const {
  std::unordered_map<std::string_view, size_t> file_of;
  for (const Tensor& tensor : tensors_) {
    const auto [other, inserted] = file_of.emplace(tensor.meta.name, tensor.file);
    if (inserted) continue;
    return bad_input(fmt::format("{}: tensor {} at offset {} is also in {}",
                                 files_[tensor.file].native(), printable(tensor.meta.name),
                                 tensor.file_offset, files_[other->second].native()));
  }
  return {};
}

std::vector<TensorMeta> SafetensorsModel::metas() const {
  std::vector<TensorMeta> metas;
  metas.reserve(tensors_.size());
  for (const Tensor& tensor : tensors_) metas.push_back(tensor.meta);
  return metas;
}

Status SafetensorsModel::read(const Tensor& tensor, uint64_t offset,
                              std::span<std::byte> destination) const {
  const uint64_t size = byte_size(tensor.meta);
  WEIGHTCAST_CHECK(offset <= size && destination.size() <= size - offset);
  Status status = read_at(descriptors_[tensor.file], tensor.file_offset + offset, destination);
  if (status) return status;
  return status.error().context(fmt::format("{}: tensor {} at byte {}",
                                            files_[tensor.file].native(),
                                            printable(tensor.meta.name), offset));
}

}  // namespace weightcast
