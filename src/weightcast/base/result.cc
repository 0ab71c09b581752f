#include "weightcast/base/result.h"

#include <cerrno>
#include <system_error>

namespace weightcast {

std::string_view to_string(Code code) {
  switch (code) {
    case Code::kInvalidArgument: return "invalid argument";
    case Code::kBadInput: return "bad input";
    case Code::kPeerLost: return "peer lost";
    case Code::kDeadline: return "deadline passed";
    case Code::kCorruption: return "corruption";
    case Code::kRefused: return "refused";
    case Code::kNoResource: return "no resource";
    case Code::kUnsupported: return "unsupported";
    case Code::kInternal: return "internal";
  }
  return "unknown";
}

Error Error::context(std::string_view what) const& {
  return Error(code_, std::string(what) + ": " + message_, rank_);
}

Error Error::on_rank(int rank) const& { return Error(code_, message_, rank); }

Error system_error(int number, std::string_view what) {
  const bool exhausted = number == ENOMEM || number == ENOSPC || number == EMFILE ||
                         number == ENFILE || number == EFBIG || number == EDQUOT ||
                         number == ENOBUFS;
  return Error(exhausted ? Code::kNoResource : Code::kInternal,
               std::string(what) + ": " + std::generic_category().message(number) +
                   (number == EMFILE ? ": raise `ulimit -n`" : ""));
}

}  // namespace weightcast
