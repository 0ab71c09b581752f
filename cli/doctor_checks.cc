#include "doctor_checks.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <zmq.h>

#include <cstring>
#include <fstream>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "weightcast/backends/backend.h"
#include "weightcast/base/fd.h"
#include "weightcast/base/mapping.h"
#include "weightcast/base/memory_limit.h"
#include "weightcast/base/size.h"

namespace weightcast {
namespace {

// A send with the default bucket size holds this much shared memory in its slots, plus headers.
constexpr uint64_t kSlotsSize = 2 * 64 * kMiB;
// Sockets, memfds and event descriptors of a session with a few receivers, generously.
constexpr rlim_t kFewDescriptors = 64;

// The value of the first line of `path` that starts with `key`, behind its colon.
std::string read_field(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

std::string vector_extensions() {
#if defined(__x86_64__)
  std::string names = "sse2";
  if (__builtin_cpu_supports("avx2")) names += " avx2";
  if (__builtin_cpu_supports("avx512f")) names += " avx512f";
  return names;
#else
  return "generic";
#endif
}

Finding find_cpu() {
  const std::string model = read_field("/proc/cpuinfo", "model name");
  return {.topic = "cpu",
          .value = fmt::format("{}, {} threads, {}", model.empty() ? "unknown model" : model,
                               std::thread::hardware_concurrency(), vector_extensions())};
}

Finding find_kernel() {
  utsname names{};
  ::uname(&names);
  return {.topic = "kernel", .value = fmt::format("{} {}", names.sysname, names.release)};
}

Finding find_memory() {
  Finding finding{.topic = "memory"};
  finding.value = fmt::format("{} available", read_field("/proc/meminfo", "MemAvailable"));
  for (const auto& limit : {cgroup_memory_limit(), address_space_limit()}) {
    if (!limit) continue;
    finding.value += fmt::format(", {} leaves {}", limit->name, format_size(limit->left));
  }
  if (const Status enough = check_memory_left(kSlotsSize); !enough) {
    finding.advice = enough.error().message();
  }
  return finding;
}

Finding find_shared_memory() {
  Finding finding{.topic = "shared_memory", .needed = true};
  const auto prove = []() -> Status {
    WEIGHTCAST_ASSIGN(const Fd fd, create_memfd("weightcast-doctor", kMiB));
    WEIGHTCAST_ASSIGN(const Mapping mapping, Mapping::map(fd, kMiB, Access::kReadWrite));
    WEIGHTCAST_TRY(populate({mapping.data(), mapping.size()}, Access::kReadWrite));
    return seal_future_writes(fd);
  };
  if (const Status status = prove(); !status) {
    finding.value = status.error().message();
    finding.advice =
        "slots lie in memfds that are sealed against writing: Linux 5.1 or newer, and a sandbox "
        "that allows memfd_create and fcntl(F_ADD_SEALS)";
  } else {
    finding.value = "memfd works, with seals";
  }
  return finding;
}

std::string describe_limit(rlim_t limit, bool bytes) {
  if (limit == RLIM_INFINITY) return "unlimited";
  return bytes ? format_size(limit) : fmt::to_string(limit);
}

Finding find_limit(std::string topic, int resource, bool bytes, rlim_t wanted, std::string advice) {
  rlimit limit{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  Finding finding{.topic = std::move(topic), .value = describe_limit(limit.rlim_cur, bytes)};
  if (limit.rlim_cur < wanted) finding.advice = std::move(advice);
  return finding;
}

void find_limits(std::vector<Finding>& findings) {
  findings.push_back(find_limit("memlock", RLIMIT_MEMLOCK, true, 0, ""));
  findings.push_back(find_limit(
      "descriptors", RLIMIT_NOFILE, false, kFewDescriptors,
      fmt::format("`ulimit -n` of {} or more suits a few receivers; a sender needs more for each",
                  kFewDescriptors)));
  findings.push_back(find_limit(
      "file_size", RLIMIT_FSIZE, true, kSlotsSize,
      "`ulimit -f` also limits shared memory: raise it above two buckets and above what `receive` "
      "writes, or use a smaller --bucket"));
}

Finding find_zmq() {
  int major = 0;
  int minor = 0;
  int patch = 0;
  ::zmq_version(&major, &minor, &patch);
  Finding finding{.topic = "libzmq", .needed = true};
  const bool curve = ::zmq_has("curve") == 1;
  finding.value =
      fmt::format("{}.{}.{}, {} CURVE", major, minor, patch, curve ? "with" : "without");
  if (!curve) {
    finding.advice =
        "connections are encrypted with CURVE: install a libzmq that was built with libsodium, as "
        "Debian's libzmq5 is";
  }
  return finding;
}

void find_backends(std::vector<Finding>& findings) {
  for (const Backend& backend : backends()) {
    Finding finding{.topic = fmt::format("backend_{}", backend.name), .value = "works"};
    if (const Status status = backend.probe(); !status) {
      finding.value = "does not work here";
      finding.advice = status.error().message();
      // Devices are optional; the host is where everything starts.
      finding.needed = backend.device_kind == DeviceKind::kHost;
    }
    findings.push_back(std::move(finding));
  }
}

}  // namespace

std::vector<Finding> find_out() {
  std::vector<Finding> findings = {find_cpu(), find_kernel(), find_memory(), find_shared_memory()};
  find_limits(findings);
  findings.push_back(find_zmq());
  find_backends(findings);
  return findings;
}

}  // namespace weightcast
