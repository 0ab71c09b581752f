#include "weightcast/base/check.h"

#include <cstdlib>

#include "weightcast/base/log.h"

namespace weightcast {

void check_failed(const char* condition, const char* file, int line) {
  log_message(LogLevel::kError, std::string("broken invariant ") + condition + " at " + file + ":" +
                                    std::to_string(line));
  std::abort();
}

}  // namespace weightcast
