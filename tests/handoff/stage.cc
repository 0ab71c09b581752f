#include "stage.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <sys/socket.h>
#include <sys/un.h>

#include <fmt/format.h>

#include "pattern.h"
#include "weightcast/base/check.h"

namespace weightcast::testing {

std::pair<Fd, Fd> make_link() {
  std::array<int, 2> ends{};
  WEIGHTCAST_CHECK(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

Fd connect_raw(const std::string& name) {
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) fd.reset();
  return fd;
}

Fd connect_as(const LinkListener& listener, int64_t rank) {
  Fd fd = connect_raw(listener.name());
  std::array<std::byte, 48> hello{};
  std::memcpy(hello.data(), "WCSTLNK1", 8);
  std::memcpy(hello.data() + 8, listener.token().data(), kLinkTokenSize);
  std::memcpy(hello.data() + 40, &rank, sizeof rank);
  WEIGHTCAST_CHECK(send_message(fd, hello, {}).has_value());
  return fd;
}

BucketHeader make_header(uint64_t index, uint64_t used_size) {
  BucketHeader header;
  header.sequence = 1;
  header.index = index;
  header.used_size = used_size;
  header.extents = {Extent{.tensor = index, .size = used_size}};
  return header;
}

uint64_t used_size(const SegmentGeometry& geometry, uint64_t number) {
  return 1 + number * 7919 % geometry.bucket_size;
}

Status publish_bucket(Publisher& publisher, const SegmentGeometry& geometry, uint64_t number) {
  const size_t slot = slot_of(geometry, number);
  const uint64_t size = used_size(geometry, number);
  WEIGHTCAST_TRY(publisher.wait_free(slot, soon()));
  WEIGHTCAST_TRY(publisher.make_resident(slot, size));
  fill_pattern(publisher.payload(slot).first(size), number, 0);
  return publisher.publish(slot, make_header(number - 1, size));
}

std::string inspect(const FilledBucket& bucket, const SegmentGeometry& geometry, uint64_t number) {
  const uint64_t size = used_size(geometry, number);
  if (bucket.number != number) return fmt::format("bucket {} is number {}", number, bucket.number);
  if (bucket.header != make_header(number - 1, size)) return fmt::format("header of {}", number);
  if (bucket.payload.size() != size) return fmt::format("size of bucket {}", number);
  const size_t first = first_difference(bucket.payload, number, 0);
  return first == size ? "" : fmt::format("byte {} of bucket {} differs", first, number);
}

Stage::Stage(const SegmentGeometry& geometry, const std::vector<Read>& readers)
    : geometry_(geometry) {
  auto listener = LinkListener::create().value();
  for (size_t i = 0; i < readers.size(); ++i) {
    children_.emplace_back([&, rank = static_cast<int>(i) + 1]() -> std::string {
      FakeGroup group(rank);
      const auto link = connect_link(listener.name(), listener.token(), rank, soon());
      if (!link) return link.error().message();
      const auto consumer = Consumer::attach(*link, geometry, group, soon());
      return consumer ? readers[i](**consumer, group) : consumer.error().message();
    });
  }
  links_ = listener.accept_all(static_cast<int>(readers.size()), -1, soon()).value();
  publisher_ = Publisher::create(geometry, group_).value();
  for (size_t i = 0; i < links_.size(); ++i) {
    WEIGHTCAST_CHECK(publisher_->add_reader(links_[i], static_cast<int>(i) + 1).has_value());
  }
}

Stage::Read read_in_order(const SegmentGeometry& geometry, uint64_t count) {
  return [=](Consumer& consumer, FakeGroup&) -> std::string {
    for (uint64_t number = 1; number <= count; ++number) {
      const auto bucket = consumer.next(soon());
      if (!bucket) return bucket.error().message();
      std::string wrong = inspect(*bucket, geometry, number);
      if (!wrong.empty()) return wrong;
      if (const auto released = consumer.release(number); !released) {
        return released.error().message();
      }
    }
    return "";
  };
}

size_t num_open_fds() {
  const std::filesystem::directory_iterator fds("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(fds), end(fds)));
}

size_t num_mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:weightcast") != std::string::npos) ++count;
  }
  return count;
}

}  // namespace weightcast::testing
