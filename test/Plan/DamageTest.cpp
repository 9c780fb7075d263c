// SPDX-License-Identifier: Apache-2.0
//
// A damaged plan is one sentence. Plain damage is caught by checksums; the tests that repair the
// checksums afterwards reach the checks behind them.
#include "runtime/PlanFile.h"
#include "test/Plan/SmallPlan.h"

#include <gtest/gtest.h>
// No library to link: the header has it all.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <random>

using namespace otf;
using namespace otf::test;
using runtime::PlanFile;

namespace {

/// A copy that starts where a mapped file would: at the beginning of a page.
class Image {
public:
  explicit Image(const std::vector<std::byte> &bytes) : size(bytes.size()) {
    data = static_cast<std::byte *>(std::aligned_alloc(4096, (size + 4096) / 4096 * 4096));
    std::memcpy(data, bytes.data(), size);
  }
  ~Image() { std::free(data); }
  Image(const Image &) = delete;
  Image &operator=(const Image &) = delete;
  runtime::Bytes bytes() const { return {data, size}; }

  plan::FileHeader header() const {
    plan::FileHeader h;
    std::memcpy(&h, data, sizeof h);
    return h;
  }
  plan::SectionEntry *entries() {
    return reinterpret_cast<plan::SectionEntry *>(data + sizeof(plan::FileHeader));
  }
  /// Makes all checksums right again.
  void seal() {
    plan::FileHeader h = header();
    for (uint32_t i = 0; i < h.sectionCount; ++i)
      if (entries()[i].offset <= size && entries()[i].size <= size - entries()[i].offset)
        entries()[i].checksum = XXH3_64bits(data + entries()[i].offset, entries()[i].size);
    std::vector<std::byte> covered(data, data + 24);
    covered.insert(covered.end(), data + 32, data + 32 + h.sectionCount * sizeof(plan::SectionEntry));
    h.checksum = XXH3_64bits(covered.data(), covered.size());
    std::memcpy(data, &h, sizeof h);
  }

  std::byte *data;
  size_t size;
};

std::vector<std::byte> smallBytes(const plan::model::Plan &p = smallPlan()) {
  Folder folder;
  std::string error;
  EXPECT_TRUE(writeSmall(folder.path + "/p", p, error)) << error;
  return bytesOf(folder.path + "/p");
}

std::string refusal(const Image &image) {
  auto plan = PlanFile::read(image.bytes());
  return plan.ok() ? "" : plan.status().message();
}

TEST(DamagedPlan, EveryTruncationIsRefused) {
  Image image(smallBytes());
  ASSERT_EQ(refusal(image), "");
  for (size_t n = 0; n < image.size; ++n)
    ASSERT_FALSE(PlanFile::read(image.bytes().first(n)).ok()) << n;
}

TEST(DamagedPlan, EveryChangedByteIsRefused) {
  Image image(smallBytes());
  for (size_t i = 0; i < image.size; ++i)
    for (unsigned change : {1u, 0x80u, 0xffu}) {
      image.data[i] ^= std::byte(change);
      ASSERT_NE(refusal(image), "") << i;
      image.data[i] ^= std::byte(change);
    }
  EXPECT_EQ(refusal(image), "");
}

TEST(DamagedPlan, AppendedBytesAreRefused) {
  std::vector<std::byte> bytes = smallBytes();
  bytes.push_back(std::byte(0));
  EXPECT_NE(refusal(Image(bytes)), "");
}

TEST(DamagedPlan, ANewerVersionSaysSo) {
  Image image(smallBytes());
  plan::FileHeader h = image.header();
  h.version = 2;
  std::memcpy(image.data, &h, sizeof h);
  EXPECT_NE(refusal(image).find("plan format 2, this program reads up to 1"), std::string::npos);
}

TEST(DamagedPlan, KindsOfDamageAreToldApart) {
  Image image(smallBytes());
  EXPECT_NE(PlanFile::read(image.bytes().first(5000)).status().message().find("cut plan"),
            std::string::npos);
  image.data[7] = std::byte('\r');
  EXPECT_NE(refusal(image).find("line ends"), std::string::npos);
  image.data[0] = std::byte('X');
  EXPECT_NE(refusal(image).find("not a plan"), std::string::npos);
  EXPECT_NE(PlanFile::read({}).status().message().find("empty"), std::string::npos);
}

TEST(DamagedPlan, SectionsOutsideTheFileAreRefused) {
  for (uint64_t value : {uint64_t(0), uint64_t(4096) * 2, uint64_t(1) << 63, ~uint64_t(4095), uint64_t(1)})
    for (uint32_t i = 0; i < 4; ++i) {
      Image image(smallBytes());
      uint64_t &offset = image.entries()[i].offset;
      if (offset == value)
        continue;
      offset = value;
      image.seal();
      EXPECT_NE(refusal(image), "") << i << " " << value;
    }
  for (uint64_t value : {~uint64_t(0), uint64_t(1) << 63, uint64_t(100000)}) {
    Image image(smallBytes());
    image.entries()[3].size = value;
    image.seal();
    EXPECT_NE(refusal(image), "") << value;
  }
}

TEST(DamagedPlan, ChangedMetadataWithRightChecksumsDoesNotCrash) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes = smallBytes();
  size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    Image image(bytes);
    const plan::SectionEntry metadata = image.entries()[3];
    for (unsigned n = 0; n <= random() % 3; ++n)
      image.data[metadata.offset + random() % metadata.size] = std::byte(random());
    image.seal();
    refused += refusal(image) != "";
  }
  EXPECT_GT(refused, 1000u);
}

