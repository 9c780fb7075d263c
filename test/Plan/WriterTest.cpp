// SPDX-License-Identifier: Apache-2.0
#include "runtime/PlanFile.h"
#include "test/Plan/SmallPlan.h"

#include <gtest/gtest.h>

#include <csignal>
#include <sys/resource.h>

using namespace otf;
using namespace otf::test;

namespace {

TEST(PlanWriter, WhatIsWrittenIsRead) {
  Folder folder;
  std::string path = folder.path + "/p.plan", error;
  ASSERT_TRUE(writeSmall(path, smallPlan(), error)) << error;
  EXPECT_EQ(folder.files(), 1u);
  auto read = runtime::PlanFile::open(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  runtime::PlanFile &p = *read.value();
  EXPECT_EQ(p.model, "small.onnx");
  EXPECT_EQ(p.symbols.size(), 3u);
  ASSERT_EQ(p.inputs.size(), 2u);
  EXPECT_EQ(p.inputs[1].name, "mask");
  EXPECT_EQ(p.sizes[p.inputs[1].shape[1]], (runtime::Polynomial{{1, {0}}, {1, {2}}}));
  EXPECT_EQ(p.outputs[0].type, runtime::ElementType::f16);
  EXPECT_EQ(p.states[0].output, "present.0.key");
  EXPECT_TRUE(p.weights[0].vocabulary && !p.weights[1].vocabulary);
  EXPECT_EQ(p.weightBytes().size(), 96u);
  const runtime::ProgramInfo &cuda = *p.program("cuda");
  ASSERT_EQ(cuda.steps.size(), 2u);
  EXPECT_STREQ(cuda.steps[1].kernel, "k1");
  EXPECT_EQ(cuda.steps[1].grain, 8u);
  EXPECT_EQ(cuda.steps[1].shared, 1024u);
  EXPECT_EQ(cuda.buffers[cuda.steps[0].firstBuffer + 1].offset, 64u);
  EXPECT_EQ(p.sizes[cuda.steps[0].grid[2]], (runtime::Polynomial{{1, {}}}));
  EXPECT_EQ(p.objects[1].level, "avx512vnni");
  EXPECT_EQ(p.objects[1].bytes.size(), 28u);
  EXPECT_EQ(p.program("tpu"), nullptr);
}

TEST(PlanWriter, EqualInputGivesEqualBytes) {
  Folder folder;
  std::string error;
  ASSERT_TRUE(writeSmall(folder.path + "/a", smallPlan(), error));
  ASSERT_TRUE(writeSmall(folder.path + "/b", smallPlan(), error));
  EXPECT_EQ(bytesOf(folder.path + "/a"), bytesOf(folder.path + "/b"));
}

TEST(PlanWriter, LargeSectionsStream) {
  Folder folder;
  std::string path = folder.path + "/p.plan", error;
  plan::Writer writer(path);
  writer.beginSection(plan::SectionKind::weights);
  std::vector<std::byte> part(99991, std::byte(5)); // does not divide the buffer
  for (int i = 0; i < 30; ++i) {
    writer.align(64);
    EXPECT_EQ(writer.position() % 64, 0u);
    writer.append(part);
  }
  writer.endSection();
  plan::model::Plan p = smallPlan();
  p.objects.clear(), p.cubins.clear();
  writer.beginSection(plan::SectionKind::metadata);
  writer.append(serialize(p));
  writer.endSection();
  ASSERT_TRUE(writer.finish(error)) << error;
  auto read = runtime::PlanFile::open(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_GT(read.value()->weightBytes().size(), 30u * 99991);
}

TEST(PlanWriter, AnAbandonedPlanLeavesTheOldFile) {
  Folder folder;
  std::string path = folder.path + "/p.plan", error;
  ASSERT_TRUE(writeSmall(path, smallPlan(), error));
  auto before = bytesOf(path);
  {
    plan::Writer writer(path);
    writer.beginSection(plan::SectionKind::weights);
    writer.append(std::vector<std::byte>(5 << 20));
  }
  EXPECT_EQ(folder.files(), 1u);
  EXPECT_EQ(bytesOf(path), before);
}

TEST(PlanWriter, AFullDiskIsOneSentenceAndLeavesNothing) {
  Folder folder;
  std::string error;
  auto *old = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before, small;
  getrlimit(RLIMIT_FSIZE, &before);
  small = before;
  for (rlim_t limit : {0, 4096, 8192, 8200}) {
    small.rlim_cur = limit;
    setrlimit(RLIMIT_FSIZE, &small);
    bool good = writeSmall(folder.path + "/p.plan", smallPlan(), error);
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_FALSE(good);
    EXPECT_NE(error.find("cannot be written in '" + folder.path), std::string::npos) << error;
    EXPECT_EQ(folder.files(), 0u);
  }
  std::signal(SIGXFSZ, old);
}

TEST(PlanWriter, APlaceThatCannotBeWrittenIsOneSentence) {
  std::string error;
  EXPECT_FALSE(writeSmall("/nowhere/p.plan", smallPlan(), error));
  EXPECT_NE(error.find("'/nowhere'"), std::string::npos) << error;
  EXPECT_FALSE(writeSmall("/dev/full", smallPlan(), error));
  EXPECT_FALSE(writeSmall("/tmp", smallPlan(), error));
  EXPECT_FALSE(writeSmall("", smallPlan(), error));
}

TEST(PlanWriter, AWholeTableOfSectionsIsRefusedBeyondItsRoom) {
  Folder folder;
  plan::Writer writer(folder.path + "/p.plan");
  for (int i = 0; i < 200; ++i) {
    writer.beginSection(plan::SectionKind::report);
    writer.endSection();
  }
  std::string error;
  EXPECT_FALSE(writer.finish(error));
  EXPECT_EQ(folder.files(), 0u);
}

} // namespace
