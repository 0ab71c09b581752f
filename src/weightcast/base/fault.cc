#include "weightcast/base/fault.h"

#ifdef WEIGHTCAST_FAULT_POINTS

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>

#include "weightcast/base/check.h"

namespace weightcast {
namespace {

struct Fault {
  std::string point;
  int signal = 0;
  int count = 1;
};

Fault fault_from_environment() {
  const char* text = std::getenv("WEIGHTCAST_FAULT");
  if (text == nullptr) return {};
  const std::string_view spec(text);
  const size_t first = spec.find(':');
  WEIGHTCAST_CHECK(first != std::string_view::npos);
  const size_t second = std::min(spec.find(':', first + 1), spec.size());
  const auto action = spec.substr(first + 1, second - first - 1);
  WEIGHTCAST_CHECK(action == "kill" || action == "stop");
  Fault fault{std::string(spec.substr(0, first)), action == "kill" ? SIGKILL : SIGSTOP, 1};
  if (second < spec.size()) {
    std::from_chars(spec.data() + second + 1, spec.data() + spec.size(), fault.count);
  }
  return fault;
}

}  // namespace

void fault_point(const char* point) {
  static const Fault fault = fault_from_environment();
  static std::atomic<int> passed{0};
  if (fault.signal == 0 || fault.point != point) return;
  if (passed.fetch_add(1, std::memory_order_relaxed) + 1 == fault.count) std::raise(fault.signal);
}

}  // namespace weightcast

#endif
