#include <algorithm>
#include <array>
#include <optional>

#include "weightcast/plan/json_events.h"
#include "weightcast/plan/safetensors.h"

namespace weightcast {
namespace {

constexpr std::string_view kMetadataKey = "__metadata__";

// {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …,
//  "__metadata__": {"key": "value", …}}, the last optional.
class HeaderDecoder final : public JsonEvents {
 public:
  std::vector<TensorEntry>& entries() { return entries_; }

  bool start_object(size_t) override {
    if (level_ == Level::kStart) {
      level_ = Level::kTop;
    } else if (level_ == Level::kTensorValue) {
      level_ = Level::kTensor;
      begin_ = end_ = std::nullopt;
      dtype_ = std::nullopt;
      shape_seen_ = false;
    } else if (level_ == Level::kMetadataValue) {
      level_ = Level::kMetadata;
    } else {
      return JsonEvents::start_object(0);
    }
    return true;
  }

  bool key(std::string& text) override {
    if (level_ == Level::kTop) return top_key(text);
    if (level_ == Level::kMetadata) return true;
    if (text == "dtype") {
      if (dtype_) return twice(text);
      level_ = Level::kDType;
    } else if (text == "shape") {
      if (shape_seen_) return twice(text);
      level_ = Level::kShapeValue;
    } else if (text == "data_offsets") {
      if (begin_) return twice(text);
      level_ = Level::kOffsetsValue;
    } else {
      return fail(fmt::format("{}: unknown key {}", place(), printable(text)));
    }
    return true;
  }

  bool string(std::string& text) override {
    if (level_ == Level::kMetadata) return true;
    if (level_ != Level::kDType) return JsonEvents::string(text);
    dtype_ = dtype_from_name(text);
    if (!dtype_) return fail(fmt::format("{}: unknown dtype {}", place(), printable(text)));
    level_ = Level::kTensor;
    return true;
  }

  bool null() override {
    if (level_ != Level::kMetadataValue) return JsonEvents::null();
    level_ = Level::kTop;
    return true;
  }

  bool start_array(size_t) override {
    if (level_ == Level::kShapeValue) {
      level_ = Level::kShape;
      shape_seen_ = true;
      return true;
    }
    if (level_ != Level::kOffsetsValue) return JsonEvents::start_array(0);
    level_ = Level::kOffsets;
    return true;
  }

  bool number_unsigned(uint64_t number) override {
    if (level_ == Level::kShape) {
      std::vector<uint64_t>& shape = entries_.back().meta.shape;
      if (shape.size() == kMaxDimensions) {
        return fail(fmt::format("{}: more than {} dimensions", place(), kMaxDimensions));
      }
      shape.push_back(number);
      return true;
    }
    if (level_ != Level::kOffsets) return JsonEvents::number_unsigned(number);
    if (end_) return fail(fmt::format("{}: more than two data_offsets", place()));
    (begin_ ? end_ : begin_) = number;
    return true;
  }

  bool end_array() override {
    if (level_ == Level::kOffsets && !end_) {
      return fail(fmt::format("{}: data_offsets are not two numbers", place()));
    }
    level_ = Level::kTensor;
    return true;
  }

  bool end_object() override {
    if (level_ == Level::kTensor && !end_tensor()) return false;
    level_ = level_ == Level::kTop ? Level::kEnd : Level::kTop;
    return true;
  }

 protected:
  [[nodiscard]] std::string place() const override {
    switch (level_) {
      case Level::kStart:
      case Level::kTop:
      case Level::kEnd: return "header";
      case Level::kMetadataValue:
      case Level::kMetadata: return std::string(kMetadataKey);
      default: return fmt::format("tensor {}", printable(entries_.back().meta.name));
    }
  }

 private:
  // What the next event belongs to. `…Value` waits for the value of a key.
  enum class Level {
    kStart,
    kTop,
    kEnd,
    kMetadataValue,
    kMetadata,
    kTensorValue,
    kTensor,
    kDType,
    kShapeValue,
    kShape,
    kOffsetsValue,
    kOffsets,
  };

  bool top_key(std::string& text) {
    if (text == kMetadataKey) {
      if (metadata_seen_) return twice(text);
      metadata_seen_ = true;
      level_ = Level::kMetadataValue;
      return true;
    }
    entries_.emplace_back().meta.name = std::move(text);
    level_ = Level::kTensorValue;
    return true;
  }

