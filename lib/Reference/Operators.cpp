// SPDX-License-Identifier: Apache-2.0
//
// Plain loops.

#include "lib/Reference/Operators.h"

#include "lib/Encoding/CacheRow.h"
#include "lib/Encoding/Rotation.h"
#include "lib/Reference/Record.h"

#include <cmath>

namespace otf::reference {

static llvm::Error wrong(const llvm::Twine &what) { return llvm::createStringError(what); }

/// The product of all dimensions but the last.
static int64_t rowsOf(const Tensor &x) {
  return elementCount(Shape(x.shape.begin(), x.shape.end() - 1));
}

static bool isVector(const Tensor *x, int64_t width) {
  return !x || (x->isReal() && x->count() == width);
}

Result linear(const Tensor &x, const Matrix &w, const Tensor *bias) {
  if (x.shape.empty())
    return wrong("reads an input of rank 0");
  int64_t width = x.shape.back(), background = w.columns - int64_t(w.outliers.size());
  int64_t record = recordBytes(background, int64_t(w.outliers.size()));
  if (width != (x.isReal() ? w.columns : record))
    return wrong("reads rows of " + llvm::Twine(width) + " where " +
                 llvm::Twine(x.isReal() ? w.columns : record) + " were expected");
  if (!isVector(bias, w.rows))
    return wrong("has a bias that does not fit");
  Shape shape = x.shape;
  shape.back() = w.rows;
  Tensor y = Tensor::zeros(shape, true);
  std::vector<int64_t> order = columnOrder(w.columns, w.outliers);
  std::vector<double> row(size_t(w.columns));
  for (int64_t m = 0, rows = rowsOf(x); m < rows; ++m) {
    const double *from = x.isReal() ? x.reals().data() + m * width : row.data();
    if (!x.isReal())
      readRecord(x.integers().data() + m * width, order, int64_t(w.outliers.size()), row.data());
    for (int64_t n = 0; n < w.rows; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < w.columns; ++k)
        sum += from[k] * w.weights[size_t(n * w.columns + k)];
      y.reals()[size_t(m * w.rows + n)] = sum + (bias ? bias->reals()[size_t(n)] : 0);
    }
  }
  return y;
}

Result windows(const Tensor &x, WindowAttr window, int64_t columns, const Shape &result) {
  size_t axes = window.getKernel().size();
  int64_t taps = window.getTaps(), channels = columns / taps;
  int64_t width = x.isReal() ? channels : recordBytes(channels, 0);
  if (x.shape.size() != axes + 2 || result.size() != axes + 2 || x.shape[0] != result[0] || x.shape.back() != width)
    return wrong("has windows that do not fit what it reads");
  std::vector<int64_t> order = columnOrder(channels, {});
  Shape shape = result;
  shape.back() = columns;
  Tensor y = Tensor::zeros(shape, true);
  int64_t rows = rowsOf(y);
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t tap = 0; tap < taps; ++tap) {
      // Positions from the last axis to the first.
      int64_t pixel = 0, step = 1, row = m, k = tap;
      bool inside = true;
      for (size_t axis = axes; axis-- != 0;) {
        int64_t size = x.shape[1 + axis];
        int64_t at = row % result[1 + axis] * window.getStride()[axis] +
                     k % window.getKernel()[axis] * window.getDilation()[axis] - window.getBefore()[axis];
        inside = inside && at >= 0 && at < size;
        pixel += at * step;
        step *= size;
        row /= result[1 + axis];
        k /= window.getKernel()[axis];
      }
      pixel += row * step;
      double *to = y.reals().data() + m * columns + tap * channels;
      if (inside && x.isReal())
        std::copy_n(x.reals().data() + pixel * width, channels, to);
      else if (inside)
        readRecord(x.integers().data() + pixel * width, order, 0, to);
    }
  return y;
}

