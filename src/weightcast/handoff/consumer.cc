#include "weightcast/handoff/consumer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "weightcast/base/size.h"
#include "weightcast/control/wire.h"
#include "weightcast/handoff/word_wait.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace weightcast {
namespace {

// Memory that could shrink would turn a later access into SIGBUS.
Status check_memory(const Fd& fd, size_t size, int wanted_seals) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return system_error(errno, "fstat shared memory");
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (!S_ISREG(info.st_mode) || seals < 0 || (seals & wanted_seals) != wanted_seals) {
    return Error(Code::kCorruption, "the publisher offered memory that is not sealed");
  }
  if (info.st_size != static_cast<off_t>(size)) {
    return Error(
        Code::kCorruption,
        fmt::format("the publisher offered {} B of memory instead of {}", info.st_size, size));
  }
  return {};
}

// Signalling anything else could block, or raise SIGPIPE. An eventfd has no file type.
Status check_event(const Fd& fd) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return system_error(errno, "fstat eventfd");
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if ((info.st_mode & S_IFMT) != 0 || flags < 0 || (flags & O_NONBLOCK) == 0) {
    return Error(Code::kCorruption, "the publisher offered something else than an eventfd");
  }
  return {};
}

}  // namespace

Consumer::Consumer(const SegmentGeometry& geometry, Group& group, Parts parts)
    : geometry_(geometry),
      group_(group),
      parts_(std::move(parts)),
      held_(geometry.num_slots),
      resident_(geometry.num_slots) {}

Result<std::unique_ptr<Consumer>> Consumer::attach(const Fd& link, const SegmentGeometry& expected,
                                                   Group& group, Deadline deadline) {
  WEIGHTCAST_TRY(check(expected));
  auto message = receive_message(link, group.failure_fd(), deadline);
  if (!message) {
    if (auto failure = group.failure()) return *std::move(failure);
    return message.error().context("wait for the shared memory of the publisher");
  }
  WEIGHTCAST_ASSIGN(Parts parts, map_parts(expected, *std::move(message)));
  return std::unique_ptr<Consumer>(new Consumer(expected, group, std::move(parts)));
}

Result<Consumer::Parts> Consumer::map_parts(const SegmentGeometry& geometry, LinkMessage message) {
  SegmentOffer offer;
  if (message.bytes.size() != sizeof offer || message.fds.size() != kNumOfferedFds) {
    return Error(Code::kCorruption, "the publisher offered no shared memory");
  }
  std::memcpy(&offer, message.bytes.data(), sizeof offer);
  if (offer.magic != kSegmentMagic || offer.reader >= kMaxReaders) {
    return Error(Code::kCorruption, "the publisher offered shared memory of another kind");
  }
  const size_t size = segment_size(geometry);
  const int fixed_size = F_SEAL_SHRINK | F_SEAL_GROW;
  WEIGHTCAST_TRY(check_memory(message.fds[0], size, fixed_size | F_SEAL_FUTURE_WRITE));
  WEIGHTCAST_TRY(check_memory(message.fds[1], sizeof(ReleaseWords), fixed_size));
  WEIGHTCAST_TRY(check_event(message.fds[2]));
  WEIGHTCAST_TRY(check_event(message.fds[3]));
  WEIGHTCAST_ASSIGN(Mapping segment, Mapping::map(message.fds[0], size, Access::kRead));
  WEIGHTCAST_ASSIGN(Mapping words,
                    Mapping::map(message.fds[1], sizeof(ReleaseWords), Access::kReadWrite));

  const auto& header = *reinterpret_cast<const SegmentHeader*>(segment.data());
  const SegmentGeometry geometry_there = header.geometry;
  if (header.magic != kSegmentMagic || geometry_there != geometry) {
    return Error(Code::kCorruption, "the shared memory is not laid out as the group agreed");
  }
  WEIGHTCAST_TRY(populate({segment.data(), sizeof(SegmentHeader)}, Access::kRead));
  WEIGHTCAST_TRY(populate({words.data(), words.size()}, Access::kReadWrite));
  return Parts{offer.reader, std::move(segment), std::move(words),
               EventFd::adopt(std::move(message.fds[2])),
               EventFd::adopt(std::move(message.fds[3]))};
}

const SegmentHeader& Consumer::header() const {
  return *reinterpret_cast<const SegmentHeader*>(parts_.segment.data());
}

