// SPDX-License-Identifier: Apache-2.0
//
// Coordinate descent, a block of columns at a time. Brackets b = e U say everything: the loss is Σ
// D_j b_j², its gradient at a block Σ_j U_Bj D_j b_j, and what a block changes goes into the
// brackets of its own and later columns only. New codes are taken where they lower the row's loss.

#include "Encoding/FeedbackRows.h"

namespace otf {

namespace {

constexpr int64_t kBlock = Feedback::kBlock;

class Sweeps {
public:
  explicit Sweeps(FeedbackRows &rows)
      : r(rows), feedback(rows.feedback), columns(rows.columns), brackets(rows.at(rows.rows)),
        weighed(brackets.size()), change(brackets.size()), slope(size_t(rows.rows * kBlock)) {
    for (int64_t row = 0; row < r.rows;
         ++row) // of outliers, which are still to come, there is no error
      std::fill_n(&r.error[r.at(row)] + r.layout.background, columns - r.layout.background, 0.0f);
    bracketsOf(r.error, 0, columns, brackets);
    settleOutliers();
  }

  void run() {
    for (int64_t block = 0; block < r.blocks; ++block)
      codeAgain(block);
    for (int64_t group = 0; group < r.layout.groups; ++group)
      fitScale(group);
    settleOutliers();
  }

private:
  /// to = (values of [begin, end)) U, from `begin` on.
  void bracketsOf(const std::vector<float> &values, int64_t begin, int64_t end,
                  std::vector<float> &to) {
    for (int64_t row = 0; row < r.rows; ++row) {
      std::copy(&values[r.at(row)] + begin, &values[r.at(row)] + end, &to[r.at(row)] + begin);
      std::fill(&to[r.at(row)] + end, &to[r.at(row)] + columns, 0.0f);
    }
    for (int64_t at = begin; at < end; at += kBlock)
      add(values.data(), at, std::min(kBlock, end - at), to);
  }

  /// What values of a block add to later columns' brackets, those within the block included.
  void add(const float *values, int64_t begin, int64_t count, std::vector<float> &to) {
    for (int64_t row = 0; row < r.rows; ++row) {
      const float *v = values + r.at(row) + begin;
      float *b = &to[r.at(row)] + begin;
      for (int64_t i = 0; i < count; ++i)
        for (int64_t j = i + 1; j < count; ++j)
          b[j] += v[i] * feedback.upper(begin + i)[begin + j];
    }
    feedback.spread(begin, count, values + begin, columns, r.rows, to.data(), columns,
                    begin + count, columns);
  }

  void codeAgain(int64_t block) {
    int64_t begin = block * kBlock, count = r.width(block);
    const BlockForm &form = r.among(block);
    for (int64_t row = 0; row < r.rows; ++row)
      for (int64_t j = begin; j < columns; ++j)
        weighed[r.at(row) + size_t(j)] =
            float(feedback.variance(j)) * brackets[r.at(row) + size_t(j)];
    feedback.gather(begin, count, weighed.data(), columns, r.rows, slope.data(), kBlock);
    bool changed = false;
    for (int64_t row = 0; row < r.rows; ++row) {
      float *left = &slope[size_t(row * kBlock)]; // of the target, by the codes at hand
      std::fill(left + count, left + kBlock, 0.0f);
      form.solve(left);
      float *to = &change[r.at(row)] + begin;
      std::fill_n(to, count, 0.0f);
      changed |= choose(row, block, form, left, to);
    }
    if (!changed)
      return;
    for (int64_t row = 0; row < r.rows; ++row)
      for (int64_t j = begin; j < begin + count; ++j)
        brackets[r.at(row) + size_t(j)] += change[r.at(row) + size_t(j)];
    add(change.data(), begin, count, brackets);
  }

  /// Looks for better codes of one row; `change`: of its errors.
  bool choose(int64_t row, int64_t block, const BlockForm &form, const float *left, float *change) {
    int64_t begin = block * kBlock, count = r.width(block);
    float scale = r.scale(row, begin / r.layout.group);
    if (!(scale > 0))
      return false;
    const float *unit = &r.unit[r.at(row)] + begin;
    float wanted[kBlock], before[kBlock], after[kBlock] = {};
    for (int64_t i = 0; i < kBlock; ++i) {
      before[i] = left[i] / scale;
      wanted[i] = i < count ? unit[i] + before[i] + float(r.code.offset) : 0.0f;
    }
    uint32_t *words = &r.words[r.wordsAt(row, block)], found[4];
    std::copy_n(words, r.code.planes, found);
    r.encoder.improve(form, wanted, found);
    for (int64_t i = 0; i < count; ++i)
      after[i] = wanted[i] - float(planesSum(r.code, found, 1, int(i)));
    if (!(form.cost(after) < form.cost(before)))
      return false;
    std::copy_n(found, r.code.planes, words);
    float old[kBlock];
    std::copy_n(&r.error[r.at(row)] + begin, count, old);
    r.decode(row, block);
    for (int64_t i = 0; i < count; ++i)
      change[i] = r.error[r.at(row) + size_t(begin + i)] - old[i];
    return true;
  }

  /// The scale that minimises the loss with all else as it is.
  void fitScale(int64_t group) {
    int64_t begin = group * r.layout.group,
            end = std::min(begin + r.layout.group, r.layout.background);
    bracketsOf(r.unit, begin, end, change);
    for (int64_t row = 0; row < r.rows; ++row) {
      double along = 0, square = 0;
      float *b = &brackets[r.at(row)], *q = &change[r.at(row)];
      for (int64_t j = begin; j < columns; ++j) {
        along += feedback.variance(j) * b[j] * q[j];
        square += feedback.variance(j) * q[j] * q[j];
      }
      float &scale = r.scale(row, group);
      if (!(scale > 0 && square > 0 && scale + along / square > 0))
        continue;
      uint16_t half = doubleToHalf(scale + along / square);
      if (!halfIsFinite(half))
        continue;
      float by = halfToFloat(half) - scale;
      scale = halfToFloat(half);
      for (int64_t block = begin / kBlock; block * kBlock < end; ++block)
        r.decode(row, block);
      for (int64_t j = begin; j < columns; ++j)
        b[j] -= by * q[j];
    }
  }

  /// Outliers come last and are exact but for f16: their brackets become nearly 0.
  void settleOutliers() {
    for (int64_t i = r.layout.background; i < columns; ++i) {
      for (int64_t row = 0; row < r.rows; ++row) {
        auto place = r.at(row) + size_t(i);
        float target = r.weight[place] + brackets[place] - r.error[place];
        float settled = r.weight[place] - halfToFloat(floatToHalf(target));
        change[place] = settled - r.error[place];
        r.error[place] = settled;
        brackets[place] += change[place];
      }
      add(change.data(), i, 1, brackets);
    }
  }

  FeedbackRows &r;
  const Feedback &feedback;
  int64_t columns;
  std::vector<float> brackets; // e U
  std::vector<float> weighed;  // D (e U)
  std::vector<float> change;   // of errors, or brackets of what a scale multiplies
  std::vector<float> slope;    // e H at a block, kBlock a row
};

} // namespace

void sweep(FeedbackRows &rows, int sweeps) {
  if (sweeps <= 0 || rows.layout.background == 0)
    return;
  Sweeps all(rows);
  for (int i = 0; i < sweeps; ++i)
    all.run();
}

} // namespace otf
