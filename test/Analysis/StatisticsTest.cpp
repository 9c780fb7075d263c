// SPDX-License-Identifier: Apache-2.0
//
// A file of statistics may be anybody's: whatever is wrong with it is one sentence.
#include "lib/Analysis/Statistics.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <functional>
#include <random>
#include <unistd.h>

using namespace otf;
using Json = nlohmann::ordered_json;

namespace {

/// A file of one set of 3 channels for weights "a" and "b", which tests change before it is written.
struct File {
  Json header;
  std::string data;

  File() {
    header["__metadata__"] = {{"format", "otf-calibration-1"}, {"model", "key"}, {"source", "words"}, {"settings", "s"}, {"weights", R"({"a": "a", "b": "a"})"}};
    add<int64_t>("a/rows", "I64", {1}, {4});
    add<double>("a/moments", "F64", {5, 3}, {4, -8, 0, 8, 8, 12, 20, 16, 40, -1, -4, -5, 2, 0, 5});
    std::vector<int64_t> histogram(4096);
    histogram[7] = 12;
    add<int64_t>("a/histogram", "I64", {4096}, histogram);
    add<float>("a/products", "F32", {6}, {20, 1, 16, 2, 3, 40});
  }
  template <typename T> void add(const char *name, const char *type, std::vector<uint64_t> shape, const std::vector<T> &values) {
    uint64_t begin = data.size();
    data.append(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
    header[name] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
  }
  std::string bytes() const {
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    uint64_t length = text.size();
    return std::string(reinterpret_cast<const char *>(&length), 8) + text + data;
  }
};

struct StatisticsTest : testing::Test {
  StatisticsTest() : path(testing::TempDir() + "otf-statistics-" + std::to_string(getpid()) + ".safetensors") {}
  ~StatisticsTest() override { llvm::sys::fs::remove(path); }

