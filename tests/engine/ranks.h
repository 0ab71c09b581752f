// The ranks of a session for tests: receivers are child processes, the root is the test itself.
// One thread; made before any other thread exists.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "child.h"
#include "weightcast/base/fd.h"
#include "weightcast/engine/session.h"

namespace weightcast::testing {

/// What a receiving process does with its session; returns what went wrong, or nothing.
using RunReceiver = std::function<std::string(Session& session)>;

/// Child processes that wait for a ticket, join and run.
class Receivers {
 public:
  /// Child i runs `runs[i]` and wants rank i + 1.
  explicit Receivers(std::vector<RunReceiver> runs);

  /// Gives the ticket to every child.
  void start(const std::string& ticket);
  Child& child(size_t index) { return children_[index]; }
  /// Waits for all and returns their reports, one after the other; empty when all went well.
  std::string report();

 private:
  std::vector<Fd> ticket_pipes_;
  std::vector<Child> children_;
};

/// Sends `metas` with the pattern of `version`. The error is that of the first call that failed.
Result<TransferStats> send_pattern(Session& session, const std::vector<TensorMeta>& metas,
                                   uint64_t version, bool announce = true);

/// Receives one version, compares names, order, dtypes, shapes and every byte with the pattern.
/// Returns what went wrong, or nothing.
std::string receive_pattern(Session& session, const std::vector<TensorMeta>& metas,
                            uint64_t version);

}  // namespace weightcast::testing
