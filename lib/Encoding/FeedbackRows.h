// SPDX-License-Identifier: Apache-2.0
//
// Some rows of a weight while they become planes with error feedback: what the first pass
// (FeedbackPlanes.cpp) and the sweeps after it (FeedbackSweeps.cpp) share. All arrays are
// [rows][columns] in the order of coding.
#ifndef OTF_ENCODING_FEEDBACKROWS_H
#define OTF_ENCODING_FEEDBACKROWS_H

#include "Codec.h"
#include "Feedback.h"
#include "Survivors.h"

#include <algorithm>
#include <vector>

namespace otf {

struct FeedbackRows {
  static constexpr int64_t kBlock = Feedback::kBlock;
  static constexpr int64_t kMost = 32; ///< rows: targets and their changes at K = 1536 are 600 KB

  FeedbackRows(EncodingKind kind, const WeightLayout &layout, const Feedback &feedback)
      : code(planesCode(kind)), layout(layout), feedback(feedback), columns(layout.columns),
        encoder(kind), blocks((layout.background + kBlock - 1) / kBlock), weight(at(kMost)),
        unit(at(kMost)), error(at(kMost)), scales(size_t(kMost * layout.groups)),
        words(size_t(kMost * blocks * code.planes)) {
    // Outliers make up for what is behind the last block, even where they begin within it.
    if (int64_t rest = layout.background % kBlock; rest && layout.outliers) {
      lastAhead = feedback.form(layout.background - rest, rest, layout.background);
      lastAmong = feedback.form(layout.background - rest, rest, columns);
    }
  }

  size_t at(int64_t row) const { return size_t(row * columns); }
  size_t wordsAt(int64_t row, int64_t block) const {
    return size_t((row * blocks + block) * code.planes);
  }
  float &scale(int64_t row, int64_t group) { return scales[size_t(row * layout.groups + group)]; }
  int64_t width(int64_t block) const {
    return std::min(kBlock, layout.background - block * kBlock);
  }
  bool isShort(int64_t block) const { return width(block) < kBlock && layout.outliers; }
  const BlockForm &ahead(int64_t block) const {
    return isShort(block) ? lastAhead : feedback.ahead(block);
  }
  const BlockForm &among(int64_t block) const {
    return isShort(block) ? lastAmong : feedback.among(block);
  }

  /// Units and errors of a block from its words, with the scale of its group.
  void decode(int64_t row, int64_t block) {
    float s = scale(row, block * kBlock / layout.group);
    for (int64_t i = 0; i < width(block); ++i) {
      auto place = at(row) + size_t(block * kBlock + i);
      unit[place] = float(planesSum(code, &words[wordsAt(row, block)], 1, int(i)) - code.offset);
      error[place] = weight[place] - s * unit[place];
    }
  }

  const PlanesCode &code;
  const WeightLayout &layout;
  const Feedback &feedback;
  int64_t columns, rows = 0;
  SurvivorEncoder encoder;
  int64_t blocks;            // of the background
  std::vector<float> weight; // w
  std::vector<float> unit;   // q, of the background
  std::vector<float> error;  // e = w − s q
  std::vector<float> scales; // [rows][groups], each an f16
  std::vector<uint32_t> words;

private:
  BlockForm lastAhead, lastAmong;
};

/// Codes every block again for the errors that all others have, and fits scales to the codes;
/// `sweeps` times.
void sweep(FeedbackRows &rows, int sweeps);

} // namespace otf

#endif // OTF_ENCODING_FEEDBACKROWS_H
