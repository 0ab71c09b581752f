#include "weightcast/device/kernel_set.h"
#include "weightcast/device/narrow.h"

namespace weightcast {
namespace {

constexpr CastLoops same_loop(CastLoop loop) {
  return {loop, {loop, loop, loop, loop, loop, loop}};
}

constexpr KernelSet kPortable{
    "portable",
    {},
    {same_loop(narrow_f32_to_bf16), same_loop(narrow_f32_to_f16), same_loop(narrow_f64_to_f32),
     same_loop(narrow_f64_to_bf16), same_loop(narrow_f64_to_f16)}};

}  // namespace

const KernelSet& portable_kernels() { return kPortable; }

}  // namespace weightcast
