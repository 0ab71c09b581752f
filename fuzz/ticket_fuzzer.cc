// A ticket is refused, or it has everything that joining needs and encodes to itself.

#include <span>
#include <string>
#include <string_view>

#include "weightcast/base/check.h"
#include "weightcast/control/base64.h"
#include "weightcast/control/ticket.h"

namespace {

void check_ticket(std::string_view text) {
  using weightcast::Code;
  const auto ticket = weightcast::decode_ticket(text);
  if (!ticket) {
    const Code code = ticket.error().code();
    WEIGHTCAST_CHECK(code == Code::kCorruption || code == Code::kRefused);
    return;
  }
  WEIGHTCAST_CHECK(!ticket->endpoints.empty());
  WEIGHTCAST_CHECK(ticket->session_id.size() == 32);
  WEIGHTCAST_CHECK(ticket->server_public_key.size() == 40);
  WEIGHTCAST_CHECK(ticket->client.public_key.size() == 40);
  WEIGHTCAST_CHECK(ticket->client.secret_key.size() == 40);
  const auto again = weightcast::decode_ticket(weightcast::encode(*ticket));
  WEIGHTCAST_CHECK(again && *again == *ticket);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check_ticket({reinterpret_cast<const char*>(data), size});
  // And as what lies within the text, which mutations of the text seldom reach.
  check_ticket("wc1:" + weightcast::to_base64url(std::as_bytes(std::span(data, size))));
  return 0;
}
