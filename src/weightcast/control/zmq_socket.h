// Sockets of libzmq without exceptions.
// One thread; a socket may be handed to another thread by starting it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <zmq.h>

#include "weightcast/base/result.h"
#include "weightcast/control/ticket.h"

namespace weightcast {

/// Owns a context; its end waits until all of its sockets, which end first, were flushed or their
/// linger is over.
class ZmqContext {
 public:
  static Result<ZmqContext> create();
  ~ZmqContext();
  ZmqContext(ZmqContext&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ZmqContext& operator=(ZmqContext&&) = delete;
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;

  [[nodiscard]] void* handle() const { return handle_; }

 private:
  explicit ZmqContext(void* handle) : handle_(handle) {}
  void* handle_;
};

/// One frame that arrived.
class ZmqFrame {
 public:
  ZmqFrame() { ::zmq_msg_init(&message_); }
  ~ZmqFrame() { ::zmq_msg_close(&message_); }
  ZmqFrame(ZmqFrame&& other) noexcept {
    ::zmq_msg_init(&message_);
    ::zmq_msg_move(&message_, &other.message_);
  }
  ZmqFrame& operator=(ZmqFrame&&) = delete;
  ZmqFrame(const ZmqFrame&) = delete;
  ZmqFrame& operator=(const ZmqFrame&) = delete;

  std::span<const std::byte> bytes() const;
  std::string_view text() const;
  /// The descriptor of the connection that it came over, or -1.
  int source_fd() const;
  zmq_msg_t* handle() { return &message_; }

 private:
  // libzmq's accessors are not all const-correct.
  mutable zmq_msg_t message_;
};

class ZmqSocket {
 public:
  ZmqSocket() = default;
  /// `type` as zmq_socket(3) has it. Does not linger unless told so.
  static Result<ZmqSocket> create(const ZmqContext& context, int type);
  ~ZmqSocket() { close(); }
  ZmqSocket(ZmqSocket&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ZmqSocket& operator=(ZmqSocket&& other) noexcept;
  ZmqSocket(const ZmqSocket&) = delete;
  ZmqSocket& operator=(const ZmqSocket&) = delete;

  [[nodiscard]] void* handle() const { return handle_; }
  [[nodiscard]] bool valid() const { return handle_ != nullptr; }
  void close();

  /// Requires: an option and a value that libzmq takes.
  void set(int option, int value);
  void set_int64(int option, int64_t value);
  void set_text(int option, const std::string& value);
  /// Descriptor that becomes readable (edge-triggered) when something may have arrived.
  [[nodiscard]] int fd() const;
  [[nodiscard]] std::string last_endpoint() const;

  /// Zero or the errno of libzmq.
  int bind(const std::string& endpoint);
  int connect(const std::string& endpoint);
  /// Never blocks. Zero or the errno of libzmq; `EAGAIN` when the queue is full.
  int send(std::span<const std::byte> frame, bool more);
  /// All frames of the next message, or nothing if there is none. Never blocks.
  std::optional<std::vector<ZmqFrame>> receive();

 private:
  explicit ZmqSocket(void* handle) : handle_(handle) {}
  void* handle_ = nullptr;
};

/// The settings that both ends of a control connection share: CURVE is set up by the callers.
void configure(ZmqSocket& socket, int64_t max_message_size);
/// Has `socket` prove that it holds the ticket, and accept only the root of the ticket.
void use_client_keys(ZmqSocket& socket, const Ticket& ticket);

}  // namespace weightcast