ReleaseWords& Consumer::release_words() const {
  return *reinterpret_cast<ReleaseWords*>(parts_.release_words.data());
}

size_t Consumer::num_slots() const { return geometry_.num_slots; }

Result<FilledBucket> Consumer::next(Deadline deadline) {
  if (auto failure = group_.failure()) return *std::move(failure);
  const size_t slot = slot_of(geometry_, next_number_);
  if (held_[slot] != 0) {
    const auto num_held = std::ranges::count_if(held_, [](uint64_t held) { return held != 0; });
    return Error(Code::kInvalidArgument,
                 fmt::format("bucket {} needs slot {}, in which bucket {} is still held ({} of {} "
                             "slots are): release it first",
                             next_number_, slot, held_[slot], num_held, geometry_.num_slots));
  }
  WEIGHTCAST_TRY(wait_published(slot, deadline));
  WEIGHTCAST_ASSIGN(BucketHeader bucket, read_header(slot));
  if (bucket.used_size > geometry_.bucket_size) {
    return Error(Code::kCorruption,
                 fmt::format("bucket {} has {} B, more than its slot's {}", next_number_,
                             bucket.used_size, geometry_.bucket_size));
  }
  WEIGHTCAST_TRY(make_resident(slot, bucket.used_size));
  group_.note_progress();
  held_[slot] = next_number_;
  const std::byte* payload = parts_.segment.data() + payload_offset(geometry_, slot);
  const ConstMemoryView view(payload, bucket.used_size);
  return FilledBucket{next_number_++, std::move(bucket), view};
}

Status Consumer::wait_published(size_t slot, Deadline deadline) {
  const NumberWord& word = header().published[slot];
  const uint64_t old_number = predecessor(geometry_, next_number_);
  const Clock::time_point start = Clock::now();
  if (word.number.load(std::memory_order_acquire) == old_number) {
    const WordWait wait{.word = word,
                        .old_number = old_number,
                        .number = next_number_,
                        .awaited = release_words().awaited,
                        .event = parts_.filled};
    WEIGHTCAST_ASSIGN(const bool changed, wait_for_change(wait, group_, deadline));
    if (!changed) {
      return Error(Code::kDeadline, fmt::format("bucket {} has not arrived for {}", next_number_,
                                                format_duration(Clock::now() - start)));
    }
  }
  const uint64_t published = word.number.load(std::memory_order_acquire);
  if (published != next_number_) {
    return Error(Code::kCorruption, fmt::format("slot {} has bucket {} instead of bucket {}", slot,
                                                published, next_number_));
  }
  return {};
}

Result<BucketHeader> Consumer::read_header(size_t slot) {
  const std::byte* area = parts_.segment.data() + header_offset(geometry_, slot);
  // Read once: the publisher could change it between the check and the copy.
  const uint64_t size = *reinterpret_cast<const volatile uint64_t*>(area);
  if (size == 0 || size > kMaxHeaderSize) {
    return Error(Code::kCorruption,
                 fmt::format("bucket {} has a header of {} B", next_number_, size));
  }
  encoded_.resize(size);
  std::memcpy(encoded_.data(), area + kEncodedHeaderOffset, size);
  auto bucket = decode_bucket_header(encoded_);
  if (!bucket) return bucket.error().context(fmt::format("bucket {}", next_number_));
  return bucket;
}

Status Consumer::make_resident(size_t slot, uint64_t size) {
  uint64_t& resident = resident_[slot];
  if (size <= resident) return {};
  std::byte* payload = parts_.segment.data() + payload_offset(geometry_, slot);
  WEIGHTCAST_TRY(populate({payload + resident, size - resident}, Access::kRead));
  resident = size;
  return {};
}

Status Consumer::release(uint64_t number) {
  const size_t slot = number == 0 ? 0 : slot_of(geometry_, number);
  if (number == 0 || held_[slot] != number) {
    return Error(Code::kInvalidArgument, fmt::format("bucket {} is not held", number));
  }
  held_[slot] = 0;
  release_words().released[slot].number.store(number, std::memory_order_seq_cst);
  wake_waiter(header().awaited[parts_.reader], number, parts_.released);
  // What was read may be void: a rank that was stopped for long learns here that it was given up.
  if (auto failure = group_.failure()) return *std::move(failure);
  return {};
}

}  // namespace weightcast
