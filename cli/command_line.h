// The program's arguments as values.
// Values, and a pure function but for the environment that it reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "weightcast/engine/options.h"

namespace weightcast {

struct SendCommand {
  std::vector<std::string> model;
  HostOptions host;
  std::string ticket_file;  ///< empty: the ticket goes to standard error; `-`: to standard output
  int versions = 1;
  bool json = false;
};

struct ReceiveCommand {
  std::string ticket_file;  ///< `-`: standard input
  std::string out;          ///< empty with `verify_only`
  std::optional<int> rank;
  Duration timeout{60'000};
  int versions = 1;
  bool verify_only = false;
  bool json = false;
};

struct QuickstartCommand {
  std::string model;  ///< empty: WEIGHTCAST_QUICKSTART_MODEL
  int receivers = 2;
  uint64_t bucket_size = 64 * kMiB;
};

struct PlanCommand {
  std::vector<std::string> model;
  uint64_t bucket_size = 0;
  bool json = false;
};

struct DoctorCommand {
  bool json = false;
};

/// Arguments that ask for a text and an end: a help, the version, or what is wrong with them.
struct TextCommand {
  std::string text;
  bool usage_error = false;
  bool json = false;  ///< --json is among the arguments
};

using Command = std::variant<TextCommand, SendCommand, ReceiveCommand, QuickstartCommand,
                             PlanCommand, DoctorCommand>;

/// What `argv` asks for; wrong usage is a `TextCommand` that says so.
Command parse_command_line(int argc, const char* const* argv);

}  // namespace weightcast
