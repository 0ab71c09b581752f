#include "weightcast/base/log.h"

#include <cstdlib>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "weightcast/base/sync.h"

namespace weightcast {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace: return spdlog::level::trace;
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarn: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

// The log sink is the one global of this library; it lives for ever so that threads that outlive
// `main` may still log.
class Sink {
 public:
  static Sink& get() {
    static Sink* sink = new Sink;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *sink;
  }

  bool enabled(LogLevel level) { return logger_.should_log(to_spdlog(level)); }
  void set_level(LogLevel level) { logger_.set_level(to_spdlog(level)); }

  void set_prefix(std::string prefix) {
    const MutexLock lock(mutex_);
    prefix_ = std::move(prefix);
  }

  void write(LogLevel level, std::string_view text) {
    const std::string prefix = this->prefix();
    logger_.log(to_spdlog(level), "{}{}{}", prefix, prefix.empty() ? "" : " ", text);
  }

 private:
  Sink() : logger_("weightcast", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_pattern("%Y-%m-%dT%H:%M:%S.%e weightcast[%P] %l %v");
    const char* wanted = std::getenv("WEIGHTCAST_LOG");
    const auto level = spdlog::level::from_str(wanted == nullptr ? "warn" : wanted);
    logger_.set_level(level);
    logger_.flush_on(spdlog::level::trace);
  }

  std::string prefix() {
    const MutexLock lock(mutex_);
    return prefix_;
  }

  spdlog::logger logger_;
  Mutex mutex_;
  std::string prefix_ WEIGHTCAST_GUARDED_BY(mutex_);
};

}  // namespace

bool log_enabled(LogLevel level) { return Sink::get().enabled(level); }
void set_log_level(LogLevel level) { Sink::get().set_level(level); }
void set_log_prefix(std::string prefix) { Sink::get().set_prefix(std::move(prefix)); }
void log_message(LogLevel level, std::string_view text) { Sink::get().write(level, text); }

}  // namespace weightcast
