#include "weightcast/handoff/link.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weightcast/base/check.h"
#include "weightcast/base/log.h"
#include "weightcast/base/random.h"
#include "weightcast/base/size.h"

namespace weightcast {
namespace {

constexpr uint64_t kHelloMagic = 0x314b4e4c54534357;  // "WCSTLNK1"
constexpr std::byte kAccepted{1};
// Strangers: how many may be connected without having said who they are, and for how long.
constexpr size_t kMaxPending = 64;
constexpr Duration kPatience{1000};
constexpr Duration kPatienceWhenFull{100};
// What one recvmsg can bring at most (SCM_MAX_FD of the kernel), so that descriptors are cut off
// only where this process has no room for them.
constexpr size_t kMaxReceivedFds = 253;

struct HelloMessage {
  uint64_t magic = kHelloMagic;
  std::array<char, kLinkTokenSize> token{};
  int64_t rank = 0;
};

Result<Fd> create_socket(int flags) {
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (!fd.valid()) return system_error(errno, "socket");
  return fd;
}

struct Address {
  sockaddr_un data{};
  socklen_t size = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&data); }
};

Result<Address> abstract_address(const std::string& name) {
  Address address;
  if (name.empty() || name.size() >= sizeof address.data.sun_path) {
    return Error(Code::kCorruption, fmt::format("a link name of {} bytes", name.size()));
  }
  address.data.sun_family = AF_UNIX;
  std::memcpy(address.data.sun_path + 1, name.data(), name.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

void drop(std::string_view why) {
  log_message(LogLevel::kWarn, fmt::format("dropped a connection to the link: {}", why));
}

// Accepts connections and asks each who it is, all at once, until every rank has its link.
class Reception {
 public:
  Reception(const Fd& listener, const std::string& token, int num_links)
      : listener_(listener), token_(token), links_(static_cast<size_t>(num_links)) {}

  [[nodiscard]] bool complete() const { return num_linked_ == links_.size(); }
  std::vector<Fd> take() { return std::move(links_); }
  [[nodiscard]] std::vector<size_t> missing_ranks() const;

  // One round of waiting. Errors: kDeadline only once `deadline` has passed.
  Status turn(int failure_fd, Deadline deadline);

 private:
  struct Pending {
    Fd fd;
    Clock::time_point since;
  };

  [[nodiscard]] Duration patience() const {
    return pending_.size() < kMaxPending ? kPatience : kPatienceWhenFull;
  }
  [[nodiscard]] Clock::time_point next_expiry(Deadline deadline) const;
  Status accept_one();
  bool hear(Pending& pending);  // false: said nothing yet
  void admit(Fd fd, const HelloMessage& hello);
  void drop_silent();

  const Fd& listener_;
  const std::string& token_;
  std::vector<Fd> links_;
  size_t num_linked_ = 0;
  std::vector<Pending> pending_;  // oldest first
  std::vector<pollfd> polled_;
};

std::vector<size_t> Reception::missing_ranks() const {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < links_.size(); ++i) {
    if (!links_[i].valid()) ranks.push_back(i + 1);
  }
  return ranks;
}

Clock::time_point Reception::next_expiry(Deadline deadline) const {
  if (pending_.empty()) return deadline.time();
  return std::min(deadline.time(), pending_.front().since + patience());
}

Status Reception::turn(int failure_fd, Deadline deadline) {
  const bool full = pending_.size() >= kMaxPending;
  polled_.assign({{failure_fd, POLLIN, 0}, {full ? -1 : listener_.get(), POLLIN, 0}});
  for (const Pending& pending : pending_) polled_.push_back({pending.fd.get(), POLLIN, 0});
  const int timeout = Deadline::at(next_expiry(deadline)).poll_timeout_ms();
  if (::poll(polled_.data(), polled_.size(), timeout) < 0 && errno != EINTR) {
    return system_error(errno, "poll");
  }
  if (polled_[0].revents != 0) return Error(Code::kPeerLost, "the group failed");
  std::vector<Pending> silent;
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (polled_[i + 2].revents == 0 || !hear(pending_[i])) silent.push_back(std::move(pending_[i]));
  }
  pending_ = std::move(silent);
  drop_silent();
  if (polled_[1].revents != 0) WEIGHTCAST_TRY(accept_one());
  return {};
}