TEST(DamagedPlan, EveryIndexIsChecked) {
  using namespace plan::model;
  using Change = void (*)(Plan &);
  const Change changes[] = {
      [](Plan &p) { p.past = 3; },
      [](Plan &p) { p.capacity = 0; },
      [](Plan &p) { p.inputs[0].shape[0] = Size::symbol(3); },
      [](Plan &p) { p.inputs[0].type = ElementType(200); },
      [](Plan &p) { p.outputs[0].shape[1] = Size{{Term{1, std::vector<uint32_t>(17, 2)}}}; },
      [](Plan &p) { p.states[0].axis = 4; },
      [](Plan &p) { p.states[0].axis = 1; },
      [](Plan &p) { p.states[0].shape[1] = Size::symbol(0); },
      [](Plan &p) { p.weights[0].size = 97; },
      [](Plan &p) { p.weights[1].offset = ~uint64_t(63); },
      [](Plan &p) { p.weights[1].offset = 32; },
      [](Plan &p) { p.objects[1].size = 29; },
      [](Plan &p) { p.cubins[0].offset = ~uint64_t(0); },
      [](Plan &p) { p.programs[1].target = "cpu"; },
      [](Plan &p) { p.programs[0].steps[0].kernel = ""; },
      [](Plan &p) { p.programs[0].steps[0].grain = 0; },
      [](Plan &p) { p.programs[0].steps[0].kind = StepKind(4); },
      [](Plan &p) { p.programs[0].steps[0].kind = StepKind::jump; },
      [](Plan &p) { p.programs[0].steps[0].kind = StepKind::bind; },
      [](Plan &p) { p.programs[0].steps[0].symbols = {200}; },
      [](Plan &p) { p.programs[0].steps[0].target = 200; },
      [](Plan &p) { p.programs[1].steps[0].grid.clear(); },
      [](Plan &p) { p.programs[1].steps[0].block = 1025; },
      [](Plan &p) { p.programs[0].steps[0].grid.resize(4); },
      [](Plan &p) { p.programs[0].steps[0].buffers[0].index = 2; },
      [](Plan &p) { p.programs[0].steps[0].buffers[0].space = Space(5); },
      [](Plan &p) { p.programs[0].steps[0].buffers[1].offset = 97; },
      [](Plan &p) { p.programs[0].steps[0].buffers[2].index = 1; },
      [](Plan &p) { p.programs[0].steps[0].buffers[2].offset = 64; },
      [](Plan &p) { p.programs[0].steps[1].buffers[1].index = 1; },
      [](Plan &p) { p.programs[0].steps[1].buffers[2].index = 1; },
      [](Plan &p) { p.programs[0].steps[1].dims[0] = Size::symbol(9); },
      [](Plan &p) { p.programs[0].slots[0].sizes[0] = Size::symbol(9); },
  };
  for (size_t i = 0; i < std::size(changes); ++i) {
    Plan p = smallPlan();
    changes[i](p);
    EXPECT_NE(refusal(Image(smallBytes(p))).find("damaged plan"), std::string::npos) << "change " << i;
  }
}

} // namespace
