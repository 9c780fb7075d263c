// SPDX-License-Identifier: Apache-2.0
//
// The loss of a block of 32 columns whose errors are weighed together, factored as a search needs it (Survivors.h).
#ifndef OTF_ENCODING_BLOCKFORM_H
#define OTF_ENCODING_BLOCKFORM_H

namespace otf {

/// e G eᵀ of the errors of a block, factored for the two orders in which a search takes columns.
class BlockForm {
public:
  static constexpr int kColumns = 32;

  /// One order: place n is column (cut − 1 − n) mod 32.
  struct Order {
    alignas(32) float factor[kColumns][kColumns]; ///< U: what an error at place n asks of place m,
                                                  ///< for m > n; else 0
    float variance[kColumns];                     ///< D
  };

  BlockForm() = default;
  /// `form`: f64[count][count], symmetric, positive definite. Columns from count on cost nothing.
  BlockForm(const double *form, int count);

  /// The order that begins below column `cut`, 0 or 16.
  const Order &order(int cut) const { return orders[cut / 16]; }
  static int columnAt(int cut, int place) { return (cut - 1 - place) & (kColumns - 1); }

  /// e G eᵀ, as a multiple of G's mean diagonal.
  float cost(const float *errors) const;
  /// y becomes y G⁻¹, in place: where the form with the gradient y has its minimum. 0 past the
  /// count.
  void solve(float *y) const;

private:
  Order orders[2]; // of G over its mean diagonal
  float mean = 0;
};

} // namespace otf

#endif // OTF_ENCODING_BLOCKFORM_H
