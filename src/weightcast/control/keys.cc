#include <array>
#include <cerrno>

#include <zmq.h>

#include "weightcast/control/limits.h"
#include "weightcast/control/ticket.h"

namespace weightcast {

Result<KeyPair> make_key_pair() {
  std::array<char, kKeySize + 1> public_key{};
  std::array<char, kKeySize + 1> secret_key{};
  if (::zmq_curve_keypair(public_key.data(), secret_key.data()) != 0) {
    return Error(Code::kUnsupported, "zmq_curve_keypair: this libzmq was built without CURVE");
  }
  return KeyPair{public_key.data(), secret_key.data()};
}

}  // namespace weightcast