Status Reception::accept_one() {
  Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) {
    const bool passing = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    return passing ? Status() : system_error(errno, "accept a link");
  }
  Pending pending{std::move(fd), Clock::now()};
  if (!hear(pending)) pending_.push_back(std::move(pending));
  return {};
}

bool Reception::hear(Pending& pending) {
  HelloMessage hello;
  // Without a control buffer the kernel throws away descriptors that a stranger sends.
  const ssize_t size = ::recv(pending.fd.get(), &hello, sizeof hello, MSG_TRUNC | MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (size != sizeof hello || hello.magic != kHelloMagic) {
    drop(size <= 0 ? "it hung up" : "it does not speak our protocol");
  } else if (!equal_in_constant_time({hello.token.data(), hello.token.size()}, token_)) {
    drop("its token is wrong");
  } else {
    admit(std::move(pending.fd), hello);
  }
  return true;
}

void Reception::admit(Fd fd, const HelloMessage& hello) {
  if (hello.rank < 1 || hello.rank > static_cast<int64_t>(links_.size())) {
    return drop(fmt::format("there is no rank {}", hello.rank));
  }
  Fd& link = links_[static_cast<size_t>(hello.rank) - 1];
  if (link.valid()) return drop(fmt::format("rank {} has its link already", hello.rank));
  if (auto sent = send_message(fd, std::span(&kAccepted, 1), {}); !sent) {
    return drop(fmt::format("rank {}: {}", hello.rank, sent.error().message()));
  }
  link = std::move(fd);
  ++num_linked_;
}

void Reception::drop_silent() {
  const Clock::time_point now = Clock::now();
  while (!pending_.empty() && now >= pending_.front().since + patience()) {
    drop("it did not say who it is");
    pending_.erase(pending_.begin());
  }
}

// The descriptors of all SCM_RIGHTS messages in `header`, owned.
std::vector<Fd> take_fds(msghdr& header) {
  std::vector<Fd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      fds.emplace_back(fd);
    }
  }
  return fds;
}

// Nothing if no message is there after all.
Result<std::optional<LinkMessage>> try_receive(const Fd& link) {
  LinkMessage message;
  message.bytes.resize(kMaxLinkMessageSize);
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMaxReceivedFds * sizeof(int))> control{};
  iovec bytes{message.bytes.data(), message.bytes.size()};
  msghdr header{};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(link.get(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (size < 0 && errno != ECONNRESET) return system_error(errno, "receive on the link");
  message.fds = take_fds(header);
  if (size <= 0) return Error(Code::kPeerLost, "the link hung up");
  if ((header.msg_flags & MSG_CTRUNC) != 0) {
    return Error(Code::kNoResource,
                 "no room for the descriptors that the link brought: raise `ulimit -n`");
  }
  if ((header.msg_flags & MSG_TRUNC) != 0 || message.fds.size() > kMaxLinkFds) {
    return Error(Code::kCorruption, "a message on the link is too large");
  }
  message.bytes.resize(static_cast<size_t>(size));
  return message;
}

// Connects, waiting while the listener's queue is full.
Status connect_before(const Fd& fd, const Address& address, Deadline deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::microseconds>(deadline.remaining()).count();
    if (left == 0) return Error(Code::kDeadline, "the leader of this host accepts no links");
    const timeval timeout{left / 1'000'000, left % 1'000'000};
    if (::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) != 0) {
      return system_error(errno, "setsockopt SO_SNDTIMEO");
    }
    if (::connect(fd.get(), address.get(), address.size) == 0) return {};
    if (errno == ECONNREFUSED) {
      return Error(Code::kUnsupported, "no leader listens here: it is on another host");
    }
    if (errno != EINTR && errno != EAGAIN) return system_error(errno, "connect to the link");
  }
}

}  // namespace

