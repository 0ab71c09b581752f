// Texts as they may travel: bounded and UTF-8.
// Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

namespace weightcast {

/// The beginning of `text`, at most `max_size` bytes, cut between characters; where it is not
/// UTF-8, every byte beyond ASCII becomes `?`.
std::string clean_text(std::string_view text, size_t max_size);

}  // namespace weightcast
