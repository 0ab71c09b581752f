#include "weightcast/base/memory_limit.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>

#include "weightcast/base/size.h"

namespace weightcast {
namespace {

// The two versions name the same things differently (kernel manual, cgroup-v1/memory and
// cgroup-v2).
struct CgroupFiles {
  std::string_view limit;
  std::string_view usage;
  std::string_view inactive_cache;  // in memory.stat
  std::string_view active_cache;
};
constexpr CgroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                                "total_inactive_file", "total_active_file"};
constexpr CgroupFiles kVersion2{"memory.max", "memory.current", "inactive_file", "active_file"};
// Version 1 writes "unlimited" as a number near 2^63.
constexpr uint64_t kUnlimited = uint64_t{1} << 62;

struct Hierarchy {
  const CgroupFiles* files;
  std::string mount_point;
  std::string mount_root;  // the cgroup that is seen at the mount point
};

bool has_item(std::string_view list, std::string_view item) {
  while (true) {
    const size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == item) return true;
    if (comma == list.size()) return false;
    list.remove_prefix(comma + 1);
  }
}

// The hierarchies in which memory may be limited. Format: proc_pid_mountinfo(5).
std::vector<Hierarchy> find_hierarchies(const std::string& root) {
  std::vector<Hierarchy> hierarchies;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t separator = line.find(" - ");
    if (separator == std::string::npos) continue;
    std::istringstream left(line.substr(0, separator));
    std::istringstream right(line.substr(separator + 3));
    std::string skipped, mount_root, mount_point, type, source, options;
    left >> skipped >> skipped >> skipped >> mount_root >> mount_point;
    right >> type >> source >> options;
    if (type == "cgroup2") hierarchies.push_back({&kVersion2, mount_point, mount_root});
    if (type == "cgroup" && has_item(options, "memory")) {
      hierarchies.push_back({&kVersion1, mount_point, mount_root});
    }
  }
  return hierarchies;
}

// This process's cgroup in the hierarchy of `files`. Format: cgroups(7).
std::optional<std::string> find_cgroup(const std::string& root, const CgroupFiles* files) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers(line.data() + first + 1, second - first - 1);
    const bool unified = controllers.empty() && line.starts_with("0:");
    if (files == &kVersion2 ? unified : has_item(controllers, "memory")) {
      return line.substr(second + 1);
    }
  }
  return std::nullopt;
}

// `path` below the mount point: without `mount_root`, which a container may not see.
std::string path_below(const Hierarchy& hierarchy, const std::string& path) {
  const std::string root = hierarchy.mount_root == "/" ? "" : hierarchy.mount_root;
  if (path == "/" || !path.starts_with(root + "/")) return "";
  return path.substr(root.size());
}

std::optional<uint64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (!(file >> number) || number >= kUnlimited) return std::nullopt;
  return number;
}

uint64_t read_cache(const std::string& directory, const CgroupFiles& files) {
  std::ifstream file(directory + "/memory.stat");
  uint64_t total = 0;
  std::string name;
  for (uint64_t number = 0; file >> name >> number;) {
    if (name == files.inactive_cache || name == files.active_cache) total += number;
  }
  return total;
}

std::optional<MemoryLimit> limit_of(const std::string& directory, const CgroupFiles& files) {
  const auto limit = read_number(fmt::format("{}/{}", directory, files.limit));
  const auto usage = read_number(fmt::format("{}/{}", directory, files.usage));
  if (!limit || !usage) return std::nullopt;
  const uint64_t used = *usage - std::min(*usage, read_cache(directory, files));
  return MemoryLimit{fmt::format("{} of the cgroup", files.limit), *limit - std::min(*limit, used)};
}

void keep_tightest(std::optional<MemoryLimit>& tightest, std::optional<MemoryLimit> limit) {
  if (limit && (!tightest || limit->left < tightest->left)) tightest = std::move(limit);
}

}  // namespace

std::optional<MemoryLimit> cgroup_memory_limit(const std::string& root) {
  std::optional<MemoryLimit> tightest;
  for (const Hierarchy& hierarchy : find_hierarchies(root)) {
    const auto cgroup = find_cgroup(root, hierarchy.files);
    if (!cgroup) continue;
    const std::string mount_point = root + hierarchy.mount_point;
    std::string path = path_below(hierarchy, *cgroup);
    while (true) {
      keep_tightest(tightest, limit_of(mount_point + path, *hierarchy.files));
      if (path.empty()) break;
      path.erase(path.rfind('/'));
    }
  }
  return tightest;
}

std::optional<MemoryLimit> address_space_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const uint64_t pages = read_number("/proc/self/statm").value_or(0);
  const uint64_t used = pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return MemoryLimit{"`ulimit -v`", limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, used)};
}

Status check_memory_left(uint64_t size, const std::string& root) {
  std::optional<MemoryLimit> tightest = cgroup_memory_limit(root);
  keep_tightest(tightest, address_space_limit());
  if (!tightest || size <= tightest->left) return {};
  return Error(Code::kNoResource,
               fmt::format("shared memory of {} is over what {} leaves ({}): raise it or choose a "
                           "smaller --bucket",
                           format_size(size), tightest->name, format_size(tightest->left)));
}

}  // namespace weightcast
