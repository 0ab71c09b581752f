// The root's session: hosts the group, owns the slots, sends.
// One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weightcast/backends/backend.h"
#include "weightcast/base/fd.h"
#include "weightcast/control/group.h"
#include "weightcast/engine/memory_meter.h"
#include "weightcast/engine/session.h"
#include "weightcast/handoff/link.h"
#include "weightcast/handoff/publisher.h"
#include "weightcast/pipeline/comm_thread.h"
#include "weightcast/pipeline/slot_ring.h"

namespace weightcast {

class HostSession final : public Session {
 public:
  static Result<std::unique_ptr<Session>> open(const HostOptions& options);
  ~HostSession() override;
  HostSession(const HostSession&) = delete;
  HostSession& operator=(const HostSession&) = delete;

  [[nodiscard]] const std::string& ticket() const override { return ticket_; }
  Status wait_for_ranks() override;
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int world_size() const override { return group_->world_size(); }
  [[nodiscard]] std::vector<PeerInfo> peers() const override { return group_->peers(); }
  Result<std::unique_ptr<Sender>> begin_send(uint64_t version,
                                             std::optional<std::vector<TensorMeta>> metas) override;
  Result<std::unique_ptr<Receiver>> begin_receive(std::optional<Duration> patience) override;
  void abort(const Error& cause) override { group_->abort(cause); }

 private:
  // What lives from one failure to the next. Destroyed from the last member to the first.
  struct Epoch {
    std::unique_ptr<Publisher> publisher;
    std::unique_ptr<SlotRing> ring;
    std::unique_ptr<CommThread> comm_thread;
  };

  HostSession(const HostOptions& options, const Backend& backend, LinkListener listener)
      : options_(options), backend_(backend), listener_(std::move(listener)) {}
  Status open_device();
  Status gather();
  Status start_epoch();
  Result<Epoch> make_epoch();
  Result<Begin> announce(uint64_t version, const std::optional<std::vector<TensorMeta>>& metas);
  Status recover();
  Error fail(const Error& error);

  HostOptions options_;
  const Backend& backend_;
  MemoryMeter meter_;
  LinkListener listener_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::string ticket_;
  std::vector<Fd> links_;  ///< of ranks 1, 2, …; empty until they have joined
  std::unique_ptr<Group> group_;
  std::optional<Epoch> epoch_;
  uint64_t num_attempts_ = 0;
  std::optional<Hash128> announced_digest_;  ///< of the metas that every member remembers
  bool version_open_ = false;
  bool failure_told_ = false;  ///< whether the caller knows of the group's failure
};

}  // namespace weightcast
