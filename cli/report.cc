#include "report.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "exit_code.h"
#include "output.h"
#include "weightcast/base/size.h"

namespace weightcast {
namespace {

using nlohmann::ordered_json;

double bandwidth_gbps(uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0;
}

std::string_view to_string(DigestKind kind) {
  return kind == DigestKind::kBytes ? "bytes" : "metas";
}

ordered_json to_json(const RankStats& rank) {
  return {{"rank", rank.rank},
          {"host", rank.host},
          {"pack_seconds", rank.pack_seconds},
          {"wait_seconds", rank.wait_seconds},
          {"move_seconds", rank.move_seconds},
          {"tensors", rank.tensors},
          {"bytes", rank.bytes},
          {"peak_extra_bytes", rank.peak_extra_bytes}};
}

ordered_json to_json(const TransferStats& stats) {
  ordered_json ranks = ordered_json::array();
  for (const RankStats& rank : stats.ranks) ranks.push_back(to_json(rank));
  ordered_json lost = ordered_json::array();
  for (const Error& error : stats.lost) lost.push_back(to_json(error, exit_code(error.code())));
  return {{"version", stats.version},
          {"tensors", stats.tensors},
          {"bytes", stats.bytes},
          {"buckets", stats.buckets},
          {"seconds", stats.seconds},
          {"gbps", bandwidth_gbps(stats.bytes, stats.seconds)},
          {"bytes_on_wire", stats.bytes_on_wire},
          {"digest", stats.digest.hex()},
          {"digest_kind", to_string(stats.digest_kind)},
          {"ranks", std::move(ranks)},
          {"lost", std::move(lost)}};
}

ordered_json totals(const std::vector<TransferStats>& versions) {
  TransferStats sum;
  uint64_t peak = 0;
  for (const TransferStats& stats : versions) {
    sum.tensors += stats.tensors;
    sum.bytes += stats.bytes;
    sum.buckets += stats.buckets;
    sum.seconds += stats.seconds;
    sum.bytes_on_wire += stats.bytes_on_wire;
    for (const RankStats& rank : stats.ranks) peak = std::max(peak, rank.peak_extra_bytes);
  }
  return {{"versions", versions.size()},
          {"tensors", sum.tensors},
          {"bytes", sum.bytes},
          {"buckets", sum.buckets},
          {"seconds", sum.seconds},
          {"gbps", bandwidth_gbps(sum.bytes, sum.seconds)},
          {"bytes_on_wire", sum.bytes_on_wire},
          {"peak_extra_bytes", peak}};
}

ordered_json to_json(const TransferReport& report) {
  ordered_json versions = ordered_json::array();
  for (size_t i = 0; i < report.versions.size(); ++i) {
    ordered_json version = to_json(report.versions[i]);
    if (i < report.files.size()) version["file"] = report.files[i];
    versions.push_back(std::move(version));
  }
  return {{"command", report.command},
          {"rank", report.rank},
          {"world_size", report.world_size},
          {"versions", std::move(versions)},
          {"totals", totals(report.versions)}};
}

// A signal ends the process by itself afterwards, and the shell then sees 128 and its number.
int exit_status(const Error& error, const Interrupts& interrupts) {
  return interrupts.signal() != 0 ? 128 + interrupts.signal() : exit_code(error.code());
}

void print_error(const Error& error) {
  const std::string where = error.rank() >= 0 ? fmt::format(" on rank {}", error.rank()) : "";
  write_err(fmt::format("weightcast: {} {} ({}{})", styled_err(Style::kRed, "error:"),
                        error.message(), to_string(error.code()), where));
}

}  // namespace

ordered_json to_json(const Error& error, int exit_status) {
  return {{"code", to_string(error.code())},
          {"exit_code", exit_status},
          {"rank", error.rank()},
          {"message", error.message()}};
}

void print_json(const ordered_json& object) {
  write_out(object.dump(2, ' ', false, ordered_json::error_handler_t::replace));
  write_out("\n");
}

std::string format_versions(const std::vector<TransferStats>& versions) {
  std::vector<std::vector<std::string>> lines = {
      {"version", "tensors", "bytes", "buckets", "seconds", "GB/s", "digest"}};
  std::vector<std::vector<std::string>> ranks = {
      {"version", "rank", "host", "packed s", "waited s", "moved s", "extra memory"}};
  for (const TransferStats& stats : versions) {
    lines.push_back({fmt::to_string(stats.version), fmt::to_string(stats.tensors),
                     fmt::to_string(stats.bytes), fmt::to_string(stats.buckets),
                     fmt::format("{:.3f}", stats.seconds),
                     fmt::format("{:.2f}", bandwidth_gbps(stats.bytes, stats.seconds)),
                     fmt::format("{}{}", stats.digest.hex(),
                                 stats.digest_kind == DigestKind::kBytes ? "" : " (metas only)")});
    for (const RankStats& rank : stats.ranks) {
      ranks.push_back(
          {fmt::to_string(stats.version), fmt::to_string(rank.rank), rank.host,
           fmt::format("{:.3f}", rank.pack_seconds), fmt::format("{:.3f}", rank.wait_seconds),
           fmt::format("{:.3f}", rank.move_seconds), format_size(rank.peak_extra_bytes)});
    }
  }
  return format_table(">>>>>><", lines) + "\n" + format_table(">><>>>>", ranks);
}

int finish_transfer(const TransferReport& report, bool json, const Interrupts& interrupts) {
  std::optional<Error> error = report.error;
  if (error && error->rank() < 0) error = error->on_rank(report.rank);
  const int status = error ? exit_status(*error, interrupts) : kExitDone;
  if (json) {
    ordered_json object = to_json(report);
    if (error) object["error"] = to_json(*error, status);
    print_json(object);
  } else if (!report.versions.empty()) {
    write_out(format_versions(report.versions));
    for (const std::string& file : report.files) write_out(fmt::format("wrote {}\n", file));
  }
  if (error) print_error(*error);
  return status;
}

int finish_failed(const Error& error, bool json, const Interrupts& interrupts) {
  const int status = exit_status(error, interrupts);
  if (json) print_json({{"error", to_json(error, status)}});
  print_error(error);
  return status;
}

}  // namespace weightcast
