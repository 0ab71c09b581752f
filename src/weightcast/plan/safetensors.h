// Models on disk: safetensors files, one or sharded with an index, read and written.
// A model is thread-compatible: `read` may be called by several threads. A writer: one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weightcast/base/fd.h"
#include "weightcast/base/result.h"
#include "weightcast/plan/tensor_meta.h"

namespace weightcast {

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
/// with spaces to a multiple of 8.
std::string make_safetensors_header(std::span<const TensorMeta> metas);

/// An open model: one file, several files, or a directory with `model.safetensors` or
/// `model.safetensors.index.json`. Files are read by `pread`, never mapped: one that shrinks while
/// it is read is an error, not a signal.
class SafetensorsModel {
 public:
  struct Tensor {
    TensorMeta meta;
    size_t file;           ///< index into `files()`
    uint64_t file_offset;  ///< bytes from the start of that file
  };

  /// Errors: `kBadInput`, naming file, tensor and offset; `kNoResource`.
  static Result<SafetensorsModel> open(std::span<const std::filesystem::path> paths);

  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<std::filesystem::path>& files() const { return files_; }
  uint64_t payload_size() const { return payload_size_; }
  std::vector<TensorMeta> metas() const;

  /// Reads `destination.size()` bytes of `tensor` from byte `offset` on. Blocks on the disk only.
  /// Errors: `kBadInput` when the file has become too short, naming file, tensor and offset.
  Status read(const Tensor& tensor, uint64_t offset, std::span<std::byte> destination) const;

 private:
  std::vector<std::filesystem::path> files_;
  std::vector<Fd> descriptors_;
  std::vector<Tensor> tensors_;
  uint64_t payload_size_ = 0;
};

/// Writes a safetensors file beside its final place and renames it into place at commit. Destroyed
/// before that, it leaves no trace and whatever was there before stays.
class SafetensorsWriter {
 public:
  /// Creates the directory, reserves room for the whole file and writes its header. Errors:
  /// `kNoResource` when the disk is too small, naming path and size; `kBadInput`.
  static Result<std::unique_ptr<SafetensorsWriter>> create(const std::filesystem::path& path,
                                                           std::span<const TensorMeta> metas);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  /// Writes `bytes` at byte `offset` of tensor number `tensor`. Errors: `kNoResource`, `kInternal`.
  Status write(uint64_t tensor, uint64_t offset, std::span<const std::byte> bytes);
  /// Renames the file into place. Errors leave the old file.
  Status commit();

 private:
  SafetensorsWriter() = default;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  Fd fd_;
  std::vector<uint64_t> offsets_;
};

}  // namespace weightcast
