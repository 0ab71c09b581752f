#include "weightcast/backends/host/solo_communicator.h"

#include <atomic>

#include <fmt/format.h>

#include "weightcast/base/check.h"

namespace weightcast {
namespace {

class SoloCommunicator final : public Communicator {
 public:
  explicit SoloCommunicator(CommConfig config) : config_(std::move(config)) {}

  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int world_size() const override { return 1; }

  Status broadcast(MemoryView bytes, int root, Stream&, Deadline) override {
    WEIGHTCAST_CHECK(root == 0);
    WEIGHTCAST_CHECK(is_slot_prefix(config_, bytes));
    WEIGHTCAST_TRY(poll_error());
    bytes_on_wire_ += bytes.size();
    return {};
  }

  Status poll_error() override {
    // Pairs with `abort`; only the flag itself is passed on.
    if (aborted_.load(std::memory_order_relaxed)) {
      return Error(Code::kInternal, "the communicator was aborted", 0);
    }
    return {};
  }

  void abort() noexcept override { aborted_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] uint64_t bytes_on_wire() const override { return bytes_on_wire_; }

 private:
  const CommConfig config_;
  uint64_t bytes_on_wire_ = 0;
  std::atomic<bool> aborted_ = false;
};

}  // namespace

Result<std::unique_ptr<Communicator>> create_solo_communicator(const CommConfig& config) {
  WEIGHTCAST_TRY(validate(config));
  if (config.world_size != 1) {
    return Error(Code::kUnsupported,
                 fmt::format("the host backend moves nothing between hosts: {} ranks, it has 1",
                             config.world_size));
  }
  return std::make_unique<SoloCommunicator>(config);
}

}  // namespace weightcast
