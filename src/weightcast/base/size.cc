#include "weightcast/base/size.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace weightcast {
namespace {

struct Quantity {
  double number;
  std::string unit;  // lower case
};

Result<Quantity> split(std::string_view text) {
  Quantity quantity{};
  const char* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, quantity.number);
  if (failure != std::errc() || !std::isfinite(quantity.number) || quantity.number < 0) {
    return Error(Code::kInvalidArgument, fmt::format("`{}` does not start with a number", text));
  }
  for (const char* c = rest; c != end; ++c) {
    if (*c != ' ') quantity.unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  }
  return quantity;
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  static constexpr auto kUnits = std::to_array<std::pair<std::string_view, double>>({
      {"", 1},
      {"b", 1},
      {"k", 0x1p10},
      {"kib", 0x1p10},
      {"kb", 1e3},
      {"m", 0x1p20},
      {"mib", 0x1p20},
      {"mb", 1e6},
      {"g", 0x1p30},
      {"gib", 0x1p30},
      {"gb", 1e9},
      {"t", 0x1p40},
      {"tib", 0x1p40},
      {"tb", 1e12},
  });
  WEIGHTCAST_ASSIGN(const Quantity quantity, split(text));
  const auto* unit = std::ranges::find(kUnits, quantity.unit, [](auto& u) { return u.first; });
  if (unit == kUnits.end()) {
    return Error(Code::kInvalidArgument,
                 fmt::format("`{}` has no unit of size; write it like 64MiB", text));
  }
  const double bytes = quantity.number * unit->second;
  if (bytes >= 0x1p62) return Error(Code::kInvalidArgument, fmt::format("`{}` is too large", text));
  return static_cast<uint64_t>(std::llround(bytes));
}

std::string format_size(uint64_t size) {
  static constexpr auto kUnits = std::to_array<std::string_view>({"KiB", "MiB", "GiB", "TiB"});
  if (size < kKiB) return fmt::format("{} B", size);
  auto scaled = static_cast<double>(size) / 1024;
  size_t unit = 0;
  for (; scaled >= 1024 && unit + 1 < kUnits.size(); ++unit) scaled /= 1024;
  return fmt::format("{:.1f} {}", scaled, kUnits[unit]);
}

Result<Duration> parse_duration(std::string_view text) {
  static constexpr auto kUnits = std::to_array<std::pair<std::string_view, double>>(
      {{"", 1e3}, {"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"min", 60e3}, {"h", 3600e3}});
  WEIGHTCAST_ASSIGN(const Quantity quantity, split(text));
  const auto* unit = std::ranges::find(kUnits, quantity.unit, [](auto& u) { return u.first; });
  const double ms = unit == kUnits.end() ? 0 : quantity.number * unit->second;
  if (ms < 1 || ms > 1e12) {
    return Error(Code::kInvalidArgument,
                 fmt::format("`{}` is no duration; write it like 60s or 500ms", text));
  }
  return Duration(std::llround(ms));
}

std::string format_duration(Clock::duration duration) {
  const auto ms = std::chrono::duration_cast<Duration>(duration).count();
  if (ms < 1000) return fmt::format("{} ms", ms);
  return fmt::format("{:.4g} s", static_cast<double>(ms) / 1e3);
}

}  // namespace weightcast
