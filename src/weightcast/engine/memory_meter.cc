#include "weightcast/engine/memory_meter.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "weightcast/base/size.h"

namespace weightcast {
namespace {

// RssAnon and RssShmem of proc_pid_status(5): no page of a file counts.
uint64_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  uint64_t total = 0;
  for (std::string key; status >> key;) {
    uint64_t kib = 0;
    if ((key == "RssAnon:" || key == "RssShmem:") && status >> kib) total += kib * kKiB;
    status.ignore(4096, '\n');
  }
  return total;
}

}  // namespace

MemoryMeter::MemoryMeter() : start_(resident_bytes()), next_look_(Clock::now()) {}

void MemoryMeter::sample() {
  const auto now = Clock::now();
  if (now < next_look_) return;
  next_look_ = now + std::chrono::milliseconds(20);
  look();
}

uint64_t MemoryMeter::peak() {
  look();
  return peak_;
}

void MemoryMeter::look() {
  const uint64_t now = resident_bytes();
  peak_ = std::max(peak_, now > start_ ? now - start_ : 0);
}

}  // namespace weightcast
