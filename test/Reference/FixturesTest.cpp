// SPDX-License-Identifier: Apache-2.0
//
// Models by real exporters: double results against those of ONNX Runtime, and stages against each
// other.

#include "test/Reference/Fixture.h"
#include "test/Reference/Model.h"

#include <gtest/gtest.h>

namespace otf::reference::test {
namespace {

constexpr double kStoredTolerance = 1e-4; // meta.json of each fixture
const char *const cases[] = {"prefill", "decode", "padded_left"};

class Decoder : public testing::TestWithParam<const char *> {
protected:
  /// Every output of every case against what is stored.
  void expectStored(Stage stage) {
    Model model(GetParam(), stage);
    for (std::string name : cases) {
      Tensors inputs = loadArrays(GetParam(), name + "/in");
      Tensors wanted = loadArrays(GetParam(), name + "/out"), got = model.run(inputs);
      const Tensor &mask = inputs["attention_mask"];
      EXPECT_EQ(wanted.size(), got.size()) << name;
      for (auto &[output, tensor] : wanted)
        EXPECT_LE(distance(tensor, got[output], &mask), kStoredTolerance) << name << " " << output;
    }
  }

  /// Every output of every case against the stage imported, relative to the largest element.
  void expectImported(Stage stage) {
    Model imported(GetParam(), Stage::imported), model(GetParam(), stage);
    for (std::string name : cases) {
      Tensors inputs = loadArrays(GetParam(), name + "/in");
      Tensors wanted = imported.run(inputs), got = model.run(inputs);
      EXPECT_EQ(wanted.size(), got.size()) << name;
      for (auto &[output, tensor] : wanted)
        EXPECT_LE(distance(tensor, got[output], &inputs["attention_mask"]),
                  1e-12 * magnitude(tensor))
            << name << " " << output;
    }
  }
};

TEST_P(Decoder, ImportedGivesTheStoredOutputs) { expectStored(Stage::imported); }
TEST_P(Decoder, FusedGivesTheStoredOutputs) { expectStored(Stage::fused); }
TEST_P(Decoder, AnnotatedIsImported) { expectImported(Stage::annotated); }
TEST_P(Decoder, QuantizedToF32IsImported) { expectImported(Stage::quantized); }
TEST_P(Decoder, FusedIsImported) { expectImported(Stage::fused); }
TEST_P(Decoder, KernelsAreImported) { expectImported(Stage::outlined); }

/// A decision alone changes nothing; quantizing does; fusing changes nothing again, but for codes of
/// activations that lie at a tie.
TEST_P(Decoder, QuantizedIsFused) {
  Recipe recipe{"int4", "int8", 0.1};
  Model imported(GetParam(), Stage::imported), annotated(GetParam(), Stage::annotated, recipe),
      quantized(GetParam(), Stage::quantized, recipe), fused(GetParam(), Stage::fused, recipe);
  Tensors inputs = loadArrays(GetParam(), "prefill/in");
  const Tensor &mask = inputs["attention_mask"];
  Tensor exact = imported.run(inputs)["logits"], decided = annotated.run(inputs)["logits"];
  Tensor coded = quantized.run(inputs)["logits"], whole = fused.run(inputs)["logits"];
  EXPECT_EQ(distance(exact, decided), 0);
  EXPECT_GT(distance(exact, coded), 1e-4 * magnitude(exact));
  EXPECT_LE(distance(coded, whole, &mask), 1e-9 * magnitude(coded));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Decoder,
                         testing::Values("llama-optimum", "qwen2-optimum", "gpt2-optimum"),
                         [](const auto &info) { return std::string(info.param, 4); });

TEST(Digits, EveryStageGivesTheSame) {
  Model imported("digits", Stage::imported), fused("digits", Stage::fused);
  for (int64_t batch : {0, 1, 3}) {
    std::vector<double> pixels;
    for (int64_t i = 0; i < batch * 64; ++i)
      pixels.push_back(double(i * 7 % 17) / 16);
    Tensors inputs = {{"pixels", Tensor::ofReals({batch, 64}, pixels)}};
    Tensor wanted = imported.run(inputs)["logits"], got = fused.run(inputs)["logits"];
    EXPECT_EQ(wanted.shape, (Shape{batch, 10}));
    EXPECT_LE(distance(wanted, got), 1e-12 * magnitude(wanted));
  }
}

} // namespace
} // namespace otf::reference::test
