// Random bytes from the kernel, for names and tokens that nobody may guess.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace weightcast {

/// Fills `bytes`; never fails on a running system.
void fill_random(std::span<std::byte> bytes);
/// `num_bytes` random bytes as lower-case hexadecimal text.
std::string random_hex(size_t num_bytes);

}  // namespace weightcast
