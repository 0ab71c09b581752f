#include <algorithm>

#include "weightcast/plan/json_events.h"
#include "weightcast/plan/safetensors.h"

namespace weightcast {
namespace {

constexpr size_t kMaxDepth = 64;

// {"weight_map": {"tensor": "file", …}, "metadata": anything, …}
class IndexDecoder final : public JsonEvents {
 public:
  std::vector<ShardOf>& shards() { return shards_; }
  [[nodiscard]] bool weight_map_seen() const { return weight_map_seen_; }

  bool key(std::string& text) override {
    if (in_weight_map_) {
      shards_.push_back({.tensor = std::move(text), .file = {}});
    } else if (depth_ == 1) {
      next_is_weight_map_ = text == "weight_map";
      if (next_is_weight_map_ && weight_map_seen_) return fail("index: weight_map comes twice");
      weight_map_seen_ |= next_is_weight_map_;
    }
    return true;
  }

  bool start_object(size_t) override {
    if (in_weight_map_) return JsonEvents::start_object(0);
    in_weight_map_ = std::exchange(next_is_weight_map_, false);
    return deeper();
  }
  bool end_object() override {
    in_weight_map_ = false;
    --depth_;
    return true;
  }
  bool start_array(size_t) override { return elsewhere() ? deeper() : JsonEvents::start_array(0); }
  bool end_array() override {
    --depth_;
    return true;
  }

  bool string(std::string& text) override {
    if (!in_weight_map_) return elsewhere() || JsonEvents::string(text);
    const std::string& tensor = shards_.back().tensor;
    if (text.empty() || text == "." || text == ".." ||
        text.find_first_of(std::string_view("/\0", 2)) != text.npos) {
      return fail(fmt::format("{}: {} is not the name of a file beside the index", place(),
                              printable(text)));
    }
    if (tensor.empty() || tensor.size() > kMaxNameSize) {
      return fail(fmt::format("{}: its name has {} bytes; 1 to {} are allowed", place(),
                              tensor.size(), kMaxNameSize));
    }
    shards_.back().file = std::move(text);
    return true;
  }

  bool null() override { return elsewhere() || JsonEvents::null(); }
  bool boolean(bool value) override { return elsewhere() || JsonEvents::boolean(value); }
  bool number_integer(int64_t value) override {
    return elsewhere() || JsonEvents::number_integer(value);
  }
  bool number_unsigned(uint64_t value) override {
    return elsewhere() || JsonEvents::number_unsigned(value);
  }
  bool number_float(double value, const std::string& text) override {
    return elsewhere() || JsonEvents::number_float(value, text);
  }

 protected:
  [[nodiscard]] std::string place() const override {
    if (!in_weight_map_) return "index: weight_map";
    return fmt::format("index: tensor {}", printable(shards_.back().tensor));
  }

 private:
  // Whether the decoder is outside weight_map, where everything is skipped.
  [[nodiscard]] bool elsewhere() const { return !in_weight_map_ && !next_is_weight_map_; }
  bool deeper() {
    return ++depth_ <= kMaxDepth || fail(fmt::format("index: nested deeper than {}", kMaxDepth));
  }

  size_t depth_ = 0;
  bool weight_map_seen_ = false;
  bool next_is_weight_map_ = false;
  bool in_weight_map_ = false;
  std::vector<ShardOf> shards_;
};

}  // namespace

Result<std::vector<ShardOf>> parse_safetensors_index(std::string_view json) {
  IndexDecoder decoder;
  WEIGHTCAST_TRY(decoder.parse(json));
  if (!decoder.weight_map_seen()) return Error(Code::kBadInput, "index: no weight_map");
  std::vector<ShardOf> shards = std::move(decoder.shards());
  std::ranges::sort(shards, {}, &ShardOf::tensor);
  const auto twice = std::ranges::adjacent_find(shards, {}, &ShardOf::tensor);
  if (twice == shards.end()) return shards;
  return Error(Code::kBadInput,
               fmt::format("index: tensor {} comes twice", printable(twice->tensor)));
}

}  // namespace weightcast
