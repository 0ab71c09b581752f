// Models on disk: safetensors files, one or sharded with an index, read and written.
// A model is thread-compatible: `read` may be called by several threads. A writer: one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weightcast/base/fd.h"
#include "weightcast/base/result.h"
#include "weightcast/plan/temporary_file.h"
#include "weightcast/plan/tensor_meta.h"

namespace weightcast {

/// No header is longer, as in the reference implementation (safetensors 0.6, MAX_HEADER_SIZE).
inline constexpr uint64_t kMaxSafetensorsHeaderSize = 100'000'000;

/// A tensor's entry in a file.
struct TensorEntry {
  TensorMeta meta;
  uint64_t offset = 0;  ///< bytes from the start of the file's data section
};

/// Decodes the JSON header of a safetensors file whose data section has `data_size` bytes. Entries
/// come in the order of their bytes. Nothing is allocated by a number from `json` before that
/// number was checked. Errors: `kBadInput`, naming the tensor and the offset: not JSON, duplicate
/// names, unknown dtype, shape × dtype ≠ length, overlaps, holes, out of range.
Result<std::vector<TensorEntry>> parse_safetensors_header(std::string_view json,
                                                          uint64_t data_size);

/// Decodes `model.safetensors.index.json`: tensor name and shard file name, in the order of names.
/// Errors: `kBadInput`; shard names with a path separator are refused.
struct ShardOf {
  std::string tensor;
  std::string file;
};
Result<std::vector<ShardOf>> parse_safetensors_index(std::string_view json);

/// The 8-byte length and the JSON of a file that holds `metas` in this order without holes, padded
/// with spaces to a multiple of 8. Requires: each passes `check`, and all together stay below 2^63.
std::string make_safetensors_header(std::span<const TensorMeta> metas);

/// An open model: one file, several files, or a directory with `model.safetensors`, with
/// `model.safetensors.index.json`, or with a single other `*.safetensors`, looked for in this
/// order. Tensors come file by file: paths as given, shards by name, and in a file as their bytes
/// lie. Files are read by `pread`, never mapped: one that shrinks while it is read is an error, not
/// a signal. Each file keeps one descriptor.
class SafetensorsModel {
 public:
  struct Tensor {
    TensorMeta meta;
    size_t file;           ///< index into `files()`
    uint64_t file_offset;  ///< bytes from the start of that file
  };

  /// Errors: `kBadInput`, naming file, tensor and offset: also a model without tensors, a tensor in
  /// two files, and shards that do not hold what their index says; `kNoResource`.
  static Result<SafetensorsModel> open(std::span<const std::filesystem::path> paths);

  [[nodiscard]] const std::vector<Tensor>& tensors() const { return tensors_; }
  [[nodiscard]] const std::vector<std::filesystem::path>& files() const { return files_; }
  [[nodiscard]] uint64_t payload_size() const { return payload_size_; }
  [[nodiscard]] std::vector<TensorMeta> metas() const;

  /// Reads `destination.size()` bytes of `tensor` from byte `offset` on. Blocks on the disk only.
  /// Requires: the tensor has them. Errors: `kBadInput` when the file has become too short or can
  /// not be read, naming file, tensor and offset.
  [[nodiscard]] Status read(const Tensor& tensor, uint64_t offset,
                            std::span<std::byte> destination) const;

 private:
  Status add_path(const std::filesystem::path& path);
  Status add_directory(const std::filesystem::path& directory);
  Status add_sharded(const std::filesystem::path& index);
  Status add_file(const std::filesystem::path& path);
  [[nodiscard]] Status check_names_differ() const;

  std::vector<std::filesystem::path> files_;
  std::vector<Fd> descriptors_;
  std::vector<Tensor> tensors_;
  uint64_t payload_size_ = 0;
};

/// Writes a safetensors file beside its final place and renames it into place at commit. Destroyed
/// before that, it leaves no trace and whatever was there before stays; killed before that, it
/// leaves none either where the file system has unnamed files. The new file is whole for every
/// process from the rename on; it is not forced to the disk, so a power cut may lose it.
class SafetensorsWriter {
 public:
  /// Creates the directory, reserves room for the whole file and writes its header. Errors:
  /// `kNoResource` when the disk or the file size limit is too small, naming path and sizes;
  /// `kBadInput` when no file can hold `metas` or the directory can not be written.
  static Result<std::unique_ptr<SafetensorsWriter>> create(const std::filesystem::path& path,
                                                           std::span<const TensorMeta> metas);

  /// Writes `bytes` at byte `offset` of tensor number `tensor`. Blocks on the disk only.
  /// Requires: the tensor has them. Errors: `kNoResource`, `kInternal`.
  Status write(uint64_t tensor, uint64_t offset, std::span<const std::byte> bytes);
  /// Renames the file into place, once. Errors leave the old file.
  Status commit();

 private:
  SafetensorsWriter(TemporaryFile file, std::vector<uint64_t> offsets)
      : file_(std::move(file)), offsets_(std::move(offsets)) {}

  TemporaryFile file_;
  std::vector<uint64_t> offsets_;  ///< in the file: where each tensor starts, and the file's end
};

}  // namespace weightcast
