// The quickstart's second version: a model that differs from the first everywhere, by a rule that
// anybody can check, and that is a valid model of any dtype.
// One thread.
#pragma once

#include <filesystem>

#include "interrupts.h"
#include "weightcast/base/result.h"
#include "weightcast/plan/safetensors.h"

namespace weightcast {

/// Writes to `path` what `model` holds with the elements of every tensor in reverse order; dtypes
/// whose elements are no whole bytes are reversed byte by byte. Errors: those of the reader and the
/// writer; an interruption.
Status write_reversed(const SafetensorsModel& model, const std::filesystem::path& path,
                      const Interrupts& interrupts);

}  // namespace weightcast
