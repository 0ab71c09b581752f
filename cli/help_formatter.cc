#include "help_formatter.h"

#include <algorithm>
#include <sstream>
#include <vector>

namespace weightcast {
namespace {

constexpr size_t kWidth = 100;

// `text` in lines of at most `width`, broken between words.
std::vector<std::string> wrap(const std::string& text, size_t width) {
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width)
      lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  return lines;
}

std::string name_of(const CLI::Option& option, bool is_positional) {
  // A flag takes no value; a positional is called by its type, as in the usage.
  if (is_positional) return option.get_type_name();
  std::string name = option.get_name(false, true);
  if (option.get_type_size() == 0) return name;
  return name + ' ' + option.get_type_name();
}

}  // namespace

std::string HelpFormatter::make_usage(const CLI::App* app, std::string) const {
  if (app->get_parent() == nullptr) return "\nUsage: weightcast COMMAND …\n";
  std::string usage = "\nUsage: weightcast " + app->get_name();
  bool optional = false;
  for (const CLI::Option* option : app->get_options()) {
    if (option == app->get_help_ptr()) continue;
    if (!option->get_required() && !option->get_positional()) {
      optional = true;
      continue;
    }
    const std::string name = name_of(*option, option->get_positional());
    usage += option->get_required() ? ' ' + name : " [" + name + ']';
  }
  return usage + (optional ? " [OPTION]…\n" : "\n");
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string text = option->get_description();
  if (option->get_required() && !is_positional) text += " (required)";
  if (!option->get_default_str().empty()) text += " (default " + option->get_default_str() + ')';
  std::string left = "  " + name_of(*option, is_positional);
  std::string lines;
  for (const std::string& line : wrap(text, kWidth - kLeftWidth)) {
    if (left.size() + 2 > kLeftWidth) {
      lines += left + '\n';
      left.clear();
    }
    left.resize(kLeftWidth, ' ');
    lines += left + line + '\n';
    left.clear();
  }
  return lines;
}

}  // namespace weightcast