Result<LinkListener> LinkListener::create() {
  WEIGHTCAST_ASSIGN(Fd fd, create_socket(SOCK_NONBLOCK));
  std::string name = "weightcast-" + random_hex(16);
  WEIGHTCAST_ASSIGN(const Address address, abstract_address(name));
  if (::bind(fd.get(), address.get(), address.size) != 0) return system_error(errno, "bind a link");
  if (::listen(fd.get(), SOMAXCONN) != 0) return system_error(errno, "listen for links");
  std::string token(kLinkTokenSize, '\0');
  fill_random(std::as_writable_bytes(std::span(token)));
  return LinkListener(std::move(fd), std::move(name), std::move(token));
}

Result<std::vector<Fd>> LinkListener::accept_all(int num_links, int failure_fd, Deadline deadline) {
  WEIGHTCAST_CHECK(num_links >= 0);
  const Clock::time_point start = Clock::now();
  Reception reception(fd_, token_, num_links);
  while (!reception.complete()) {
    WEIGHTCAST_TRY(reception.turn(failure_fd, deadline));
    if (!reception.complete() && deadline.expired()) {
      return Error(Code::kDeadline, fmt::format("no link from rank {} for {}",
                                                fmt::join(reception.missing_ranks(), ", "),
                                                format_duration(Clock::now() - start)));
    }
  }
  return reception.take();
}

Result<Fd> connect_link(const std::string& name, const std::string& token, int rank,
                        Deadline deadline, int failure_fd) {
  WEIGHTCAST_ASSIGN(const Address address, abstract_address(name));
  HelloMessage hello{.rank = rank};
  if (token.size() != hello.token.size()) {
    return Error(Code::kCorruption, fmt::format("a link token of {} bytes", token.size()));
  }
  std::ranges::copy(token, hello.token.begin());
  WEIGHTCAST_ASSIGN(Fd fd, create_socket(0));
  WEIGHTCAST_TRY(connect_before(fd, address, deadline));
  const Error refused(Code::kRefused,
                      fmt::format("the leader of this host refused the link of rank {}", rank));
  auto sent = send_message(fd, std::as_bytes(std::span(&hello, 1)), {});
  if (!sent) return sent.error().code() == Code::kPeerLost ? refused : sent.error();
  const auto answer = receive_message(fd, failure_fd, deadline);
  if (!answer) return answer.error().code() == Code::kPeerLost ? refused : answer.error();
  if (answer->bytes != std::vector{kAccepted} || !answer->fds.empty()) return refused;
  return fd;
}

Status send_message(const Fd& link, std::span<const std::byte> bytes, std::span<const int> fds) {
  WEIGHTCAST_CHECK(!bytes.empty() && bytes.size() <= kMaxLinkMessageSize);
  WEIGHTCAST_CHECK(fds.size() <= kMaxLinkFds);
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMaxLinkFds * sizeof(int))> control{};
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};  // sendmsg only reads
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  while (::sendmsg(link.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET) return Error(Code::kPeerLost, "the link hung up");
    if (errno == EAGAIN) return Error(Code::kPeerLost, "the link's other end does not read");
    return system_error(errno, "send on the link");
  }
  return {};
}

Result<LinkMessage> receive_message(const Fd& link, int failure_fd, Deadline deadline) {
  const std::array<int, 2> fds{failure_fd, link.get()};
  while (true) {
    WEIGHTCAST_ASSIGN(const size_t ready, wait_readable(fds, deadline));
    if (ready == 0) return Error(Code::kPeerLost, "the group failed");
    WEIGHTCAST_ASSIGN(auto message, try_receive(link));
    if (message) return *std::move(message);
  }
}

}  // namespace weightcast
