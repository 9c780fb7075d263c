// SPDX-License-Identifier: Apache-2.0
#include "runtime/Npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

using namespace otf::runtime;

namespace {

Bytes bytesOf(const std::string &text) {
  return {reinterpret_cast<const std::byte *>(text.data()), text.size()};
}

std::string file(const std::string &header, const std::string &data, char version = 1) {
  std::string text = std::string("\x93NUMPY", 6) + version + '\0';
  text += {char(header.size() & 255), char(header.size() >> 8)};
  if (version > 1)
    text += std::string(2, '\0');
  return text + header + data;
}

TEST(Npy, EveryVersionIsRead) {
  for (char version : {1, 2, 3}) {
    auto array = parseNpy(bytesOf(file("{'descr': '<i8', 'fortran_order': False, 'shape': (1, 2), }\n",
                                       std::string(16, '\1'), version)));
    ASSERT_TRUE(array.ok()) << array.status().message();
    EXPECT_EQ(array.value().type, ElementType::i64);
    EXPECT_EQ(array.value().shape, (std::vector<int64_t>{1, 2}));
  }
}

TEST(Npy, AScalarHasNoAxes) {
  auto array = parseNpy(bytesOf(file("{'descr':'<f4','fortran_order':False,'shape':()}", "abcd")));
  ASSERT_TRUE(array.ok());
  EXPECT_TRUE(array.value().shape.empty());
}

TEST(Npy, WhatIsNotSupportedIsSaid) {
  auto message = [](const std::string &header, const std::string &data) {
    return parseNpy(bytesOf(file(header, data))).status().message();
  };
  EXPECT_NE(message("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", "abcd")
                .find("column-major"),
            std::string::npos);
  EXPECT_NE(message("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "abcd").find("'>f4'"),
            std::string::npos);
  EXPECT_NE(message("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "abcd").find("cut"),
            std::string::npos);
  EXPECT_NE(message("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999,99999999999)}",
                    "abcd")
                .find("2^63"),
            std::string::npos);
  EXPECT_FALSE(parseNpy(bytesOf("hello")).ok());
}

TEST(Npy, EveryTruncationIsRefused) {
  std::string whole = file("{'descr': '<i8', 'fortran_order': False, 'shape': (1, 2), }\n",
                           std::string(16, '\1'));
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(parseNpy(bytesOf(whole.substr(0, n))).ok()) << n;
}

TEST(Npy, WhatIsWrittenIsRead) {
  char path[] = "/tmp/otf-npy-XXXXXX";
  close(mkstemp(path));
  const float data[6] = {1, 2, 3, 4, 5, 6};
  for (std::vector<int64_t> shape : {std::vector<int64_t>{6}, {2, 3}, {1, 2, 3}, {0, 4}}) {
    ASSERT_TRUE(writeNpy(path, ElementType::f32, shape, data).ok());
    auto array = readNpy(path);
    ASSERT_TRUE(array.ok()) << array.status().message();
    EXPECT_EQ(array.value().shape, shape);
    EXPECT_EQ(std::memcmp(array.value().bytes.data(), data, array.value().bytes.size()), 0);
  }
  unlink(path);
}

TEST(Npy, TypesThatNumpyLacksAreBits) {
  for (const char *code : {"<V1", "|V1", "<f1"}) { // ml_dtypes writes all of these
    auto array = parseNpy(bytesOf(file("{'descr': '" + std::string(code) + "', 'fortran_order': False, 'shape': (2,)}", "ab")));
    ASSERT_TRUE(array.ok()) << array.status().message();
    EXPECT_TRUE(array.value().isBits);
    array.value().readAs(ElementType::u8); // a type that has a name
    EXPECT_TRUE(array.value().isBits);
    array.value().readAs(ElementType::bf16); // another size
    EXPECT_TRUE(array.value().isBits);
    array.value().readAs(ElementType::f8e5m2);
    EXPECT_FALSE(array.value().isBits);
    EXPECT_EQ(array.value().type, ElementType::f8e5m2);
  }
  char path[] = "/tmp/otf-npy-XXXXXX";
  close(mkstemp(path));
  const uint16_t data[2] = {0x3f80, 0xc000};
  ASSERT_TRUE(writeNpy(path, ElementType::bf16, std::vector<int64_t>{2}, data).ok());
  auto array = readNpy(path);
  ASSERT_TRUE(array.ok()) << array.status().message();
  EXPECT_TRUE(array.value().isBits);
  array.value().readAs(ElementType::bf16);
  EXPECT_EQ(array.value().type, ElementType::bf16);
  unlink(path);
}

TEST(Npy, WhatHasNoEndIsNotRead) {
  const std::string pipe = "/tmp/otf-npy-pipe-" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string &path : {pipe, std::string("/dev/zero"), std::string("/tmp")}) {
    EXPECT_NE(readNpy(path).status().message().find("not a regular file"), std::string::npos) << path;
    EXPECT_FALSE(PlanFile::open(path).ok()) << path;
  }
  const float data[1] = {};
  EXPECT_FALSE(writeNpy(pipe, ElementType::f32, std::vector<int64_t>{1}, data).ok());
  unlink(pipe.c_str());
  EXPECT_EQ(readNpy("").status().message(), "the path is empty");
}

TEST(Npy, AFileOfHolesTakesNoMemory) {
  char path[] = "/tmp/otf-npy-XXXXXX";
  int fd = mkstemp(path);
  if (ftruncate(fd, off_t(1) << 43) == 0) // else the file system has its own limit
    EXPECT_NE(readNpy(path).status().message().find("fit in memory"), std::string::npos);
  close(fd);
  unlink(path);
}

TEST(Npy, AFullDiskIsAnError) {
  const float data[4] = {};
  EXPECT_FALSE(writeNpy("/dev/full", ElementType::f32, std::vector<int64_t>{4}, data).ok());
}

} // namespace
