#include "progress.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "output.h"
#include "weightcast/base/size.h"

namespace weightcast {
namespace {

constexpr Duration kRedrawEvery{100};
constexpr size_t kBarWidth = 30;

void write_terminal(const std::string& text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
  static_cast<void>(std::fflush(stderr));
}

}  // namespace

ProgressBar::ProgressBar(std::string label, uint64_t total)
    : label_(std::move(label)),
      total_(total),
      shown_(stderr_is_terminal()),
      started_(Clock::now()),
      drawn_(started_) {}

ProgressBar::~ProgressBar() {
  if (!shown_) return;
  if (done_ == total_) {
    draw();
    write_terminal("\n");
  } else {
    write_terminal("\r\x1b[K");
  }
}

void ProgressBar::add(uint64_t size) {
  done_ += size;
  if (!shown_ || Clock::now() - drawn_ < kRedrawEvery) return;
  drawn_ = Clock::now();
  draw();
}

void ProgressBar::draw() const {
  const double part = total_ == 0 ? 1 : static_cast<double>(done_) / static_cast<double>(total_);
  const auto filled = std::min(kBarWidth, static_cast<size_t>(part * kBarWidth));
  const double seconds = std::max(seconds_between(started_, Clock::now()), 1e-9);
  const std::string bar = std::string(filled, '=') + std::string(kBarWidth - filled, ' ');
  write_terminal(fmt::format("\r\x1b[K{} [{}] {:3.0f} % of {}, {:.2f} GB/s", label_,
                             styled_err(Style::kGreen, bar), part * 100, format_size(total_),
                             static_cast<double>(done_) / seconds / 1e9));
}

}  // namespace weightcast