  llvm::Expected<Statistics> open(llvm::StringRef bytes) {
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << bytes;
    return Statistics::open(path);
  }
  std::string errorOf(llvm::StringRef bytes) {
    llvm::Expected<Statistics> opened = open(bytes);
    return opened ? "" : llvm::toString(opened.takeError());
  }
  /// The sentence about a file that `change` has changed, without the path.
  std::string errorAfter(std::function<void(File &)> change) {
    File file;
    change(file);
    std::string error = errorOf(file.bytes());
    EXPECT_TRUE(llvm::StringRef(error).starts_with(path + ": ")) << error;
    return error.substr(std::min(error.size(), path.size() + 2));
  }
  std::string path;
};

TEST_F(StatisticsTest, WhatWasWrittenIsRead) {
  llvm::Expected<Statistics> opened = open(File().bytes());
  ASSERT_TRUE(bool(opened)) << llvm::toString(opened.takeError());
  EXPECT_TRUE(Statistics::isStatistics(path));
  EXPECT_EQ(opened->model(), "key");
  EXPECT_EQ(opened->source(), "words");
  EXPECT_EQ(opened->setCount(), 1u);
  const ChannelStatistics *a = opened->find("a");
  ASSERT_TRUE(a);
  EXPECT_EQ(opened->find("b"), a);
  EXPECT_EQ(opened->find("c"), nullptr);
  EXPECT_EQ(a->channels, 3);
  EXPECT_EQ(a->rows, 4);
  EXPECT_EQ(a->mean(1), -2);
  EXPECT_EQ(a->meanAbsolute(2), 3);
  EXPECT_EQ(a->meanSquare(0), 5);
  EXPECT_EQ(a->least[2], -5);
  EXPECT_EQ(a->largest[2], 5);
  EXPECT_EQ(a->histogram[7], 12);
  EXPECT_EQ(a->product(2, 1), 3);
  EXPECT_EQ(a->product(1, 2), 3);
  EXPECT_EQ(a->productRow(2).back(), 40);
}

TEST_F(StatisticsTest, ProductsMayBeLeftOut) {
  File file;
  file.header["a/products"]["shape"] = {0};
  file.header["a/products"]["data_offsets"] = {0, 0};
  llvm::Expected<Statistics> opened = open(file.bytes());
  ASSERT_TRUE(bool(opened)) << llvm::toString(opened.takeError());
  EXPECT_FALSE(opened->find("a")->hasProducts());
}

TEST_F(StatisticsTest, EveryTruncationIsRefused) {
  std::string bytes = File().bytes();
  for (size_t length = 0; length < bytes.size(); length += length < 2000 ? 1 : 97)
    EXPECT_NE(errorOf(llvm::StringRef(bytes).take_front(length)), "") << length;
}

TEST_F(StatisticsTest, AnyByteMayBeAnother) {
  std::string good = File().bytes();
  std::mt19937 random(1);
  for (int trial = 0; trial < 3000; ++trial) {
    std::string bytes = good;
    for (int change = 0; change < 1 + trial % 3; ++change)
      bytes[random() % 1200] = char(random());
    llvm::Expected<Statistics> opened = open(bytes); // or a sentence; never a crash
    if (!opened)
      EXPECT_NE(llvm::toString(opened.takeError()), "");
    else if (const ChannelStatistics *a = opened->find("a"))
      EXPECT_EQ(a->sums.size(), size_t(a->channels));
  }
}

TEST_F(StatisticsTest, SaysWhatIsWrong) {
  EXPECT_NE(errorAfter([](File &f) { f.header["__metadata__"]["format"] = "other"; }).find("is no file of statistics"), std::string::npos);
  EXPECT_NE(errorAfter([](File &f) { f.header["__metadata__"].erase("weights"); }).find("does not say which weights"), std::string::npos);
  EXPECT_NE(errorAfter([](File &f) { f.header["__metadata__"]["weights"] = R"({"a": 3})"; }).find("no name of a set"), std::string::npos);
  EXPECT_NE(errorAfter([](File &f) { f.header.erase("a/rows"); }).find("has no tensor 'a/rows' of type I64"), std::string::npos);
  EXPECT_NE(errorAfter([](File &f) { f.header["a/rows"]["dtype"] = "F64"; }).find("has no tensor 'a/rows' of type I64"), std::string::npos);
  EXPECT_NE(errorAfter([](File &f) { f.header["a/rows"]["dtype"] = "BF16"; }).find("is of type BF16"), std::string::npos);
  EXPECT_NE(errorAfter([](File &f) { f.header["a/products"]["shape"] = {5}; }).find("has 24 bytes, and its shape needs 20"), std::string::npos);
  EXPECT_NE(errorAfter([](File &f) { f.header["a/moments"]["shape"] = {3, 5}; }).find("have other shapes than"), std::string::npos);
  EXPECT_NE(errorAfter([](File &f) { f.header["a/moments"]["shape"] = {uint64_t(1) << 62, 16}; }).find("a shape that is too large"), std::string::npos);
  EXPECT_NE(errorAfter([](File &f) { f.header["a/rows"]["data_offsets"] = {8, 0}; }).find("lies in bytes 8 to 0"), std::string::npos);
  EXPECT_NE(errorAfter([](File &f) { f.header["a/rows"]["data_offsets"] = {0, uint64_t(1) << 63}; }).find("lies in bytes 0 to"), std::string::npos);
  EXPECT_NE(errorAfter([](File &f) { f.header["a/rows"]["data_offsets"] = {4, 12}; }).find("is not aligned"), std::string::npos);
  EXPECT_NE(errorAfter([](File &f) { f.header["a/rows"]["shape"] = {-1}; }).find("has no dtype, shape and data_offsets"), std::string::npos);
  EXPECT_NE(errorAfter([](File &f) { std::memset(f.data.data(), 0, 8); }).find("count 0 rows"), std::string::npos);
  EXPECT_NE(errorAfter([](File &f) { std::memset(f.data.data() + 8 + 6 * 8, 0xff, 8); }).find("are NaN"), std::string::npos);
}

TEST_F(StatisticsTest, TextsAndFoldersAreOther) {
  EXPECT_FALSE(Statistics::isStatistics(testing::TempDir()));
  EXPECT_FALSE(Statistics::isStatistics(path)); // there is none yet
  EXPECT_NE(errorOf("The river leaves the hills a little above the old mill."), "");
  EXPECT_FALSE(Statistics::isStatistics(path));
  EXPECT_NE(llvm::toString(Statistics::open(testing::TempDir()).takeError()).find("is no file of statistics"), std::string::npos);
}

} // namespace
