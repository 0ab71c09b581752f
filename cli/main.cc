// The program: what its arguments ask for, and one place where everything ends.
#include <csignal>
#include <exception>
#include <new>
#include <variant>

#include <fmt/format.h>

#include "command_line.h"
#include "commands.h"
#include "exit_code.h"
#include "output.h"
#include "report.h"

namespace weightcast {
namespace {

struct Runner {
  Interrupts& interrupts;

  int operator()(const TextCommand& command) const {
    if (!command.usage_error) {
      write_out(command.text);
      return kExitDone;
    }
    const int status =
        finish_failed(Error(Code::kInvalidArgument, command.text), command.json, interrupts);
    write_err("weightcast --help, or weightcast COMMAND --help, lists what there is");
    return status;
  }
  int operator()(const SendCommand& command) const { return run_send(command, interrupts); }
  int operator()(const ReceiveCommand& command) const { return run_receive(command, interrupts); }
  int operator()(const QuickstartCommand& command) const {
    return run_quickstart(command, interrupts);
  }
  int operator()(const PlanCommand& command) const { return run_plan(command, interrupts); }
  int operator()(const DoctorCommand& command) const { return run_doctor(command, interrupts); }
};

int run(int argc, char** argv) {
  // A pipe whose reader left and a file that grew to its limit are errors of the calls that met
  // them, which can say so.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  Interrupts interrupts;
  int status = kExitInternal;
  try {
    status = std::visit(Runner{interrupts}, parse_command_line(argc, argv));
  } catch (const std::bad_alloc&) {
    status = finish_failed(Error(Code::kNoResource, "out of memory"), false, interrupts);
  } catch (const std::exception& exception) {
    status = finish_failed(Error(Code::kInternal, exception.what()), false, interrupts);
  }
  if (const Status output = finish_output(); !output) {
    const int failed = finish_failed(output.error(), false, interrupts);
    if (status == kExitDone) status = failed;
  }
  interrupts.end_if_signalled();
  return status;
}

}  // namespace
}  // namespace weightcast

int main(int argc, char** argv) { return weightcast::run(argc, argv); }