Result embedding(const Tensor &ids, const Matrix &table) {
  if (ids.isReal())
    return wrong("reads ids that are floats");
  Shape shape = ids.shape;
  shape.push_back(table.columns);
  Tensor y = Tensor::zeros(shape, true);
  for (size_t i = 0; i < ids.integers().size(); ++i) {
    int64_t id = ids.integers()[i];
    if (id < -table.rows || id >= table.rows)
      return wrong("reads row " + llvm::Twine(id) + " of " + llvm::Twine(table.rows));
    auto from = table.weights.begin() + (id < 0 ? id + table.rows : id) * table.columns;
    std::copy_n(from, table.columns, y.reals().begin() + int64_t(i) * table.columns);
  }
  return y;
}

Result norm(NormKind kind, const Tensor &x, const Tensor *scale, const Tensor *bias,
            double epsilon) {
  if (x.shape.empty() || !x.isReal())
    return wrong("normalises something else than rows of floats");
  int64_t width = x.shape.back();
  if (!isVector(scale, width) || !isVector(bias, width))
    return wrong("has a scale or bias that does not fit rows of " + llvm::Twine(width));
  Tensor y = x;
  for (int64_t m = 0, rows = rowsOf(x); m < rows; ++m) {
    double *row = y.reals().data() + m * width;
    double mean = 0, square = 0, factor = 1;
    if (kind == NormKind::layer)
      for (int64_t k = 0; k < width; ++k)
        mean += row[k] / double(width);
    for (int64_t k = 0; k < width; ++k)
      square += (row[k] - mean) * (row[k] - mean) / double(width);
    if (kind != NormKind::none)
      factor = 1 / std::sqrt(square + epsilon);
    for (int64_t k = 0; k < width; ++k) {
      row[k] = (row[k] - mean) * factor;
      if (scale)
        row[k] *= scale->reals()[size_t(k)];
      if (bias)
        row[k] += bias->reals()[size_t(k)];
    }
  }
  return y;
}

Result rotate(const Tensor &x, RotationAttr by) {
  Rotation rotation{by.getBlock(), by.getFactor(), by.getSeed()};
  std::vector<double> factor = rotationFactor(rotation);
  Tensor y = x;
  int64_t columns = y.shape.empty() ? 0 : y.shape.back();
  if (columns % rotation.segment() != 0)
    return wrong("rotates segments that do not divide a row");
  for (int64_t first = 0; columns != 0 && first < y.count(); first += columns)
    rotateExact(rotation, factor.data(), columns, y.reals().data() + first);
  return y;
}

Result onGrid(const Tensor &x, const Tensor &grid) {
  Tensor y = x;
  double scale = grid.reals()[0], zero = grid.reals()[1];
  for (double &value : y.reals()) {
    double code = std::fmin(std::fmax(std::rint(float(value / scale)) + zero, -128.0), 127.0);
    value = (code - zero) * scale;
  }
  return y;
}

Result prologue(const Tensor &x, const Matrix *columns, const Tensor *grid) {
  if (x.shape.empty() || !x.isReal())
    return wrong("quantizes something else than rows of floats");
  int64_t width = x.shape.back();
  if (columns && columns->columns != width)
    return wrong("orders rows of " + llvm::Twine(width) + " as a weight of " +
                 llvm::Twine(columns->columns) + " columns");
  std::vector<int64_t> outliers = columns ? columns->outliers : std::vector<int64_t>();
  std::vector<int64_t> order = columnOrder(width, outliers);
  Shape shape = x.shape;
  shape.back() = recordBytes(width - int64_t(outliers.size()), int64_t(outliers.size()));
  Tensor y = Tensor::zeros(shape, false);
  for (int64_t m = 0, rows = rowsOf(x); m < rows; ++m)
    writeRecord(x.reals().data() + m * width, order, int64_t(outliers.size()),
                y.integers().data() + m * shape.back(), grid ? grid->reals().data() : nullptr);
  return y;
}

namespace {

/// Offsets into [B, H, S, D], or [B, S, H, D] where positions come first.
struct Heads {
  Heads(const Tensor &x, bool positionsFirst)
      : batch(x.shape[0]), heads(x.shape[positionsFirst ? 2 : 1]),
        positions(x.shape[positionsFirst ? 1 : 2]), width(x.shape[3]),
        positionsFirst(positionsFirst) {}

