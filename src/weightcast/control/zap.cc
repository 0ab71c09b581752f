#include "weightcast/control/zap.h"

#include <array>

#include "weightcast/base/check.h"
#include "weightcast/base/log.h"

namespace weightcast {
namespace {

constexpr const char* kEndpoint = "inproc://zeromq.zap.01";
// Frames of a request and of a reply (ZeroMQ RFC 27).
constexpr size_t kRequestId = 1;
constexpr size_t kMechanism = 5;
constexpr size_t kCredentials = 6;
constexpr size_t kNumRequestFrames = 7;
constexpr size_t kRawKeySize = 32;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

Result<ZapHandler> ZapHandler::create(const ZmqContext& context, const std::string& client_key) {
  std::array<uint8_t, kRawKeySize> raw{};
  WEIGHTCAST_CHECK(::zmq_z85_decode(raw.data(), client_key.c_str()) != nullptr);
  WEIGHTCAST_ASSIGN(ZmqSocket socket, ZmqSocket::create(context, ZMQ_REP));
  if (const int error = socket.bind(kEndpoint); error != 0) return system_error(error, "zmq_bind");
  return ZapHandler(std::move(socket), std::string(raw.begin(), raw.end()));
}

bool ZapHandler::admits(const std::vector<ZmqFrame>& request) const {
  return request.size() == kNumRequestFrames && request[kMechanism].text() == "CURVE" &&
         request[kCredentials].text() == key_;
}

bool ZapHandler::drain() {
  bool any = false;
  while (const auto request = socket_.receive()) {
    any = true;
    const bool admitted = admits(*request);
    if (!admitted) log_message(LogLevel::kInfo, "a peer without this group's ticket was refused");
    const std::string_view id = request->size() > kRequestId ? (*request)[kRequestId].text() : "";
    const std::array<std::string_view, 6> reply = {
        "1.0", id, admitted ? "200" : "400", admitted ? "" : "not this group's ticket", "", ""};
    for (size_t i = 0; i < reply.size(); ++i) {
      if (socket_.send(bytes_of(reply[i]), i + 1 < reply.size()) != 0) break;
    }
  }
  return any;
}

}  // namespace weightcast
