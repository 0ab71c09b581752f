// How --help looks: the usage first, options in two columns, nothing wider than a terminal.
// Only command_line.cc includes this; it brings all of CLI11.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace weightcast {

class HelpFormatter final : public CLI::Formatter {
 public:
  /// Where the right column begins.
  static constexpr size_t kLeftWidth = 34;

  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
};

}  // namespace weightcast