  size_t at(int64_t b, int64_t h, int64_t s) const {
    int64_t row = positionsFirst ? (b * positions + s) * heads + h : (b * heads + h) * positions + s;
    return size_t(row * width);
  }

  int64_t batch, heads, positions, width;
  bool positionsFirst;
};

bool isHeads(const Tensor &x) { return x.isReal() && x.shape.size() == 4; }

} // namespace

Result rope(const Tensor &x, const Tensor &cos, const Tensor &sin, bool positionsFirst) {
  if (!isHeads(x) || cos.shape.size() != 3 || cos.shape != sin.shape || !cos.isReal() ||
      !sin.isReal())
    return wrong("expects x of rank 4, and cos and sin alike of rank 3");
  Heads at(x, positionsFirst);
  int64_t rotated = cos.shape[2], half = rotated / 2;
  if ((cos.shape[0] != at.batch && cos.shape[0] != 1) || cos.shape[1] != at.positions ||
      rotated > at.width || rotated % 2 != 0)
    return wrong("has cos and sin that do not fit x");
  Tensor y = x;
  for (int64_t b = 0; b < at.batch; ++b)
    for (int64_t h = 0; h < at.heads; ++h)
      for (int64_t s = 0; s < at.positions; ++s) {
        const double *from = x.reals().data() + at.at(b, h, s);
        double *to = y.reals().data() + at.at(b, h, s);
        size_t table = size_t(((cos.shape[0] == 1 ? 0 : b) * at.positions + s) * rotated);
        const double *c = cos.reals().data() + table, *t = sin.reals().data() + table;
        for (int64_t i = 0; i < half; ++i)
          to[i] = from[i] * c[i] - from[i + half] * t[i];
        for (int64_t i = half; i < rotated; ++i)
          to[i] = from[i] * c[i] + from[i - half] * t[i];
      }
  return y;
}

Tensor held(Tensor content, Held type) {
  if (type == Held::f16)
    for (double &x : content.reals())
      x = halfToFloat(cacheHalf(float(x)));
  if (type != Held::i8)
    return content;
  const size_t width = size_t(content.shape.back());
  std::vector<float> row(width);
  std::vector<std::byte> bytes(width + kCacheScaleBytes);
  for (size_t at = 0; at + width <= content.reals().size() && width != 0; at += width) {
    std::copy_n(content.reals().begin() + int64_t(at), width, row.begin());
    encodeCacheRow(row.data(), int64_t(width), bytes.data());
    decodeCacheRow(bytes.data(), int64_t(width), row.data());
    std::copy_n(row.begin(), width, content.reals().begin() + int64_t(at));
  }
  return content;
}

Result append(const Tensor &past, const Tensor &update, const Tensor *at, bool positionsFirst) {
  if (!isHeads(past) || !isHeads(update))
    return wrong("expects tensors of rank 4");
  Heads from(update, positionsFirst);
  int64_t before = past.shape[2];
  if (past.shape[1] != from.heads || past.shape[3] != from.width ||
      (before != 0 && past.shape[0] != from.batch))
    return wrong("appends something that does not fit the cache");
  if (at && (at->isReal() || at->shape != Shape{from.batch}))
    return wrong("needs one place for each batch entry");
  Tensor y = Tensor::zeros({from.batch, from.heads, before + from.positions, from.width}, true);
  Heads old(past, false), to(y, false);
  auto copy = [&](const Tensor &source, size_t begin, size_t end) {
    std::copy_n(source.reals().begin() + int64_t(begin), from.width,
                y.reals().begin() + int64_t(end));
  };
  for (int64_t b = 0; b < from.batch; ++b)
    for (int64_t h = 0; h < from.heads; ++h) {
      for (int64_t s = 0; s < before; ++s)
        copy(past, old.at(b, h, s), to.at(b, h, s));
      int64_t first = at ? at->integers()[size_t(b)] : before;
      for (int64_t s = 0; s < from.positions; ++s)
        if (first + s >= 0 && first + s < to.positions)
          copy(update, from.at(b, h, s), to.at(b, h, first + s));
    }
  return y;
}

