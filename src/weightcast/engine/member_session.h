// The session of every rank but the root: maps the root's slots, receives.
// One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weightcast/base/fd.h"
#include "weightcast/control/group.h"
#include "weightcast/device/device.h"
#include "weightcast/engine/memory_meter.h"
#include "weightcast/engine/session.h"
#include "weightcast/handoff/consumer.h"

namespace weightcast {

class MemberSession final : public Session {
 public:
  static Result<std::unique_ptr<Session>> open(const JoinOptions& options);
  ~MemberSession() override;
  MemberSession(const MemberSession&) = delete;
  MemberSession& operator=(const MemberSession&) = delete;

  [[nodiscard]] const std::string& ticket() const override { return options_.ticket; }
  Status wait_for_ranks() override { return {}; }
  [[nodiscard]] int rank() const override { return group_->rank(); }
  [[nodiscard]] int world_size() const override { return group_->world_size(); }
  [[nodiscard]] std::vector<PeerInfo> peers() const override { return group_->peers(); }
  Result<std::unique_ptr<Sender>> begin_send(uint64_t version,
                                             std::optional<std::vector<TensorMeta>> metas) override;
  Result<std::unique_ptr<Receiver>> begin_receive(std::optional<Duration> patience) override;
  void abort(const Error& cause) override { group_->abort(cause); }

 private:
  MemberSession(const JoinOptions& options, std::unique_ptr<Group> group)
      : options_(options), group_(std::move(group)) {}
  Status open_device();
  Status connect();
  [[nodiscard]] Error explain(const Error& link_error) const;
  Status attach(const Link& link);
  Result<Begin> await_begin(Duration patience);
  Result<std::optional<std::vector<TensorMeta>>> announced_metas(const Begin& begin);
  Status recover();
  Error fail(const Error& error);

  JoinOptions options_;
  MemoryMeter meter_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  Fd link_;
  std::unique_ptr<Group> group_;
  std::unique_ptr<Consumer> consumer_;
  std::vector<TensorMeta> last_metas_;  ///< for versions whose metas are unchanged
  bool version_open_ = false;
  bool failure_told_ = false;  ///< whether the caller knows of the group's failure
};

}  // namespace weightcast
