#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "exit_code.h"
#include "output.h"
#include "report.h"
#include "weightcast/base/size.h"
#include "weightcast/plan/bucket.h"
#include "weightcast/plan/safetensors.h"

namespace weightcast {
namespace {

using nlohmann::ordered_json;

struct ModelPlan {
  std::vector<TensorMeta> metas{};
  std::vector<std::string> files{};
  uint64_t bucket_size = 0;
  BucketPlan plan{};

  /// Names of the first and the last tensor of a bucket.
  [[nodiscard]] std::pair<std::string, std::string> ends(const PlannedBucket& bucket) const {
    if (bucket.extents.empty()) return {};
    return {metas[bucket.extents.front().tensor].name, metas[bucket.extents.back().tensor].name};
  }
  [[nodiscard]] double fill(const PlannedBucket& bucket) const {
    return static_cast<double>(bucket.used_size) / static_cast<double>(bucket_size);
  }
  [[nodiscard]] uint64_t used_size() const {
    uint64_t size = 0;
    for (const PlannedBucket& bucket : plan.buckets) size += bucket.used_size;
    return size;
  }
  /// The tensor that `BucketPlan::largest_split` speaks of, or nothing.
  [[nodiscard]] const TensorMeta* largest_split() const {
    if (plan.largest_split == 0) return nullptr;
    const auto found = std::ranges::find_if(
        metas, [&](const TensorMeta& meta) { return byte_size(meta) == plan.largest_split; });
    return found == metas.end() ? nullptr : &*found;
  }
};

Result<ModelPlan> make_model_plan(const PlanCommand& command) {
  const std::vector<std::filesystem::path> paths(command.model.begin(), command.model.end());
  WEIGHTCAST_ASSIGN(const SafetensorsModel model, SafetensorsModel::open(paths));
  ModelPlan result{.metas = model.metas(), .bucket_size = command.bucket_size};
  for (const auto& file : model.files()) result.files.push_back(file.string());
  result.plan = make_plan(result.metas, command.bucket_size);
  return result;
}

ordered_json to_json(const ModelPlan& model) {
  ordered_json buckets = ordered_json::array();
  for (const PlannedBucket& bucket : model.plan.buckets) {
    const auto [first, last] = model.ends(bucket);
    buckets.push_back({{"index", buckets.size()},
                       {"used_bytes", bucket.used_size},
                       {"fill", model.fill(bucket)},
                       {"tensors", bucket.extents.size()},
                       {"first", first},
                       {"last", last}});
  }
  ordered_json split;
  if (const TensorMeta* meta = model.largest_split()) {
    split = {{"name", meta->name}, {"bytes", model.plan.largest_split}};
  }
  return {{"command", "plan"},
          {"files", model.files},
          {"bucket_bytes", model.bucket_size},
          {"tensors", model.metas.size()},
          {"bytes", model.plan.payload_size},
          {"used_bytes", model.used_size()},
          {"padding_bytes", model.used_size() - model.plan.payload_size},
          {"largest_split", std::move(split)},
          {"buckets", std::move(buckets)}};
}

std::string to_text(const ModelPlan& model) {
  std::vector<std::vector<std::string>> lines = {
      {"bucket", "used bytes", "fill", "tensors", "first", "last"}};
  for (const PlannedBucket& bucket : model.plan.buckets) {
    const auto [first, last] = model.ends(bucket);
    lines.push_back({fmt::to_string(lines.size() - 1), fmt::to_string(bucket.used_size),
                     fmt::format("{:.1f} %", 100 * model.fill(bucket)),
                     fmt::to_string(bucket.extents.size()), first, last});
  }
  std::string text = format_table(">>>><<", lines);
  text += fmt::format("\n{} tensors, {} bytes in {} buckets of {}; {} bytes of padding\n",
                      model.metas.size(), model.plan.payload_size, model.plan.buckets.size(),
                      format_size(model.bucket_size), model.used_size() - model.plan.payload_size);
  if (const TensorMeta* meta = model.largest_split()) {
    text += fmt::format("largest tensor that spans buckets: {}, {} bytes\n", describe(*meta),
                        model.plan.largest_split);
  } else {
    text += "no tensor spans buckets\n";
  }
  return text;
}

}  // namespace

int run_plan(const PlanCommand& command, Interrupts& interrupts) {
  const Result<ModelPlan> model = make_model_plan(command);
  if (!model) return finish_failed(model.error(), command.json, interrupts);
  if (command.json) {
    print_json(to_json(*model));
  } else {
    write_out(to_text(*model));
  }
  return kExitDone;
}

}  // namespace weightcast
