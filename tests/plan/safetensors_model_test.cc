#include <array>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "../support/pattern.h"
#include "scratch.h"
#include "weightcast/base/size.h"
#include "weightcast/plan/safetensors.h"

namespace weightcast {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::exit_code_of_child;
using ::testing::HasSubstr;
using testing::Scratch;

Result<SafetensorsModel> open_model(const std::filesystem::path& path) {
  return SafetensorsModel::open(std::array{path});
}

// A header of U8 tensors, one byte each.
std::string header_of(std::initializer_list<std::string_view> names) {
  std::string json = "{";
  int at = 0;
  for (const std::string_view name : names) {
    if (at > 0) json += ',';
    json += '"' + std::string(name) + R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" +
            std::to_string(at) + ',' + std::to_string(at + 1) + "]}";
    ++at;
  }
  return json + "}";
}

std::vector<std::string> names_of(const SafetensorsModel& model) {
  std::vector<std::string> names;
  for (const TensorMeta& meta : model.metas()) names.push_back(meta.name);
  return names;
}

std::string read_all(const SafetensorsModel& model, const SafetensorsModel::Tensor& tensor) {
  std::string bytes(byte_size(tensor.meta), '\0');
  const Status status = model.read(tensor, 0, std::as_writable_bytes(std::span(bytes)));
  EXPECT_TRUE(status.has_value()) << status.error().message();
  return bytes;
}

void expect_refused(const std::filesystem::path& path, std::string_view file,
                    std::string_view part) {
  const auto model = open_model(path);
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code(), Code::kBadInput);
  EXPECT_THAT(model.error().message(),
              AllOf(HasSubstr(std::string(file)), HasSubstr(std::string(part))));
}

