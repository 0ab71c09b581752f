#include "exit_code.h"

namespace weightcast {

int exit_code(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kUnsupported: return kExitUsage;
    case Code::kBadInput: return kExitBadInput;
    case Code::kPeerLost:
    case Code::kDeadline: return kExitPeerLost;
    case Code::kCorruption: return kExitCorruption;
    case Code::kRefused: return kExitRefused;
    case Code::kNoResource: return kExitNoResource;
    case Code::kInternal: return kExitInternal;
  }
  return kExitInternal;
}

}  // namespace weightcast
