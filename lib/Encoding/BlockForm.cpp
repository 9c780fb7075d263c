// SPDX-License-Identifier: Apache-2.0
//
// The factorisation U D Uᵀ of 32 columns in float64, by elimination from the last.
#include "Encoding/BlockForm.h"

#include <cstring>
#include <initializer_list>

namespace otf {

BlockForm::BlockForm(const double *form, int count) {
  std::memset(orders, 0, sizeof orders);
  double trace = 0;
  for (int i = 0; i < count; ++i)
    trace += form[i * count + i];
  if (!(trace > 0))
    return;
  mean = float(trace / count);
  for (int cut : {0, 16}) {
    Order &order = orders[cut / 16];
    double rest[kColumns][kColumns];
    for (int n = 0; n < kColumns; ++n)
      for (int m = 0; m < kColumns; ++m) {
        int i = columnAt(cut, n), j = columnAt(cut, m);
        rest[n][m] = i < count && j < count ? form[i * count + j] : 0;
      }
    for (int m = kColumns - 1; m >= 0; --m) {
      double pivot = rest[m][m], factor[kColumns];
      if (!(pivot > 0))
        continue;
      for (int n = 0; n < m; ++n)
        factor[n] = rest[n][m] / pivot;
      for (int n = 0; n < m; ++n)
        for (int j = 0; j <= n; ++j)
          rest[j][n] = rest[n][j] -= factor[n] * pivot * factor[j];
      for (int n = 0; n < m; ++n)
        order.factor[n][m] = float(factor[n]);
      order.variance[m] = float(pivot / (trace / count));
    }
  }
}

float BlockForm::cost(const float *errors) const {
  const Order &o = orders[0];
  float asked[kColumns] = {}, total = 0;
  for (int n = 0; n < kColumns; ++n) {
    float error = errors[columnAt(0, n)], bracket = error + asked[n];
    total += o.variance[n] * bracket * bracket;
    for (int m = n + 1; m < kColumns; ++m)
      asked[m] += error * o.factor[n][m];
  }
  return total;
}

void BlockForm::solve(float *y) const {
  const Order &o = orders[0];
  float z[kColumns];
  for (int n = kColumns - 1; n >= 0; --n) { // z Uᵀ = y
    z[n] = y[columnAt(0, n)];
    for (int m = n + 1; m < kColumns; ++m)
      z[n] -= z[m] * o.factor[n][m];
  }
  for (int n = 0; n < kColumns; ++n)
    z[n] = o.variance[n] > 0 ? z[n] / mean / o.variance[n] : 0;
  for (int n = 0; n < kColumns; ++n) { // x U = z / D
    for (int m = n + 1; m < kColumns; ++m)
      z[m] -= z[n] * o.factor[n][m];
    y[columnAt(0, n)] = z[n];
  }
}

} // namespace otf
