#include "command_line.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "help_formatter.h"
#include "weightcast/handoff/segment.h"
#include "weightcast/plan/bucket.h"

namespace weightcast {
namespace {

constexpr const char* kFooter =
    R"(Exit codes: 0 done; 1 internal error; 2 wrong usage; 3 bad input; 4 a peer was lost or a deadline
passed; 5 corruption; 6 refused; 7 no resource. Every rank exits with the code of the first cause.
Sizes are written like 64MiB, durations like 60s or 500ms. docs/operations.md has all of it.)";

// The backend of this version works within one host.
constexpr int kMaxReceivers = kMaxReaders;
constexpr int kMaxVersions = 1'000'000'000;

void add_size(CLI::App& app, const std::string& name, uint64_t& size, const std::string& text) {
  const auto parse = [name, &size](const std::string& value) {
    const Result<uint64_t> parsed = parse_size(value);
    if (!parsed) throw CLI::ValidationError(name, parsed.error().message());
    if (*parsed < kMinBucketSize || *parsed > kMaxBucketSize) {
      throw CLI::ValidationError(
          name, fmt::format("`{}` is not within {} and {}", value, format_size(kMinBucketSize),
                            format_size(kMaxBucketSize)));
    }
    size = *parsed;
  };
  CLI::Option* option = app.add_option_function<std::string>(name, parse, text);
  option->type_name("SIZE");
  if (size == 0) {
    option->required();
  } else {
    option->default_str(fmt::format("{}MiB", size / kMiB));
  }
}

void add_duration(CLI::App& app, const std::string& name, Duration& duration,
                  const std::string& text) {
  const auto parse = [name, &duration](const std::string& value) {
    const Result<Duration> parsed = parse_duration(value);
    if (!parsed) throw CLI::ValidationError(name, parsed.error().message());
    duration = *parsed;
  };
  app.add_option_function<std::string>(name, parse, text)
      ->type_name("DURATION")
      ->default_str(fmt::format("{}s", duration.count() / 1000));
}

void add_timeout(CLI::App& app, Duration& timeout) {
  add_duration(
      app, "--timeout", timeout,
      "how long nothing may move (nobody joins, no byte arrives) before the version fails; "
      "never a limit on the whole");
}

void add_versions(CLI::App& app, int& versions, const char* text) {
  app.add_option("--versions", versions, text)
      ->type_name("K")
      ->check(CLI::Range(1, kMaxVersions).description(""))
      ->capture_default_str();
}

void add_receivers(CLI::App& app, int& receivers, bool required) {
  CLI::Option* option = app.add_option("--receivers", receivers, "how many processes receive")
                            ->type_name("N")
                            ->check(CLI::Range(1, kMaxReceivers).description(""));
  if (required) {
    option->required();
  } else {
    option->capture_default_str();
  }
}

void add_json(CLI::App& app, bool& json) {
  app.add_flag("--json", json,
               "print one JSON object on standard output, also on failure, and nothing else there");
}

void add_model(CLI::App& app, std::vector<std::string>& model) {
  app.add_option("model", model,
                 "safetensors files, or a directory with model.safetensors or "
                 "model.safetensors.index.json and its shards")
      ->type_name("MODEL...")
      ->required();
}

void set_cast(std::optional<DType>& cast, const std::string& value) {
  std::string name;
  for (const char c : value) name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  cast = dtype_from_name(name);
  if (!cast || (cast != DType::kF32 && cast != DType::kF16 && cast != DType::kBf16)) {
    throw CLI::ValidationError("--cast", fmt::format("`{}` is none of F32, F16, BF16", value));
  }
}

void set_checksum(bool& checksum, const std::string& value) {
  if (value != "on" && value != "off") {
    throw CLI::ValidationError("--checksum", fmt::format("`{}` is neither on nor off", value));
  }
  checksum = value == "on";
}

CLI::App* add_send(CLI::App& app, SendCommand& command) {
  CLI::App* send = app.add_subcommand("send", "send a model to the processes that receive");
  add_model(*send, command.model);
  send->add_option("--listen", command.host.listen,
                   "where receivers join; port 0 takes a free one, which the ticket carries; "
                   "0.0.0.0 or [::] listens on every address")
      ->type_name("tcp://HOST:PORT")
      ->capture_default_str();
  add_receivers(*send, command.host.num_receivers, true);
  add_size(*send, "--bucket", command.host.bucket_size, "how much moves at once");
  send->add_option("--ticket-file", command.ticket_file,
                   "where to write the ticket that lets receivers join (mode 0600, removed at the "
                   "end); `-`: the first line of standard output; absent: a line of standard error")
      ->type_name("FILE");
  add_timeout(*send, command.host.timeout);
  add_duration(*send, "--heartbeat-timeout", command.host.heartbeat_timeout,
               "how long a rank may be silent before it is lost");
  add_versions(*send, command.versions,
               "how many versions to send, each read anew from the model's files");
  send->add_option_function<std::string>(
          "--cast", [&](const std::string& value) { set_cast(command.host.cast, value); },
          "send floating tensors that are wider than this as F32, F16 or BF16")
      ->type_name("DTYPE");
  send->add_option_function<std::string>(
          "--checksum",
          [&](const std::string& value) { set_checksum(command.host.checksum, value); },
          "digest every byte on every rank and compare")
      ->type_name("on|off")
      ->default_str("on");
  send->add_flag_callback(
      "--no-overlap", [&] { command.host.overlap = false; },
      "move one bucket at a time, rather than pack the next one meanwhile");
  add_json(*send, command.json);
  return send;
}

CLI::App* add_receive(CLI::App& app, ReceiveCommand& command) {
  CLI::App* receive = app.add_subcommand("receive", "receive a model and write it, or check it");
  receive
      ->add_option("--ticket-file", command.ticket_file,
                   "the sender's ticket; waited for, and read again when it changes; `-`: one "
                   "line of standard input")
      ->type_name("FILE")
      ->required();
  CLI::Option* out = receive
                         ->add_option("--out", command.out,
                                      "the directory that gets model.safetensors, or "
                                      "v1/model.safetensors, v2/… with --versions above 1")
                         ->type_name("DIR");
  receive->add_option("--rank", command.rank, "the rank to be; absent: by arrival")
      ->type_name("R")
      ->check(CLI::Range(1, kMaxReceivers).description(""));
  add_timeout(*receive, command.timeout);
  add_versions(*receive, command.versions, "how many versions to receive");
  receive->add_flag("--verify-only", command.verify_only, "digest what arrives, write nothing")
      ->excludes(out);
  add_json(*receive, command.json);
  return receive;
}

CLI::App* add_quickstart(CLI::App& app, QuickstartCommand& command) {
  CLI::App* quickstart = app.add_subcommand(
      "quickstart", "send a model to receivers on this host, twice, and prove what they got");
  quickstart
      ->add_option("model", command.model,
                   "a safetensors file or a directory; absent: what WEIGHTCAST_QUICKSTART_MODEL "
                   "names, which `make quickstart` sets")
      ->type_name("MODEL");
  add_receivers(*quickstart, command.receivers, false);
  add_size(*quickstart, "--bucket", command.bucket_size, "how much moves at once");
  return quickstart;
}

CLI::App* add_plan(CLI::App& app, PlanCommand& command) {
  CLI::App* plan = app.add_subcommand("plan", "show which tensors lie in which bucket");
  add_model(*plan, command.model);
  add_size(*plan, "--bucket", command.bucket_size, "how much moves at once");
  add_json(*plan, command.json);
  return plan;
}

CLI::App* add_doctor(CLI::App& app, DoctorCommand& command) {
  CLI::App* doctor =
      app.add_subcommand("doctor", "show what this machine has, what is missing and how to get it");
  add_json(*doctor, command.json);
  return doctor;
}

bool has_json(int argc, const char* const* argv) {
  return std::any_of(argv, argv + argc,
                     [](const char* argument) { return std::string_view(argument) == "--json"; });
}

// What the options can not say one by one.
void check_send(const SendCommand& command) {
  if (command.ticket_file == "-" && command.json) {
    throw CLI::ValidationError("--ticket-file",
                               "`-` and --json both want standard output; name a file");
  }
}

void check_receive(const ReceiveCommand& command) {
  if (command.out.empty() && !command.verify_only) {
    throw CLI::RequiredError("--out, or --verify-only,");
  }
}

}  // namespace