TEST(SafetensorsModel, ReadsEveryByteOfAFile) {
  const Scratch scratch;
  const std::vector<TensorMeta> metas = {
      {"u", DType::kU8, {3}}, {"none", DType::kF32, {0}}, {"层", DType::kF32, {100'000}}};
  std::string file = make_safetensors_header(metas);
  for (size_t i = 0; i < metas.size(); ++i) {
    const auto bytes = testing::make_pattern(metas[i], 1, i);
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  const auto model = open_model(scratch.write("m.safetensors", file));
  ASSERT_TRUE(model.has_value()) << model.error().message();
  EXPECT_EQ(model->metas(), metas);
  EXPECT_EQ(model->payload_size(), 400'003u);
  for (size_t i = 0; i < metas.size(); ++i) {
    const std::string bytes = read_all(*model, model->tensors()[i]);
    EXPECT_EQ(testing::first_difference(std::as_bytes(std::span(bytes)), 1, i), bytes.size());
  }
  std::array<std::byte, 1000> part;
  ASSERT_TRUE(model->read(model->tensors()[2], 12'345, part).has_value());
  EXPECT_EQ(testing::first_difference(part, 1, 2, 12'345), part.size());
}

TEST(SafetensorsModel, TensorsAboveFourGigabytesAreRead) {
  const Scratch scratch;
  const std::vector<TensorMeta> metas = {{"large", DType::kBf16, {3 * kGiB}},
                                         {"after", DType::kU8, {4}}};
  const std::string header = make_safetensors_header(metas);
  const auto path = scratch.write("m.safetensors", header);
  const Fd fd(::open(path.c_str(), O_WRONLY));
  const auto end = static_cast<off_t>(header.size() + 6 * kGiB);
  ASSERT_EQ(::pwrite(fd.get(), "tailnext", 8, end - 4), 8);
  const auto model = open_model(path);
  ASSERT_TRUE(model.has_value()) << model.error().message();
  EXPECT_EQ(model->payload_size(), 6 * kGiB + 4);
  std::array<std::byte, 4> tail;
  ASSERT_TRUE(model->read(model->tensors()[0], 6 * kGiB - 4, tail).has_value());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(tail.data()), 4), "tail");
  EXPECT_EQ(read_all(*model, model->tensors()[1]), "next");
}

TEST(SafetensorsModel, BadFilesAreRefusedByName) {
  const Scratch scratch;
  const auto expect = [&](std::string_view bytes, std::string_view part) {
    expect_refused(scratch.write("bad.safetensors", bytes), "bad.safetensors", part);
  };
  expect("", "truncated: 0 bytes");
  expect("1234567", "truncated: 7 bytes");
  expect(std::string_view("\x03\0\0\0\0\0\0\0{}", 10), "header length 3 at offset 0 is larger");
  expect("\xff\xff\xff\xff\xff\xff\xff\xff{}", "header length 18446744073709551615");
  expect(std::string_view("\x01\xe1\xf5\x05\0\0\0\0{}", 10), "header length 100000001");
  expect(std::string_view("\x02\0\0\0\0\0\0\0xx", 10), "not JSON");
  expect_refused(scratch.write_model("short.safetensors", header_of({"a", "b"}), "1"),
                 "short.safetensors", "tensor b: 1 bytes at offset 1 are out of range");
  expect_refused(scratch.write_model("none.safetensors", "{}", ""), "none.safetensors",
                 "empty model");
  expect_refused(scratch.path() / "absent.safetensors", "absent.safetensors", "No such file");
}

TEST(SafetensorsModel, WhatIsNoRegularFileIsRefusedWithoutWaiting) {
  const Scratch scratch;
  const auto fifo = scratch.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  expect_refused(fifo, "fifo", "not a regular file");
}

TEST(SafetensorsModel, AFileThatShrinksIsAnErrorNamingTheTensor) {
  const Scratch scratch;
  const auto path = scratch.write_model("m.safetensors", header_of({"a", "b", "c"}), "123");
  const auto model = open_model(path);
  ASSERT_TRUE(model.has_value());
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 2);
  std::byte byte{};
  EXPECT_TRUE(model->read(model->tensors()[0], 0, {&byte, 1}).has_value());
  const Status status = model->read(model->tensors()[1], 0, {&byte, 1});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code(), Code::kBadInput);
  EXPECT_THAT(status.error().message(), AllOf(HasSubstr("m.safetensors"), HasSubstr("tensor b"),
                                              HasSubstr("ends at offset")));
}

TEST(SafetensorsModel, ADirectoryHoldsOneModel) {
  const Scratch scratch;
  expect_refused(scratch.path(), scratch.path().native(), "no model here");
  scratch.write_model("adapter.safetensors", header_of({"other"}), "1");
  EXPECT_THAT(names_of(open_model(scratch.path()).value()), ElementsAre("other"));
  scratch.write_model("more.safetensors", header_of({"more"}), "1");
  expect_refused(scratch.path(), "adapter.safetensors, more.safetensors", "2 .safetensors files");
  scratch.write_model("model.safetensors", header_of({"main"}), "1");
  EXPECT_THAT(names_of(open_model(scratch.path()).value()), ElementsAre("main"));
}

// A directory of two shards, the second in name but first in the index.
void write_shards(const Scratch& scratch, std::string_view weight_map) {
  scratch.write_model("s1.safetensors", header_of({"z", "y"}), "12");
  scratch.write_model("s2.safetensors", header_of({"a", "b"}), "34");
  scratch.write("model.safetensors.index.json",
                R"({"metadata":{},"weight_map":{)" + std::string(weight_map) + "}}");
}

TEST(SafetensorsModel, ShardsComeInTheOrderOfTheirFiles) {
  const Scratch scratch;
  write_shards(scratch, R"("a":"s2.safetensors","b":"s2.safetensors",
                           "y":"s1.safetensors","z":"s1.safetensors")");
  const auto model = open_model(scratch.path());
  ASSERT_TRUE(model.has_value()) << model.error().message();
  EXPECT_THAT(names_of(*model), ElementsAre("z", "y", "a", "b"));
  EXPECT_EQ(model->files().size(), 2u);
  EXPECT_EQ(model->payload_size(), 4u);
  std::string bytes;
  for (const auto& tensor : model->tensors()) bytes += read_all(*model, tensor);
  EXPECT_EQ(bytes, "1234");
}

TEST(SafetensorsModel, AnIndexThatDisagreesWithItsShardsIsRefused) {
  const Scratch scratch;
  const std::string first = R"("y":"s1.safetensors","z":"s1.safetensors",)";
  write_shards(scratch, first + R"("a":"s2.safetensors")");
  expect_refused(scratch.path(), "s2.safetensors", "does not place there: b");
  write_shards(scratch, first + R"("a":"s2.safetensors","b":"s1.safetensors")");
  expect_refused(scratch.path(), "s1.safetensors",
                 "lacks 1 tensors that the index places there: b");
  write_shards(scratch, first + R"("a":"s2.safetensors","b":"s2.safetensors","c":"s3")");
  expect_refused(scratch.path(), "shard s3", "No such file");
  write_shards(scratch, "");
  expect_refused(scratch.path(), scratch.path().native(), "empty model");
  scratch.write("model.safetensors.index.json", "{");
  expect_refused(scratch.path(), "model.safetensors.index.json", "not JSON");
}

TEST(SafetensorsModel, OnlyTheFirstTenMissingTensorsAreNamed) {
  const Scratch scratch;
  std::string map = R"("y":"s1.safetensors","z":"s1.safetensors")";
  for (char c = 'a'; c < 'm'; ++c) map += std::string(",\"t") + c + R"(":"s1.safetensors")";
  write_shards(scratch, map);
  expect_refused(scratch.path(), "lacks 12 tensors",
                 "ta, tb, tc, td, te, tf, tg, th, ti, tj and 2 more");
}

TEST(SafetensorsModel, ATensorInTwoFilesIsRefused) {
  const Scratch scratch;
  const std::array paths = {scratch.write_model("1", header_of({"a", "b"}), "12"),
                            scratch.write_model("2", header_of({"b"}), "3")};
  const auto model = SafetensorsModel::open(paths);
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code(), Code::kBadInput);
  EXPECT_THAT(model.error().message(), AllOf(HasSubstr(paths[1].native() + ": tensor b at offset"),
                                             HasSubstr("is also in " + paths[0].native())));
}

TEST(SafetensorsModel, SeveralFilesAreOneModelInTheOrderGiven) {
  const Scratch scratch;
  const std::array paths = {scratch.write_model("2", header_of({"x"}), "1"),
                            scratch.write_model("1", header_of({"a"}), "2")};
  EXPECT_THAT(names_of(SafetensorsModel::open(paths).value()), ElementsAre("x", "a"));
  EXPECT_FALSE(SafetensorsModel::open({}).has_value());
}

TEST(SafetensorsModel, TooFewDescriptorsNameTheLimitToRaise) {
  const Scratch scratch;
  const auto path = scratch.write_model("m.safetensors", header_of({"a"}), "1");
  const int code = exit_code_of_child([&] {
    // Every descriptor below the limit is in use: the lowest free one is the limit.
    const int next = ::dup(0);
    const rlimit limit{static_cast<rlim_t>(next), static_cast<rlim_t>(next)};
    ::close(next);
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 10;
    const auto model = open_model(path);
    if (model) return 11;
    if (model.error().code() != Code::kNoResource) return 12;
    return model.error().message().find("ulimit -n") == std::string::npos ? 13 : 0;
  });
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace weightcast
