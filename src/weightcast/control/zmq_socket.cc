#include "weightcast/control/zmq_socket.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "weightcast/base/check.h"
#include "weightcast/base/fd.h"

namespace weightcast {
namespace {

Error zmq_failure(std::string_view what) {
  const int number = errno;
  if (number == EMFILE || number == ENFILE) return system_error(number, what);
  return Error(Code::kInternal, fmt::format("{}: {}", what, ::zmq_strerror(number)));
}

// Messages that may wait for one peer. Heartbeats alone need `heartbeat_timeout` to fill a tenth of
// it, so that a full queue means a peer that takes nothing.
constexpr int kHighWaterMark = 1000;
// What sockets, their threads and a first connection take. Where libzmq finds too few it ends the
// process.
constexpr int kNeededDescriptors = 32;
// How long a stranger may hold a connection without proving anything.
constexpr int kHandshakeTimeoutMs = 5000;
constexpr int kConnectTimeoutMs = 2000;
constexpr int kBacklog = 1024;

}  // namespace

Result<ZmqContext> ZmqContext::create() {
  WEIGHTCAST_TRY(check_descriptors_left(kNeededDescriptors));
  void* handle = ::zmq_ctx_new();
  if (handle == nullptr) return zmq_failure("zmq_ctx_new");
  return ZmqContext(handle);
}

ZmqContext::~ZmqContext() {
  if (handle_ == nullptr) return;
  while (::zmq_ctx_term(handle_) != 0 && errno == EINTR) {
  }
}

std::span<const std::byte> ZmqFrame::bytes() const {
  return {static_cast<const std::byte*>(::zmq_msg_data(&message_)), ::zmq_msg_size(&message_)};
}

std::string_view ZmqFrame::text() const {
  return {static_cast<const char*>(::zmq_msg_data(&message_)), ::zmq_msg_size(&message_)};
}

int ZmqFrame::source_fd() const { return ::zmq_msg_get(&message_, ZMQ_SRCFD); }

Result<ZmqSocket> ZmqSocket::create(const ZmqContext& context, int type) {
  void* handle = ::zmq_socket(context.handle(), type);
  if (handle == nullptr) return zmq_failure("zmq_socket");
  ZmqSocket socket(handle);
  socket.set(ZMQ_LINGER, 0);
  return socket;
}

ZmqSocket& ZmqSocket::operator=(ZmqSocket&& other) noexcept {
  if (this != &other) {
    close();
    handle_ = std::exchange(other.handle_, nullptr);
  }
  return *this;
}

void ZmqSocket::close() {
  if (handle_ != nullptr) ::zmq_close(std::exchange(handle_, nullptr));
}

void ZmqSocket::set(int option, int value) {
  WEIGHTCAST_CHECK(::zmq_setsockopt(handle_, option, &value, sizeof value) == 0);
}

void ZmqSocket::set_int64(int option, int64_t value) {
  WEIGHTCAST_CHECK(::zmq_setsockopt(handle_, option, &value, sizeof value) == 0);
}

void ZmqSocket::set_text(int option, const std::string& value) {
  WEIGHTCAST_CHECK(::zmq_setsockopt(handle_, option, value.data(), value.size()) == 0);
}

int ZmqSocket::fd() const {
  int fd = -1;
  size_t size = sizeof fd;
  WEIGHTCAST_CHECK(::zmq_getsockopt(handle_, ZMQ_FD, &fd, &size) == 0);
  return fd;
}

std::string ZmqSocket::last_endpoint() const {
  std::array<char, 512> text{};
  size_t size = text.size();
  WEIGHTCAST_CHECK(::zmq_getsockopt(handle_, ZMQ_LAST_ENDPOINT, text.data(), &size) == 0);
  return text.data();
}

int ZmqSocket::bind(const std::string& endpoint) {
  return ::zmq_bind(handle_, endpoint.c_str()) == 0 ? 0 : errno;
}

int ZmqSocket::connect(const std::string& endpoint) {
  return ::zmq_connect(handle_, endpoint.c_str()) == 0 ? 0 : errno;
}

int ZmqSocket::send(std::span<const std::byte> frame, bool more) {
  const int flags = ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0);
  while (::zmq_send(handle_, frame.data(), frame.size(), flags) < 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

std::optional<std::vector<ZmqFrame>> ZmqSocket::receive() {
  std::vector<ZmqFrame> frames;
  while (true) {
    ZmqFrame& frame = frames.emplace_back();
    while (::zmq_msg_recv(frame.handle(), handle_, ZMQ_DONTWAIT) < 0) {
      if (errno != EINTR) return std::nullopt;
    }
    if (::zmq_msg_more(frame.handle()) == 0) return frames;
  }
}

void configure(ZmqSocket& socket, int64_t max_message_size) {
  // The MESSAGE command of CurveZMQ (ZeroMQ RFC 26) wraps a frame into 33 bytes.
  constexpr int64_t kCurveOverhead = 33;
  socket.set_int64(ZMQ_MAXMSGSIZE, max_message_size + kCurveOverhead);
  socket.set(ZMQ_HANDSHAKE_IVL, kHandshakeTimeoutMs);
  socket.set(ZMQ_CONNECT_TIMEOUT, kConnectTimeoutMs);
  socket.set(ZMQ_RECONNECT_IVL, -1);
  socket.set(ZMQ_IMMEDIATE, 1);
  socket.set(ZMQ_SNDHWM, kHighWaterMark);
  socket.set(ZMQ_RCVHWM, kHighWaterMark);
  socket.set(ZMQ_BACKLOG, kBacklog);
}

void use_client_keys(ZmqSocket& socket, const Ticket& ticket) {
  socket.set_text(ZMQ_CURVE_SERVERKEY, ticket.server_public_key);
  socket.set_text(ZMQ_CURVE_PUBLICKEY, ticket.client.public_key);
  socket.set_text(ZMQ_CURVE_SECRETKEY, ticket.client.secret_key);
}

}  // namespace weightcast
