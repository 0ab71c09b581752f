#include "weightcast/handoff/publisher.h"

#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "weightcast/base/check.h"
#include "weightcast/base/memory_limit.h"
#include "weightcast/base/size.h"
#include "weightcast/control/wire.h"
#include "weightcast/handoff/link.h"
#include "weightcast/handoff/word_wait.h"

namespace weightcast {

struct Publisher::Reader {
  int rank;
  size_t index;
  Mapping words;
  EventFd filled;
  EventFd released;

  [[nodiscard]] const ReleaseWords& release_words() const {
    return *reinterpret_cast<const ReleaseWords*>(words.data());
  }
};

Publisher::Publisher(const SegmentGeometry& geometry, Group& group, Fd memory, Mapping mapping)
    : geometry_(geometry),
      group_(group),
      memory_(std::move(memory)),
      mapping_(std::move(mapping)),
      resident_(geometry.num_slots) {}

Publisher::~Publisher() = default;

Result<std::unique_ptr<Publisher>> Publisher::create(const SegmentGeometry& geometry,
                                                     Group& group) {
  WEIGHTCAST_TRY(check(geometry));
  const size_t size = segment_size(geometry);
  WEIGHTCAST_TRY(check_memory_left(size));
  WEIGHTCAST_ASSIGN(Fd memory, create_memfd("weightcast", size));
  WEIGHTCAST_ASSIGN(Mapping mapping, Mapping::map(memory, size, Access::kReadWrite));
  // From here on whoever gets the descriptor can only map it for reading.
  WEIGHTCAST_TRY(seal_future_writes(memory));
  WEIGHTCAST_TRY(populate({mapping.data(), sizeof(SegmentHeader)}, Access::kReadWrite));
  for (size_t slot = 0; slot < geometry.num_slots; ++slot) {
    std::byte* area = mapping.data() + header_offset(geometry, slot);
    WEIGHTCAST_TRY(populate({area, kSlotAlignment}, Access::kReadWrite));
  }
  auto* header = std::construct_at(reinterpret_cast<SegmentHeader*>(mapping.data()));
  header->geometry = geometry;
  return std::unique_ptr<Publisher>(
      new Publisher(geometry, group, std::move(memory), std::move(mapping)));
}

Status Publisher::add_reader(const Fd& link, int rank) {
  WEIGHTCAST_CHECK(num_published_ == 0);
  const size_t index = readers_.size();
  if (index == kMaxReaders) {
    return Error(Code::kInvalidArgument,
                 fmt::format("more than {} ranks on one host read from one", kMaxReaders));
  }
  WEIGHTCAST_ASSIGN(const Fd memory, create_memfd("weightcast-releases", sizeof(ReleaseWords)));
  WEIGHTCAST_ASSIGN(Mapping words, Mapping::map(memory, sizeof(ReleaseWords), Access::kRead));
  WEIGHTCAST_ASSIGN(EventFd filled, EventFd::create());
  WEIGHTCAST_ASSIGN(EventFd released, EventFd::create());

  const SegmentOffer offer{.reader = index};
  const std::array<int, kNumOfferedFds> fds{memory_.get(), memory.get(), filled.fd(),
                                            released.fd()};
  if (auto sent = send_message(link, std::as_bytes(std::span(&offer, 1)), fds); !sent) {
    return sent.error().context(fmt::format("offer shared memory to rank {}", rank));
  }
  readers_.push_back(std::make_unique<Reader>(
      Reader{rank, index, std::move(words), std::move(filled), std::move(released)}));
  return {};
}

SegmentHeader& Publisher::header() const {
  return *reinterpret_cast<SegmentHeader*>(mapping_.data());
}

size_t Publisher::num_slots() const { return geometry_.num_slots; }

MemoryView Publisher::payload(size_t index) const {
  WEIGHTCAST_CHECK(index < geometry_.num_slots);
  return {mapping_.data() + payload_offset(geometry_, index), geometry_.bucket_size};
}

Status Publisher::wait_free(size_t index, Deadline deadline) {
  WEIGHTCAST_CHECK(index < geometry_.num_slots);
  if (auto failure = group_.failure()) return *std::move(failure);
  const uint64_t number = header().published[index].number.load(std::memory_order_acquire);
  if (number == 0) return {};
  for (const auto& reader : readers_) WEIGHTCAST_TRY(wait_released(*reader, number, deadline));
  group_.note_progress();
  return {};
}

Status Publisher::wait_released(const Reader& reader, uint64_t number, Deadline deadline) {
  const size_t slot = slot_of(geometry_, number);
  const NumberWord& word = reader.release_words().released[slot];
  const uint64_t old_number = predecessor(geometry_, number);
  const Clock::time_point start = Clock::now();
  if (word.number.load(std::memory_order_acquire) == old_number) {
    const WordWait wait{.word = word,
                        .old_number = old_number,
                        .number = number,
                        .awaited = header().awaited[reader.index],
                        .event = reader.released};
    WEIGHTCAST_ASSIGN(const bool changed, wait_for_change(wait, group_, deadline));
    if (!changed) {
      return Error(Code::kDeadline,
                   fmt::format("rank {} has not released slot {} for {}", reader.rank, slot,
                               format_duration(Clock::now() - start)));
    }
  }
  const uint64_t released = word.number.load(std::memory_order_acquire);
  if (released != number) {
    return Error(Code::kCorruption,
                 fmt::format("rank {} released bucket {} in slot {}, which has bucket {}",
                             reader.rank, released, slot, number),
                 reader.rank);
  }
  return {};
}

Status Publisher::make_resident(size_t index, uint64_t size) {
  WEIGHTCAST_CHECK(index < geometry_.num_slots && size <= geometry_.bucket_size);
  uint64_t& resident = resident_[index];
  if (size <= resident) return {};
  WEIGHTCAST_TRY(populate(payload(index).subspan(resident, size - resident), Access::kReadWrite));
  resident = size;
  return {};
}

Status Publisher::publish(size_t index, const BucketHeader& bucket) {
  const uint64_t number = num_published_ + 1;
  WEIGHTCAST_CHECK(index == slot_of(geometry_, number));
  WEIGHTCAST_CHECK(bucket.used_size <= geometry_.bucket_size);
  std::byte* area = mapping_.data() + header_offset(geometry_, index);
  const uint64_t size = encode(bucket, {area + kEncodedHeaderOffset, kMaxHeaderSize});
  std::memcpy(area, &size, sizeof size);
  num_published_ = number;
  header().published[index].number.store(number, std::memory_order_seq_cst);
  for (const auto& reader : readers_) {
    wake_waiter(reader->release_words().awaited, number, reader->filled);
  }
  return {};
}

}  // namespace weightcast