  bool twice(std::string_view what) {
    return fail(fmt::format("{}: {} comes twice", place(), what));
  }

  bool end_tensor() {
    if (!dtype_) return fail(fmt::format("{}: no dtype", place()));
    if (!shape_seen_) return fail(fmt::format("{}: no shape", place()));
    if (!begin_) return fail(fmt::format("{}: no data_offsets", place()));
    TensorEntry& entry = entries_.back();
    entry.meta.dtype = *dtype_;
    entry.offset = *begin_;
    if (const Status status = check(entry.meta); !status) return fail(status.error().message());
    const uint64_t size = byte_size(entry.meta);
    if (*end_ >= *begin_ && *end_ - *begin_ == size) return true;
    return fail(fmt::format("tensor {}: data_offsets {} to {} are not the {} bytes it has",
                            describe(entry.meta), *begin_, *end_, size));
  }

  Level level_ = Level::kStart;
  bool metadata_seen_ = false;
  bool shape_seen_ = false;
  std::optional<DType> dtype_;
  std::optional<uint64_t> begin_;
  std::optional<uint64_t> end_;
  std::vector<TensorEntry> entries_;
};

Status check_names_differ(std::span<const TensorEntry> entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const TensorEntry& entry : entries) names.push_back(entry.meta.name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return {};
  return Error(Code::kBadInput, fmt::format("tensor {} comes twice", printable(*twice)));
}

// Requires: ordered by offset, and by size where offsets are equal.
Status check_cover(std::span<const TensorEntry> entries, uint64_t data_size) {
  uint64_t end = 0;
  std::string_view previous = "the start";
  for (const TensorEntry& entry : entries) {
    const std::string name = printable(entry.meta.name);
    const uint64_t size = byte_size(entry.meta);
    if (entry.offset > data_size || size > data_size - entry.offset) {
      return Error(Code::kBadInput,
                   fmt::format("tensor {}: {} bytes at offset {} are out of range, the data have "
                               "only {} bytes (is the file truncated?)",
                               name, size, entry.offset, data_size));
    }
    if (entry.offset != end) {
      const std::string_view fault = entry.offset < end ? "overlaps" : "leaves a hole after";
      return Error(Code::kBadInput,
                   fmt::format("tensor {}: at offset {} it {} {}, which ends at {}", name,
                               entry.offset, fault, printable(previous), end));
    }
    end = entry.offset + size;
    previous = entry.meta.name;
  }
  if (end == data_size) return {};
  return Error(Code::kBadInput, fmt::format("the last tensor, {}, ends at offset {}, but the data "
                                            "have {} bytes",
                                            printable(previous), end, data_size));
}

void append_json_string(std::string& text, std::string_view value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  text += '"';
  for (const char character : value) {
    const auto byte = static_cast<uint8_t>(character);
    if (character == '"' || character == '\\') {
      text += '\\';
      text += character;
    } else if (byte < 0x20) {
      text += "\\u00";
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15];
    } else {
      text += character;
    }
  }
  text += '"';
}

}  // namespace

Result<std::vector<TensorEntry>> parse_safetensors_header(std::string_view json,
                                                          uint64_t data_size) {
  HeaderDecoder decoder;
  WEIGHTCAST_TRY(decoder.parse(json));
  std::vector<TensorEntry> entries = std::move(decoder.entries());
  WEIGHTCAST_TRY(check_names_differ(entries));
  // Stable, so that tensors without bytes at one place keep the header's order.
  std::ranges::stable_sort(entries, {}, [](const TensorEntry& entry) {
    return std::pair(entry.offset, byte_size(entry.meta));
  });
  WEIGHTCAST_TRY(check_cover(entries, data_size));
  return entries;
}

std::string make_safetensors_header(std::span<const TensorMeta> metas) {
  std::string json = "{";
  uint64_t offset = 0;
  for (const TensorMeta& meta : metas) {
    const uint64_t end = offset + byte_size(meta);
    if (json.size() > 1) json += ',';
    append_json_string(json, meta.name);
    json += fmt::format(R"(:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        name(meta.dtype), fmt::join(meta.shape, ","), offset, end);
    offset = end;
  }
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string header;
  for (unsigned i = 0; i < 8; ++i) header += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return header + json;
}

}  // namespace weightcast
