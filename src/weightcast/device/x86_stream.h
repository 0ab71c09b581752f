// The loops that the kernels of every x86 instruction set are made of: non-temporal stores, whole
// lines, several pages in flight.
// Everything is local to the file that includes it: each is compiled for an instruction set of its
// own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "weightcast/device/kernel_set.h"

namespace weightcast {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kPage = 4096;
// Below it the fence at the end of a streamed copy shows. 10 000 cold tensors of 1 to 64 KiB move
// at 0.72 of the speed of large ones with this threshold, at 0.69 with one of 32 KiB.
constexpr size_t kStreamThreshold = 4 * 1024;
// The linear walk asks for lines this far ahead; the hardware's own prefetcher needs longer to
// start than eight lines take.
constexpr size_t kLinearPrefetch = 512;

// A `Step` makes one line of the destination out of `kRatio` lines of the source:
// `make(source)` computes it, `stream` and `store` write it past and through the cache.
// `kControl` is the state of the SSE unit under which it computes.

template <typename Step, size_t kNumLines>
inline void stream_run(std::byte* destination, const std::byte* source, size_t prefetch) {
  for (size_t line = 0; line < kNumLines; ++line) {
    const std::byte* from = source + line * kLine * Step::kRatio;
    for (size_t i = 0; i < Step::kRatio; ++i) {
      _mm_prefetch(reinterpret_cast<const char*>(from + prefetch + i * kLine), _MM_HINT_T0);
    }
    Step::stream(destination + line * kLine, Step::make(from));
  }
}

// Requires: a destination on a line. Never inlined, so that the floating-point work of a cast stays
// between the two changes of the control word around the call.
template <typename Step, Walk kWalk>
[[gnu::noinline]] void stream_lines(std::byte* destination, const std::byte* source, size_t count) {
  constexpr size_t kStretch = kPage / Step::kRatio;  // of destination, in one page of source
  constexpr size_t kBlock = kStretch * kWalk.num_pages;
  constexpr size_t kRun = kLine * kWalk.num_lines;
  constexpr size_t kPrefetch = kWalk.num_pages == 1 ? kLinearPrefetch : kPage * kWalk.num_pages;
  const size_t size = count * kLine;
  size_t done = 0;
  for (; size - done >= kBlock; done += kBlock) {
    for (size_t at = done; at < done + kStretch; at += kRun) {
      for (size_t page = 0; page < kWalk.num_pages; ++page) {
        const size_t place = at + page * kStretch;
        stream_run<Step, kWalk.num_lines>(destination + place, source + place * Step::kRatio,
                                          kPrefetch);
      }
    }
  }
  for (; done < size; done += kLine) {
    stream_run<Step, 1>(destination + done, source + done * Step::kRatio, kLinearPrefetch);
  }
}

template <typename Step>
[[gnu::noinline]] void store_lines(std::byte* destination, const std::byte* source, size_t count) {
  for (size_t line = 0; line < count; ++line) {
    Step::store(destination + line * kLine, Step::make(source + line * kLine * Step::kRatio));
  }
}

inline size_t bytes_to_line(const std::byte* place) {
  return (kLine - reinterpret_cast<uintptr_t>(place) % kLine) % kLine;
}

template <typename Step, Walk kWalk>
void stream_copy(std::byte* destination, const std::byte* source, size_t size) {
  if (size < kStreamThreshold) {
    if (size != 0) std::memcpy(destination, source, size);
    return;
  }
  const size_t head = bytes_to_line(destination);
  std::memcpy(destination, source, head);
  const size_t body = (size - head) / kLine * kLine;
  stream_lines<Step, kWalk>(destination + head, source + head, body / kLine);
  _mm_sfence();  // whoever is told that the copy is done must see it
  std::memcpy(destination + head + body, source + head + body, size - head - body);
}

// Sets the rounding of the SSE unit and takes the caller's flushing of subnormals away.
class ControlWord {
 public:
  explicit ControlWord(unsigned wanted) : before_(_mm_getcsr()) { _mm_setcsr(wanted); }
  ~ControlWord() { _mm_setcsr(before_); }
  ControlWord(const ControlWord&) = delete;
  ControlWord& operator=(const ControlWord&) = delete;

 private:
  unsigned before_;
};
constexpr unsigned kRoundToNearest = 0x1f80;  // every exception masked
constexpr unsigned kRoundToZero = 0x7f80;

template <typename Step>
void cast_cached(std::byte* destination, const std::byte* source, size_t count) {
  constexpr size_t kPerLine = kLine / Step::kWidth;
  const size_t num_lines = count / kPerLine;
  {
    const ControlWord control(Step::kControl);
    store_lines<Step>(destination, source, num_lines);
  }
  Step::narrow(destination + num_lines * kLine, source + num_lines * kLine * Step::kRatio,
               count % kPerLine);
}

template <typename Step, Walk kWalk>
void cast_streamed(std::byte* destination, const std::byte* source, size_t count) {
  const size_t misplaced = bytes_to_line(destination);
  if (count * Step::kWidth < kStreamThreshold || misplaced % Step::kWidth != 0) {
    return cast_cached<Step>(destination, source, count);
  }
  Step::narrow(destination, source, misplaced / Step::kWidth);
  destination += misplaced;
  source += misplaced * Step::kRatio;
  const size_t left = count - misplaced / Step::kWidth;
  const size_t num_lines = left * Step::kWidth / kLine;
  {
    const ControlWord control(Step::kControl);
    stream_lines<Step, kWalk>(destination, source, num_lines);
  }
  _mm_sfence();
  Step::narrow(destination + num_lines * kLine, source + num_lines * kLine * Step::kRatio,
               left - num_lines * kLine / Step::kWidth);
}

template <typename Step>
constexpr CastLoops cast_loops() {
  static_assert(kNumWalks == 6);
  return {cast_cached<Step>,
          {cast_streamed<Step, kWalks[0]>, cast_streamed<Step, kWalks[1]>,
           cast_streamed<Step, kWalks[2]>, cast_streamed<Step, kWalks[3]>,
           cast_streamed<Step, kWalks[4]>, cast_streamed<Step, kWalks[5]>}};
}

template <typename Step>
constexpr KernelSet kernel_set(const char* name, const CastLoops (&casts)[kNumConversions]) {
  return {
      name,
      {stream_copy<Step, kWalks[0]>, stream_copy<Step, kWalks[1]>, stream_copy<Step, kWalks[2]>,
       stream_copy<Step, kWalks[3]>, stream_copy<Step, kWalks[4]>, stream_copy<Step, kWalks[5]>},
      {casts[0], casts[1], casts[2], casts[3], casts[4]}};
}

}  // namespace
}  // namespace weightcast
