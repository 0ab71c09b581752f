#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "doctor_checks.h"
#include "exit_code.h"
#include "output.h"
#include "report.h"
#include "weightcast/device/host_copy.h"

namespace weightcast {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const std::vector<Finding>& findings, const Calibration& calibration,
                     bool can_run) {
  ordered_json kernels = ordered_json::array();
  for (const CalibrationRow& row : calibration.rows) {
    kernels.push_back({{"name", row.kernel}, {"gbps", row.bandwidth_gbps}});
  }
  ordered_json checks = ordered_json::object();
  for (const Finding& finding : findings) {
    checks[finding.topic] = {{"value", finding.value},
                             {"ok", finding.advice.empty()},
                             {"needed", finding.needed},
                             {"advice", finding.advice}};
  }
  return {{"command", "doctor"},
          {"can_run", can_run},
          {"checks", std::move(checks)},
          {"copy_kernel", calibration.winner.name},
          {"copy_kernels", std::move(kernels)},
          {"calibration_seconds", calibration.seconds}};
}

std::string to_text(const std::vector<Finding>& findings, const Calibration& calibration,
                    bool can_run) {
  std::vector<std::vector<std::string>> checks = {{"what", "", "here"}};
  std::string advice;
  for (const Finding& finding : findings) {
    checks.push_back({finding.topic,
                      finding.advice.empty() ? "ok"
                      : finding.needed       ? "missing"
                                             : "note",
                      finding.value});
    if (!finding.advice.empty()) advice += fmt::format("{}: {}\n", finding.topic, finding.advice);
  }
  std::vector<std::vector<std::string>> kernels = {{"copy kernel", "GB/s", ""}};
  for (const CalibrationRow& row : calibration.rows) {
    kernels.push_back({std::string(row.kernel), fmt::format("{:.2f}", row.bandwidth_gbps),
                       row.kernel == calibration.winner.name ? "<- chosen" : ""});
  }
  std::string text = format_table("<<<", checks) + "\n" + format_table("<><", kernels);
  text += fmt::format("measured in {:.1f} ms\n\n{}", calibration.seconds * 1e3, advice);
  text += can_run ? "weightcast can run here\n" : "weightcast can not run here\n";
  return text;
}

}  // namespace

int run_doctor(const DoctorCommand& command, Interrupts&) {
  const std::vector<Finding> findings = find_out();
  const Calibration& measured = calibration();
  const bool can_run = std::ranges::none_of(
      findings, [](const Finding& finding) { return finding.needed && !finding.advice.empty(); });
  if (command.json) {
    print_json(to_json(findings, measured, can_run));
  } else {
    write_out(to_text(findings, measured, can_run));
  }
  return can_run ? kExitDone : kExitNoResource;
}

}  // namespace weightcast
