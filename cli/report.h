// What a command says at its end: tables for people, one JSON object for programs.
// One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "interrupts.h"
#include "weightcast/base/result.h"
#include "weightcast/engine/session.h"

namespace weightcast {

/// What became of `send` or `receive`.
struct TransferReport {
  std::string_view command;
  int rank = -1;       ///< -1: never joined; errors that name no rank happened on this one
  int world_size = 0;  ///< the root included
  std::vector<TransferStats> versions{};
  std::vector<std::string> files{};  ///< written by `receive`, one a version
  std::optional<Error> error{};
};

/// Prints `report` and returns the exit status.
int finish_transfer(const TransferReport& report, bool json, const Interrupts& interrupts);

/// Prints what failed, for commands that have nothing else to say then, and returns the exit
/// status.
int finish_failed(const Error& error, bool json, const Interrupts& interrupts);

/// One table of the versions and one of what each rank did in each.
std::string format_versions(const std::vector<TransferStats>& versions);

/// Prints one JSON object on standard output; text that is not UTF-8 is replaced.
void print_json(const nlohmann::ordered_json& object);
/// `error` as an object has it under `error`.
nlohmann::ordered_json to_json(const Error& error, int exit_status);

}  // namespace weightcast