/// Whether the mask is [B or 1, 1 or H, S or 1, T].
static bool fits(const Tensor &mask, const Shape &full) {
  if (mask.shape.size() != 4 || mask.shape[3] != full[3])
    return false;
  for (int i = 0; i < 3; ++i)
    if (mask.shape[size_t(i)] != full[size_t(i)] && mask.shape[size_t(i)] != 1)
      return false;
  return true;
}

Result attention(const Tensor &query, const Tensor &key, const Tensor &value, const Tensor *mask,
                 const Tensor *sink, const AttentionOptions &options) {
  if (!isHeads(query) || !isHeads(key) || !isHeads(value))
    return wrong("expects operands of rank 4");
  Heads q(query, options.positionsFirst), k(key, false), v(value, false);
  if (k.heads < 1 || q.heads % k.heads != 0 || v.heads != k.heads || k.batch != q.batch ||
      v.batch != q.batch || k.positions != v.positions || k.width != q.width)
    return wrong("has queries, keys and values that do not fit each other");
  if (mask && !fits(*mask, {q.batch, q.heads, q.positions, k.positions}))
    return wrong("has a mask that does not fit");
  if (sink && (!sink->isReal() || sink->shape != Shape{q.heads}))
    return wrong("has a sink that does not fit");
  Shape shape = query.shape;
  shape[3] = v.width;
  Tensor y = Tensor::zeros(shape, true);
  Heads to(y, options.positionsFirst);
  std::vector<double> weights(size_t(k.positions));

  auto maskAt = [&](int64_t b, int64_t h, int64_t s) {
    const Shape &m = mask->shape;
    int64_t row = ((m[0] == 1 ? 0 : b) * m[1] + (m[1] == 1 ? 0 : h)) * m[2] + (m[2] == 1 ? 0 : s);
    return size_t(row * m[3]);
  };
  auto attend = [&](int64_t b, int64_t h, int64_t s) {
    int64_t shared = h / (q.heads / k.heads);
    double largest = -INFINITY, sum = 0;
    for (int64_t t = 0; t < k.positions; ++t) {
      double score = 0;
      for (int64_t d = 0; d < q.width; ++d)
        score += query.reals()[q.at(b, h, s) + size_t(d)] *
                 key.reals()[k.at(b, shared, t) + size_t(d)];
      score *= options.scale;
      if (options.softcap > 0)
        score = options.softcap * std::tanh(score / options.softcap);
      if (mask) {
        size_t at = maskAt(b, h, s) + size_t(t);
        if (mask->isReal())
          score += mask->reals()[at];
        else if (!mask->integers()[at])
          score = -INFINITY;
      }
      weights[size_t(t)] = score;
      largest = std::fmax(largest, score);
    }
    if (largest == -INFINITY)
      return; // every key is masked
    if (sink) {
      largest = std::fmax(largest, sink->reals()[size_t(h)]);
      sum = std::exp(sink->reals()[size_t(h)] - largest);
    }
    for (double &weight : weights)
      sum += weight = std::exp(weight - largest);
    for (int64_t t = 0; t < k.positions; ++t)
      for (int64_t d = 0; d < v.width; ++d)
        y.reals()[to.at(b, h, s) + size_t(d)] +=
            weights[size_t(t)] / sum * value.reals()[v.at(b, shared, t) + size_t(d)];
  };
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t s = 0; s < q.positions; ++s)
        attend(b, h, s);
  return y;
}

static double activate(Activation function, double x) {
  switch (function) {
  case Activation::silu:
    return x / (1 + std::exp(-x));
  case Activation::gelu:
    return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
  case Activation::gelu_tanh:
    return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  case Activation::relu:
    return x > 0 ? x : 0;
  }
  return NAN;
}

Result gatedActivation(Activation function, const Tensor &gate, const Tensor &up) {
  if (!gate.isReal() || !up.isReal() || gate.shape != up.shape)
    return wrong("has a gate that is not like what it gates");
  Tensor y = up;
  for (size_t i = 0; i < y.reals().size(); ++i)
    y.reals()[i] *= activate(function, gate.reals()[i]);
  return y;
}

} // namespace otf::reference
