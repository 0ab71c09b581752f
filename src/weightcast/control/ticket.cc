#include "weightcast/control/ticket.h"

#include <algorithm>

#include <fmt/format.h>

#include "weightcast/control/base64.h"
#include "weightcast/control/limits.h"
#include "weightcast/control/verified.h"
#include "weightcast/control/wire_codes.h"
#include "weightcast/control/wire_generated.h"

namespace weightcast {
namespace {

constexpr std::string_view kPrefix = "wc1:";
// The alphabet of Z85 (ZeroMQ RFC 32).
constexpr std::string_view kZ85 =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

Error malformed(std::string_view what) {
  return Error(Code::kCorruption, fmt::format("this is no ticket: {}", what));
}

std::string_view view(const flatbuffers::String& text) { return {text.c_str(), text.size()}; }

bool consists_of(std::string_view text, std::string_view alphabet) {
  return text.find_first_not_of(alphabet) == std::string_view::npos;
}

bool is_key(std::string_view text) { return text.size() == kKeySize && consists_of(text, kZ85); }

bool is_endpoint(std::string_view text) {
  const auto printable = [](char c) { return c > ' ' && c <= '~'; };
  return text.size() <= kMaxEndpointSize && text.starts_with("tcp://") &&
         std::ranges::all_of(text, printable);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

Result<Ticket> checked(const wire::Ticket& from) {
  Ticket ticket;
  ticket.session_id = from.session_id()->str();
  if (ticket.session_id.size() != kSessionIdSize ||
      !consists_of(ticket.session_id, "0123456789abcdef")) {
    return malformed("bad session id");
  }
  if (from.endpoints()->size() == 0 || from.endpoints()->size() > kMaxEndpoints) {
    return malformed("no endpoints, or too many");
  }
  for (const flatbuffers::String* endpoint : *from.endpoints()) {
    if (!is_endpoint(view(*endpoint))) return malformed("bad endpoint");
    ticket.endpoints.push_back(endpoint->str());
  }
  for (const auto* key :
       {from.server_public_key(), from.client_public_key(), from.client_secret_key()}) {
    if (!is_key(view(*key))) return malformed("bad key");
  }
  ticket.server_public_key = from.server_public_key()->str();
  ticket.client = {from.client_public_key()->str(), from.client_secret_key()->str()};
  return ticket;
}

}  // namespace

std::string encode(const Ticket& ticket) {
  flatbuffers::FlatBufferBuilder builder;
  const auto session_id = builder.CreateString(ticket.session_id);
  const auto endpoints = builder.CreateVectorOfStrings(ticket.endpoints);
  const auto server = builder.CreateString(ticket.server_public_key);
  const auto client_public = builder.CreateString(ticket.client.public_key);
  const auto client_secret = builder.CreateString(ticket.client.secret_key);
  builder.Finish(wire::CreateTicket(builder, ticket.protocol, session_id, endpoints, server,
                                    client_public, client_secret),
                 kTicketIdentifier);
  return std::string(kPrefix) +
         to_base64url(std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())));
}

Result<Ticket> decode_ticket(std::string_view text) {
  text = trimmed(text);
  if (text.size() > kMaxTicketText) return malformed("too long");
  if (!text.starts_with(kPrefix)) return malformed("it does not begin with wc1:");
  const auto bytes = from_base64url(text.substr(kPrefix.size()));
  if (!bytes) return malformed("not base64url");
  const AlignedBytes aligned(*bytes);
  WEIGHTCAST_TRY(verify_envelope(aligned.bytes(), kTicketIdentifier, "ticket"));
  const auto* ticket = verified<wire::Ticket>(aligned.bytes(), kTicketIdentifier);
  if (ticket == nullptr) return malformed("does not match the schema");
  return checked(*ticket);
}

}  // namespace weightcast
