// A control message is refused, or it is within the limits and encodes to itself.

#include <span>

#include "weightcast/base/check.h"
#include "weightcast/control/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using weightcast::Code;
  const auto message = weightcast::decode_message(std::as_bytes(std::span(data, size)));
  if (!message) {
    const Code code = message.error().code();
    WEIGHTCAST_CHECK(code == Code::kCorruption || code == Code::kRefused);
    WEIGHTCAST_CHECK(!message.error().message().empty());
    return 0;
  }
  // Nothing that decodes is cut or replaced when it is sent on, as an abort is.
  const auto bytes = weightcast::encode(*message);
  WEIGHTCAST_CHECK(bytes.size() <= weightcast::encoded_size_bound(message->body));
  const auto again = weightcast::decode_message(bytes);
  WEIGHTCAST_CHECK(again && *again == *message);
  return 0;
}
