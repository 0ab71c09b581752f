// What a machine has that this program needs or can use.
// Pure functions of the machine; calibration takes a few milliseconds.
#pragma once

#include <string>
#include <vector>

namespace weightcast {

struct Finding {
  std::string topic{};   ///< in snake_case; the key in the JSON report
  std::string value{};   ///< what is here
  std::string advice{};  ///< what is missing and how to get it; empty when all is well
  bool needed = false;   ///< with advice: nothing works without it
};

/// CPU, memory, shared memory, limits, libraries, backends.
std::vector<Finding> find_out();

}  // namespace weightcast
