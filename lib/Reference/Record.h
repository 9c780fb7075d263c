// SPDX-License-Identifier: Apache-2.0
//
// Records of activations (docs/Architecture.md), bytes and all. Scales are stored in f32, and so
// are outliers; what is computed from them is double.
#ifndef OTF_LIB_REFERENCE_RECORD_H
#define OTF_LIB_REFERENCE_RECORD_H

#include <cstdint>
#include <vector>

namespace otf::reference {

/// Where column i of a record lies among a row's columns: the coded ones, then the outliers.
std::vector<int64_t> columnOrder(int64_t columns, const std::vector<int64_t> &outliers);

int64_t recordBytes(int64_t background, int64_t outliers);

/// Writes the record of a row of order.size() values, of which the last `outliers` in `order` are
/// outliers, one byte an element, sign-extended. `grid`: the scale and zero point of every code, or null.
void writeRecord(const double *x, const std::vector<int64_t> &order, int64_t outliers,
                 int64_t *record, const double *grid = nullptr);

/// The row that a record stands for, in the row's own order: scale · q, or an outlier.
void readRecord(const int64_t *record, const std::vector<int64_t> &order, int64_t outliers,
                double *x);

} // namespace otf::reference

#endif // OTF_LIB_REFERENCE_RECORD_H
