// ZeroMQ's own round trip between two processes over TCP: REQ/REP or ROUTER/DEALER, plain or with
// CURVE. What the engine's control plane, which is made of it, is measured against.
#include <array>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <zmq.hpp>

#include "bench/common/ranks.h"
#include "bench/common/round_trip.h"

namespace weightcast::bench {
namespace {

struct KeyPair {
  std::array<char, 41> public_key{};
  std::array<char, 41> secret_key{};
};

struct Settings {
  bool router;  ///< ROUTER/DEALER, else REQ/REP
  bool curve;
  KeyPair server;
  KeyPair client;
};

void use_curve_server(zmq::socket_t& socket, const Settings& settings) {
  if (!settings.curve) return;
  socket.set(zmq::sockopt::curve_server, 1);
  socket.set(zmq::sockopt::curve_secretkey, settings.server.secret_key.data());
}

void use_curve_client(zmq::socket_t& socket, const Settings& settings) {
  if (!settings.curve) return;
  socket.set(zmq::sockopt::curve_serverkey, settings.server.public_key.data());
  socket.set(zmq::sockopt::curve_publickey, settings.client.public_key.data());
  socket.set(zmq::sockopt::curve_secretkey, settings.client.secret_key.data());
}

// Answers every question with itself; an empty one ends it.
int answer(const Settings& settings, const std::string& endpoint) {
  zmq::context_t context;
  zmq::socket_t socket(context, settings.router ? zmq::socket_type::dealer : zmq::socket_type::rep);
  use_curve_client(socket, settings);
  socket.connect(endpoint);
  if (settings.router) socket.send(zmq::str_buffer("hello"), zmq::send_flags::none);
  for (;;) {
    zmq::message_t question;
    if (!socket.recv(question) || question.empty()) return EXIT_SUCCESS;
    socket.send(question, zmq::send_flags::none);
  }
}

class Asker {
 public:
  explicit Asker(const Settings& settings)
      : router_(settings.router),
        socket_(context_, settings.router ? zmq::socket_type::router : zmq::socket_type::req) {
    use_curve_server(socket_, settings);
    socket_.bind("tcp://127.0.0.1:*");
  }

  std::string endpoint() const { return socket_.get(zmq::sockopt::last_endpoint); }

  /// ROUTER learns whom to ask from the first message.
  bool meet() {
    if (!router_) return true;
    zmq::message_t hello;
    return socket_.recv(identity_).has_value() && socket_.recv(hello).has_value();
  }

  Status round_trip() {
    send(kRoundTripSize);
    zmq::message_t reply;
    if (router_ && !socket_.recv(reply)) return Error(Code::kPeerLost, "no identity");
    if (!socket_.recv(reply) || reply.size() != kRoundTripSize) {
      return Error(Code::kPeerLost, "no answer");
    }
    return {};
  }

  void say_goodbye() { send(0); }

 private:
  void send(size_t size) {
    if (router_) {
      socket_.send(zmq::message_t(identity_.data(), identity_.size()), zmq::send_flags::sndmore);
    }
    socket_.send(zmq::message_t(question_.data(), size), zmq::send_flags::none);
  }

  bool router_;
  zmq::context_t context_;
  zmq::socket_t socket_;
  zmq::message_t identity_;
  std::array<char, kRoundTripSize> question_{};
};

int run(const Arguments& arguments) {
  Settings settings{.router = arguments.text("pattern", "req") == "router",
                    .curve = arguments.text("curve", "off") == "on",
                    .server = {},
                    .client = {}};
  for (KeyPair* pair : {&settings.server, &settings.client}) {
    if (zmq_curve_keypair(pair->public_key.data(), pair->secret_key.data()) != 0) {
      std::cerr << "this libzmq has no CURVE\n";
      return EXIT_FAILURE;
    }
  }
  auto letter = Letter::create();
  if (!letter) return EXIT_FAILURE;
  auto ranks = Ranks::fork(1, [&](int) { return answer(settings, letter->receive()); });
  if (!ranks) return EXIT_FAILURE;
  Asker asker(settings);
  letter->send(asker.endpoint());
  if (!asker.meet() || !asker.round_trip()) return EXIT_FAILURE;
  const auto ready = make_ready(ranks->pids(), /*kernel=*/"", kRoundTripSize, /*verified=*/true);
  const int status = serve(ready, [&] {
    return measure_round_trips(ranks->pids(), [&] { return asker.round_trip(); });
  });
  asker.say_goodbye();
  return ranks->join() ? status : EXIT_FAILURE;
}

}  // namespace
}  // namespace weightcast::bench

int main(int argc, char** argv) {
  const auto arguments = weightcast::bench::Arguments::parse(argc, argv);
  if (arguments) return weightcast::bench::run(*arguments);
  std::cerr << arguments.error().message() << '\n';
  return EXIT_FAILURE;
}
