#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/pattern.h"
#include "plan_cases.h"
#include "scratch.h"
#include "weightcast/base/size.h"
#include "weightcast/plan/safetensors.h"

namespace weightcast {
namespace {

using testing::bytes_tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Scratch;

TEST(SafetensorsWriter, WhatIsWrittenInPiecesReadsBackTheSame) {
  const Scratch scratch;
  const auto path = scratch.path() / "new" / "v1" / "model.safetensors";
  const auto metas = testing::random_metas(3, 50, 64 * kKiB);
  const auto created = SafetensorsWriter::create(path, metas);
  ASSERT_TRUE(created.has_value()) << created.error().message();
  SafetensorsWriter& writer = **created;
  for (size_t i = metas.size(); i-- > 0;) {
    const auto bytes = testing::make_pattern(metas[i], 1, i);
    const size_t half = bytes.size() / 2;
    ASSERT_TRUE(writer.write(i, half, std::span(bytes).subspan(half)).has_value());
    ASSERT_TRUE(writer.write(i, 0, std::span(bytes).first(half)).has_value());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(writer.commit().has_value());

  const auto model = SafetensorsModel::open(std::array{path});
  ASSERT_TRUE(model.has_value()) << model.error().message();
  ASSERT_EQ(model->metas(), metas);
  for (size_t i = 0; i < metas.size(); ++i) {
    std::vector<std::byte> bytes(byte_size(metas[i]));
    ASSERT_TRUE(model->read(model->tensors()[i], 0, bytes).has_value());
    EXPECT_EQ(testing::first_difference(bytes, 1, i), bytes.size()) << metas[i].name;
  }
}

TEST(SafetensorsWriter, TheOldFileStaysUntilCommit) {
  const Scratch scratch;
  const auto path = scratch.write("model.safetensors", "old");
  const std::array metas = {bytes_tensor("a", 5)};
  {
    const auto writer = SafetensorsWriter::create(path, metas);
    ASSERT_TRUE(writer.has_value());
    EXPECT_EQ(scratch.read("model.safetensors"), "old");
  }
  EXPECT_EQ(scratch.read("model.safetensors"), "old");
  EXPECT_THAT(scratch.names(), ElementsAre("model.safetensors"));
  const auto writer = SafetensorsWriter::create(path, metas);
  ASSERT_TRUE(writer.has_value() && (*writer)->commit());
  EXPECT_NE(scratch.read("model.safetensors"), "old");
  EXPECT_THAT(scratch.names(), ElementsAre("model.safetensors"));
}

TEST(SafetensorsWriter, AModelLargerThanTheDiskIsRefusedEarly) {
  const Scratch scratch;
  const std::array metas = {bytes_tensor("a", kMaxTensorSize)};
  const auto writer = SafetensorsWriter::create(scratch.path() / "m.safetensors", metas);
  ASSERT_FALSE(writer.has_value());
  EXPECT_EQ(writer.error().code(), Code::kNoResource);
  EXPECT_THAT(writer.error().message(), HasSubstr("m.safetensors: needs "));
  EXPECT_THAT(scratch.names(), IsEmpty());
}

TEST(SafetensorsWriter, WhatAFileCanNotHoldIsRefused) {
  const Scratch scratch;
  const auto expect_refused = [&](std::vector<TensorMeta> metas, const std::string& part) {
    const auto writer = SafetensorsWriter::create(scratch.path() / "f", metas);
    ASSERT_FALSE(writer.has_value());
    EXPECT_EQ(writer.error().code(), Code::kBadInput);
    EXPECT_THAT(writer.error().message(), HasSubstr(part));
  };
  expect_refused({bytes_tensor("__metadata__", 1)}, "__metadata__");
  expect_refused({bytes_tensor("a", 1), bytes_tensor("a", 1)}, "tensor a comes twice");
  expect_refused({{"a", DType::kU8, {uint64_t{1} << 63, 4}}}, "larger than");
  std::vector<TensorMeta> many;
  for (int i = 0; i < 300; ++i) many.push_back(bytes_tensor(std::to_string(i), kMaxTensorSize));
  expect_refused(many, "ends past what a file can hold");
  EXPECT_THAT(scratch.names(), IsEmpty());
}

TEST(SafetensorsWriter, ADirectoryThatCanNotBeMadeIsRefused) {
  const Scratch scratch;
  scratch.write("file", "x");
  const std::array metas = {bytes_tensor("a", 1)};
  const auto writer = SafetensorsWriter::create(scratch.path() / "file" / "m", metas);
  ASSERT_FALSE(writer.has_value());
  EXPECT_EQ(writer.error().code(), Code::kBadInput);
}

}  // namespace
}  // namespace weightcast