Command parse_command_line(int argc, const char* const* argv) {
  SendCommand send;
  ReceiveCommand receive;
  QuickstartCommand quickstart;
  PlanCommand plan;
  DoctorCommand doctor;

  CLI::App app(
      "Moves the weights of a model from the process that has them to those that serve it.",
      "weightcast");
  app.set_version_flag("--version", "weightcast " WEIGHTCAST_VERSION, "print the version");
  const auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(HelpFormatter::kLeftWidth);
  app.formatter(formatter);
  app.footer(kFooter);
  app.require_subcommand(1);
  const CLI::App* send_app = add_send(app, send);
  const CLI::App* receive_app = add_receive(app, receive);
  const CLI::App* quickstart_app = add_quickstart(app, quickstart);
  const CLI::App* plan_app = add_plan(app, plan);
  add_doctor(app, doctor);

  try {
    app.parse(argc, argv);
    if (send_app->parsed()) {
      check_send(send);
      return send;
    }
    if (receive_app->parsed()) {
      check_receive(receive);
      return receive;
    }
    if (quickstart_app->parsed()) return quickstart;
    if (plan_app->parsed()) return plan;
    return doctor;
  } catch (const CLI::CallForVersion&) {
    return TextCommand{.text = app.version() + "\n"};
  } catch (const CLI::CallForHelp&) {
    const auto parsed = app.get_subcommands();
    const CLI::App* asked = parsed.empty() ? &app : parsed.front();
    return TextCommand{.text = asked->help()};
  } catch (const CLI::ParseError& error) {
    return TextCommand{.text = error.what(), .usage_error = true, .json = has_json(argc, argv)};
  }
}

}  // namespace weightcast
