// Whether two models are the same, bit by bit.
// One thread.
#pragma once

#include "interrupts.h"
#include "weightcast/base/result.h"
#include "weightcast/plan/safetensors.h"

namespace weightcast {

/// Compares names, order, dtypes, shapes and every byte. Errors: `kCorruption` naming the first
/// difference; whatever reading a file brings; an interruption.
Status compare_models(const SafetensorsModel& expected, const SafetensorsModel& actual,
                      const Interrupts& interrupts);

}  // namespace weightcast
