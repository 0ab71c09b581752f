// One version from a model on disk to everybody, and from everybody's bucket to a file.
// One thread, the session's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "weightcast/base/result.h"
#include "weightcast/engine/session.h"
#include "weightcast/plan/safetensors.h"

namespace weightcast {

/// Sends `model` as `version`, read into the slots, with a progress bar. An error is made the cause
/// on every rank.
Result<TransferStats> send_version(Session& session, uint64_t version,
                                   const SafetensorsModel& model);

/// The file that a receiver writes `version` to: `<out>/model.safetensors`, or in a folder of its
/// own where there are several.
std::filesystem::path version_path(const std::filesystem::path& out, uint64_t version,
                                   bool several);

/// Receives the next version and writes it below `out`, or digests it only where `out` is empty.
/// An error is made the cause on every rank. `file` becomes what was written.
Result<TransferStats> receive_version(Session& session, const std::filesystem::path& out,
                                      bool several, std::string& file);

}  // namespace weightcast
