// A ticket is refused, or it has everything that joining needs and encodes to itself.

#include <string_view>

#include "weightcast/base/check.h"
#include "weightcast/control/ticket.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using weightcast::Code;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto ticket = weightcast::decode_ticket(text);
  if (!ticket) {
    const Code code = ticket.error().code();
    WEIGHTCAST_CHECK(code == Code::kCorruption || code == Code::kRefused);
    return 0;
  }
  WEIGHTCAST_CHECK(!ticket->endpoints.empty());
  WEIGHTCAST_CHECK(ticket->session_id.size() == 32);
  WEIGHTCAST_CHECK(ticket->server_public_key.size() == 40);
  WEIGHTCAST_CHECK(ticket->client.public_key.size() == 40);
  WEIGHTCAST_CHECK(ticket->client.secret_key.size() == 40);
  const auto again = weightcast::decode_ticket(weightcast::encode(*ticket));
  WEIGHTCAST_CHECK(again && *again == *ticket);
  return 0;
}
