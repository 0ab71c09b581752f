// What safetensors' two JSON decoders share: events of a JSON text (nlohmann's SAX interface, which
// alone shows duplicate keys and allocates no tree), each refused unless a decoder expects it.
// Includes the JSON library: for .cc files only. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weightcast/base/result.h"
#include "weightcast/plan/text.h"

namespace weightcast {

/// Every event returns whether to go on; `false` comes with an error.
class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("a boolean"); }
  bool number_integer(int64_t) override { return refuse("a negative number"); }
  bool number_unsigned(uint64_t) override { return refuse("a number"); }
  bool number_float(double, const std::string&) override {
    return refuse("a number that is no whole number below 2^64");
  }
  bool string(std::string&) override { return refuse("a string"); }
  bool binary(nlohmann::json::binary_t&) override { return refuse("binary data"); }
  bool start_object(size_t) override { return refuse("an object"); }
  bool start_array(size_t) override { return refuse("an array"); }
  bool end_object() override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception& exception) override {
    return fail(fmt::format("not JSON at byte {}: {}", position, printable(exception.what())));
  }

  /// Feeds the events of `json` to this object. The text may have nothing but white space after it.
  Status parse(std::string_view json) {
    // The library takes a NUL for the end of the text and a byte order mark for nothing.
    if (json.empty() || json.front() != '{') return bad_input("not JSON: does not start with {");
    if (const size_t position = json.find('\0'); position != json.npos) {
      return bad_input(fmt::format("not JSON: a zero byte at byte {}", position));
    }
    if (nlohmann::json::sax_parse(json.begin(), json.end(), this)) return {};
    return bad_input(message_);
  }

 protected:
  static Error bad_input(std::string message) { return Error(Code::kBadInput, std::move(message)); }

  /// Ends the parsing with this error.
  bool fail(std::string message) {
    message_ = std::move(message);
    return false;
  }
  /// Where in the text the decoder is, for messages.
  [[nodiscard]] virtual std::string place() const = 0;

 private:
  bool refuse(std::string_view what) {
    return fail(fmt::format("{}: {} where none may be", place(), what));
  }

  std::string message_ = "not JSON";
};

}  // namespace weightcast
