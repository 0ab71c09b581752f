// What every backend of the table must do: sessions of several ranks, real processes, every byte
// compared on every rank.

#include <csignal>

#include <gtest/gtest.h>

#include "models.h"
#include "ranks.h"
#include "weightcast/backends/backend.h"
#include "weightcast/engine/session.h"

namespace weightcast {
namespace {

using testing::awkward_model;
using testing::random_model;
using testing::receive_pattern;
using testing::Receivers;
using testing::RunReceiver;
using testing::send_pattern;

constexpr uint64_t kBucketSize = 256 * 1024;

struct Case {
  std::string backend;
  int num_receivers;
};

class Conformance : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto backend = find_backend(GetParam().backend);
    ASSERT_TRUE(backend);
    const Status usable = (*backend)->probe();
    if (!usable) GTEST_SKIP() << usable.error().message();
  }

  HostOptions options() const {
    return {.num_receivers = GetParam().num_receivers,
            .bucket_size = kBucketSize,
            .backend = GetParam().backend,
            .timeout = Duration(30'000),
            .heartbeat_timeout = Duration(10'000)};
  }

  std::vector<RunReceiver> everybody(const RunReceiver& run) const {
    return std::vector<RunReceiver>(static_cast<size_t>(GetParam().num_receivers), run);
  }
};

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message()

TEST_P(Conformance, DeliversEveryByteOfManyVersionsToEveryRank) {
  const auto metas = awkward_model(kBucketSize);
  Receivers receivers(everybody([&](Session& session) {
    std::string wrong;
    for (uint64_t version = 1; version <= 4; ++version) {
      wrong += receive_pattern(session, metas, version);
    }
    return wrong;
  }));
  auto session = Session::host(options());
  ASSERT_OK(session);
  receivers.start((*session)->ticket());
  for (uint64_t version = 1; version <= 4; ++version) {
    // The second version repeats the metas, the third does not announce them.
    const auto stats = send_pattern(**session, metas, version, version != 3);
    ASSERT_OK(stats);
    EXPECT_EQ(stats->version, version);
    EXPECT_EQ(stats->tensors, metas.size());
    EXPECT_TRUE(stats->lost.empty());
    EXPECT_LE(stats->bytes_on_wire, stats->bytes * 101 / 100 + 256 * metas.size());
    ASSERT_EQ(stats->ranks.size(), static_cast<size_t>(GetParam().num_receivers) + 1);
    for (const RankStats& rank : stats->ranks) EXPECT_EQ(rank.bytes, stats->bytes);
  }
  EXPECT_EQ(receivers.report(), "");
}

TEST_P(Conformance, AgreesOnADigestThatDependsOnEveryByteButNotOnBuckets) {
  const auto metas = random_model(50, 100'000, 3);
  std::vector<Hash128> digests;
  for (const uint64_t bucket_size : {64u * 1024, 256u * 1024}) {
    Receivers receivers(everybody([&](Session& session) {
      std::string wrong = receive_pattern(session, metas, 1);
      return wrong += receive_pattern(session, metas, 2);
    }));
    HostOptions options = this->options();
    options.bucket_size = bucket_size;
    auto session = Session::host(options);
    ASSERT_OK(session);
    receivers.start((*session)->ticket());
    for (const uint64_t version : {1u, 2u}) {
      const auto stats = send_pattern(**session, metas, version);
      ASSERT_OK(stats);
      EXPECT_EQ(stats->digest_kind, DigestKind::kBytes);
      digests.push_back(stats->digest);
    }
    EXPECT_EQ(receivers.report(), "");
  }
  EXPECT_EQ(digests[0], digests[2]);
  EXPECT_EQ(digests[1], digests[3]);
  EXPECT_NE(digests[0], digests[1]);
}

TEST_P(Conformance, DeliversWithoutChecksumsAndWithoutOverlap) {
  const auto metas = awkward_model(kBucketSize);
  Receivers receivers(
      everybody([&](Session& session) { return receive_pattern(session, metas, 1); }));
  HostOptions options = this->options();
  options.checksum = false;
  options.overlap = false;
  auto session = Session::host(options);
  ASSERT_OK(session);
  receivers.start((*session)->ticket());
  const auto stats = send_pattern(**session, metas, 1);
  ASSERT_OK(stats);
  EXPECT_EQ(stats->digest_kind, DigestKind::kMetas);
  EXPECT_EQ(receivers.report(), "");
}

// A receiver that gives up in version 1 and takes version 2.
std::string fail_then_receive(Session& session, const std::vector<TensorMeta>& metas) {
  {
    auto receiver = session.begin_receive();
    if (!receiver) return receiver.error().message();
    if (auto lease = (*receiver)->next(); !lease) return lease.error().message();
    session.abort(Error(Code::kNoResource, "the disk is full"));
    // A lease that was not taken is no success.
    if ((*receiver)->finish([]() -> Status { return {}; })) return "finished an aborted version";
  }
  return receive_pattern(session, metas, 2);
}

std::string see_failure_then_receive(Session& session, const std::vector<TensorMeta>& metas) {
  const std::string failed = receive_pattern(session, metas, 1);
  if (failed.find("the disk is full") == std::string::npos) return "first cause lost: " + failed;
  return receive_pattern(session, metas, 2);
}

TEST_P(Conformance, TellsEveryRankTheFirstCauseAndDeliversTheNextVersion) {
  const auto metas = awkward_model(kBucketSize);
  auto runs = everybody([&](Session& session) { return see_failure_then_receive(session, metas); });
  runs.back() = [&](Session& session) { return fail_then_receive(session, metas); };
  Receivers receivers(std::move(runs));
  auto session = Session::host(options());
  ASSERT_OK(session);
  receivers.start((*session)->ticket());
  const auto failed = send_pattern(**session, metas, 1);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::kNoResource);
  EXPECT_EQ(failed.error().rank(), GetParam().num_receivers);
  EXPECT_NE(failed.error().message().find("the disk is full"), std::string::npos);
  const auto stats = send_pattern(**session, metas, 2);
  ASSERT_OK(stats);
  EXPECT_EQ(receivers.report(), "");
}

TEST_P(Conformance, AbortsTheVersionWhenItsSenderIsDropped) {
  const auto metas = random_model(20, 100'000, 5);
  Receivers receivers(everybody([&](Session& session) {
    const std::string failed = receive_pattern(session, metas, 1);
    if (failed.find("dropped by its sender") == std::string::npos) return "saw: " + failed;
    return receive_pattern(session, metas, 2);
  }));
  auto session = Session::host(options());
  ASSERT_OK(session);
  receivers.start((*session)->ticket());
  {
    auto sender = (*session)->begin_send(1, metas);
    ASSERT_OK(sender);
    const std::vector<std::byte> bytes(byte_size(metas[0]));
    ASSERT_TRUE((*sender)->push(metas[0], bytes));
  }
  ASSERT_OK(send_pattern(**session, metas, 2));
  EXPECT_EQ(receivers.report(), "");
}

TEST_P(Conformance, RefusesToSendOnAReceivingRankAndTheReverse) {
  Receivers receivers(everybody([&](Session& session) {
    const auto sender = session.begin_send(1, {});
    if (sender || sender.error().code() != Code::kInvalidArgument) return "could send";
    return "";
  }));
  auto session = Session::host(options());
  ASSERT_OK(session);
  receivers.start((*session)->ticket());
  ASSERT_OK((*session)->wait_for_ranks());
  const auto receiver = (*session)->begin_receive();
  ASSERT_FALSE(receiver);
  EXPECT_EQ(receiver.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(receivers.report(), "");
}

TEST_P(Conformance, TellsTheCallerWhoHoldsEverySlotAtOnce) {
  const auto metas = random_model(100, 200'000, 11);
  Receivers receivers(everybody([&](Session& session) -> std::string {
    auto receiver = session.begin_receive();
    if (!receiver) return receiver.error().message();
    std::vector<BucketLease> held;
    while (true) {
      auto lease = (*receiver)->next();
      if (!lease) {
        return lease.error().code() == Code::kInvalidArgument ? "" : lease.error().message();
      }
      if (!*lease) return "every bucket fitted into the ring";
      held.push_back(std::move(**lease));
    }
  }));
  auto session = Session::host(options());
  ASSERT_OK(session);
  receivers.start((*session)->ticket());
  EXPECT_FALSE(send_pattern(**session, metas, 1));  // the receivers dropped the version
  EXPECT_EQ(receivers.report(), "");
}

TEST_P(Conformance, FailsTheVersionWhenTensorsWereNotTaken) {
  const auto metas = random_model(30, 1000, 13);
  Receivers receivers(everybody([&](Session& session) -> std::string {
    auto receiver = session.begin_receive();
    if (!receiver) return receiver.error().message();
    while (true) {
      auto lease = (*receiver)->next();
      // Another rank may have failed first.
      if (!lease)
        return lease.error().message().find("were taken") != std::string::npos ? ""
                                                                               : "another cause";
      if (!*lease) break;
    }
    const auto stats = (*receiver)->finish([]() -> Status { return {}; });
    if (stats) return "finished without the tensors";
    const bool names_some =
        stats.error().message().find("model.layers.9.weight") != std::string::npos;
    return names_some || session.rank() > 1 ? "" : stats.error().message();
  }));
  auto session = Session::host(options());
  ASSERT_OK(session);
  receivers.start((*session)->ticket());
  EXPECT_FALSE(send_pattern(**session, metas, 1));
  EXPECT_EQ(receivers.report(), "");
}

TEST_P(Conformance, SeesAKilledReceiverAndRefusesTheNextVersion) {
  const auto metas = random_model(40, 100'000, 17);
  auto runs = everybody([&](Session& session) -> std::string {
    const std::string failed = receive_pattern(session, metas, 1);
    return failed.find("lost") == std::string::npos ? "saw: " + failed : "";
  });
  runs.back() = [](Session& session) -> std::string {
    auto receiver = session.begin_receive();
    if (!receiver) return receiver.error().message();
    auto lease = (*receiver)->next();
    if (!lease) return lease.error().message();
    ::raise(SIGKILL);
    return "";
  };
  Receivers receivers(std::move(runs));
  auto session = Session::host(options());
  ASSERT_OK(session);
  receivers.start((*session)->ticket());
  const auto failed = send_pattern(**session, metas, 1);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::kPeerLost);
  EXPECT_EQ(failed.error().rank(), GetParam().num_receivers);
  const auto next = send_pattern(**session, metas, 2);
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code(), Code::kPeerLost);
  const std::string report = receivers.report();
  EXPECT_EQ(report.find("saw:"), std::string::npos) << report;
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const Backend& backend : backends()) {
    for (const int num_receivers : {1, 2, 4}) {
      result.push_back({std::string(backend.name), num_receivers});
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Backends, Conformance, ::testing::ValuesIn(cases()), [](const auto& test) {
  return test.param.backend + "_to_" + std::to_string(test.param.num_receivers);
});

}  // namespace
}  // namespace weightcast
