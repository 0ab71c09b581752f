#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weightcast/backends/backend.h"

namespace weightcast {

#define WEIGHTCAST_BACKEND(symbol) const Backend& symbol##_backend();
#include "weightcast/backends/backends.def"
#undef WEIGHTCAST_BACKEND

std::span<const Backend> backends() {
#define WEIGHTCAST_BACKEND(symbol) symbol##_backend(),
  static const auto rows = std::to_array<Backend>({
#include "weightcast/backends/backends.def"
  });
#undef WEIGHTCAST_BACKEND
  return rows;
}

Result<const Backend*> find_backend(std::string_view name) {
  const auto rows = backends();
  const auto found = std::ranges::find(rows, name, &Backend::name);
  if (found != rows.end()) return &*found;
  std::vector<std::string_view> names;
  for (const Backend& row : rows) names.push_back(row.name);
  return Error(Code::kInvalidArgument,
               fmt::format("no backend `{}`; this build has {}", name, fmt::join(names, ", ")));
}

}  // namespace weightcast
