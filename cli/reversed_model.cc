#include "reversed_model.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "weightcast/base/size.h"

namespace weightcast {
namespace {

// A multiple of every element's width.
constexpr uint64_t kBlockSize = kMiB;

void reverse_elements(std::span<const std::byte> source, size_t width,
                      std::span<std::byte> destination) {
  for (size_t i = 0; i < source.size(); i += width) {
    std::memcpy(&destination[source.size() - width - i], &source[i], width);
  }
}

}  // namespace

Status write_reversed(const SafetensorsModel& model, const std::filesystem::path& path,
                      const Interrupts& interrupts) {
  WEIGHTCAST_ASSIGN(const auto writer, SafetensorsWriter::create(path, model.metas()));
  std::vector<std::byte> source(kBlockSize);
  std::vector<std::byte> reversed(kBlockSize);
  for (size_t i = 0; i < model.tensors().size(); ++i) {
    const SafetensorsModel::Tensor& tensor = model.tensors()[i];
    const size_t element_bits = bits(tensor.meta.dtype);
    const size_t width = element_bits % 8 == 0 ? element_bits / 8 : 1;
    const uint64_t size = byte_size(tensor.meta);
    for (uint64_t offset = 0; offset < size; offset += kBlockSize) {
      WEIGHTCAST_TRY(interrupts.check());
      const uint64_t block = std::min(kBlockSize, size - offset);
      const std::span<std::byte> read(source.data(), block);
      const std::span<std::byte> write(reversed.data(), block);
      WEIGHTCAST_TRY(model.read(tensor, size - offset - block, read));
      reverse_elements(read, width, write);
      WEIGHTCAST_TRY(writer->write(i, offset, write));
    }
  }
  return writer->commit();
}

}  // namespace weightcast
