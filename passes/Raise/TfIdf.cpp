// SPDX-License-Identifier: Apache-2.0
//
// TfIdfVectorizer over integers: for each n-gram of the vocabulary, how often it occurs in a row.
// The vocabulary is a constant table in the program.

#include "passes/Raise/Raiser.h"
#include "passes/Raise/Scalars.h"

#include "dialects/ONNX/ElementType.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

struct Gram {
  SmallVector<int64_t> items;
  int64_t column;
};

/// The n-grams of lengths `shortest` to `longest`. The pool holds those of length 1, then 2, …;
/// `ngram_counts` says where each length begins.
FailureOr<std::vector<Gram>> vocabulary(Raiser &raiser, onnx::NodeOp node, int64_t shortest,
                                        int64_t longest) {
  auto list = [&](StringRef name) -> ArrayRef<int64_t> {
    auto array = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute(name));
    return array ? array.asArrayRef() : ArrayRef<int64_t>();
  };
  ArrayRef<int64_t> pool = list("pool_int64s"), starts = list("ngram_counts"),
                    columns = list("ngram_indexes");
  if (node.attribute("pool_strings"))
    return raiser.fail(node, "strings are not supported");
  std::vector<Gram> grams;
  size_t number = 0;
  for (size_t n = 1; n <= starts.size(); ++n) {
    int64_t begin = starts[n - 1], end = n < starts.size() ? starts[n] : int64_t(pool.size());
    if (begin < 0 || end < begin || end > int64_t(pool.size()) || (end - begin) % int64_t(n))
      return raiser.fail(node, "ngram_counts does not divide pool_int64s into n-grams");
    for (int64_t at = begin; at != end; at += n, ++number) {
      if (number >= columns.size() || columns[number] < 0 || columns[number] > kMostColumns)
        return raiser.fail(node, "ngram_indexes has no column for each n-gram");
      if (int64_t(n) >= shortest && int64_t(n) <= longest)
        grams.push_back({SmallVector<int64_t>(pool.slice(at, n)), columns[number]});
    }
  }
  return grams;
}

LogicalResult raiseTfIdf(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0);
  int64_t shortest = node.intOr("min_gram_length", 1), longest = node.intOr("max_gram_length", 1);
  int64_t skips = node.intOr("max_skip_count", 0);
  StringRef mode = node.stringOr("mode", "TF");
  if (!isa_and_nonnull<IntegerType>(raiser.internalType(x.elementType)) || x.rank() < 1 ||
      x.rank() > 2)
    return raiser.fail(node, "expects integers [C] or [N, C] (strings are not supported)");
  if (shortest < 1 || longest < shortest || longest > 1024 || skips < 0 || skips > (1 << 20))
    return raiser.fail(node, "min_gram_length, max_gram_length or max_skip_count is out of range");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return raiser.fail(node, "mode is " + mode + ", and must be TF, IDF or TFIDF");
  FailureOr<std::vector<Gram>> grams = vocabulary(raiser, node, shortest, longest);
  if (failed(grams))
    return failure();
  auto columns = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute("ngram_indexes"));
  if (!columns || columns.empty())
    return raiser.fail(node, "ngram_indexes is missing");
  int64_t width = *llvm::max_element(columns.asArrayRef()) + 1, size = grams->size();
  auto given = dyn_cast_or_null<DenseF32ArrayAttr>(node.attribute("weights"));
  if (given && given.size() < width)
    return raiser.fail(node, "it has " + Twine(given.size()) + " weights for " + Twine(width) +
                                 " columns");

  // Tables: items, length and column of each n-gram.
  Type i64 = raiser.builder.getI64Type();
  auto table = [&](ArrayRef<int64_t> dims, ArrayRef<int64_t> values) -> Value {
    auto type = RankedTensorType::get(dims, i64);
    return arith::ConstantOp::create(raiser.builder, node.getLoc(),
                                     DenseElementsAttr::get(type, values));
  };
  SmallVector<int64_t> items, lengths, places;
  for (const Gram &gram : *grams) {
    SmallVector<int64_t> padded(gram.items);
    padded.resize(longest);
    llvm::append_range(items, padded);
    lengths.push_back(gram.items.size());
    places.push_back(gram.column);
  }
  bool some = size != 0;
  Value itemTable = some ? table({size, longest}, items) : Value(),
        lengthTable = some ? table({size}, lengths) : Value(),
        columnTable = some ? table({size}, places) : Value();
  SmallVector<Size> sizes(x.sizes.begin(), x.sizes.end() - 1);
  sizes.push_back(width);
  Type f32 = raiser.builder.getF32Type();
  Known weights;
  if (given) {
    weights.elementType = Element::Float;
    weights.sizes = {Size(int64_t(given.size()))};
    weights.reals = SmallVector<double>(given.asArrayRef().begin(), given.asArrayRef().end());
  }
  Size length = x.sizes.back();
  raiser.set(
      node, raiser.generated(Element::Float, sizes, [&](OpBuilder &b, ValueRange at) -> Value {
        Scalars s(b, node.getLoc());
        if (!some)
          return s.number(f32, 0);
        Value column = at.back(), one = s.index(1), zero = s.index(0);
        auto read = [](Scalars &s, Value from, ValueRange indices) -> Value {
          return tensor::ExtractOp::create(s.b, s.l, from, indices);
        };
        // An n-gram matches where item i is at start + i · distance. One item has no distance, and
        // counts once.
        Value count = s.fold({Size(size)}, zero, [&](Scalars &s, ValueRange g, Value total) {
          Value here = s.equal(s.asIndex(read(s, columnTable, g)), column);
          return s.when(
              here,
              [&](Scalars &s) {
                Value n = s.asIndex(read(s, lengthTable, g)), last = s.sub(n, one);
                Value distances = s.select(s.equal(n, one), one, s.index(skips + 1));
                return s.loop(ValueRange(distances), ValueRange(total),
                              [&](Scalars &s, ValueRange d, ValueRange outer) {
                                Value distance = s.add(d[0], 1);
                                Value starts =
                                    s.max(s.sub(s.index(length), s.mul(last, distance)), zero);
                                auto found = s.loop(
                                    ValueRange(starts), outer,
                                    [&](Scalars &s, ValueRange start, ValueRange inner) {
                                      SmallVector<Value> initial{one};
                                      Value equal = s.loop(
                                          ValueRange(n), initial,
                                          [&](Scalars &s, ValueRange i, ValueRange so) {
                                            SmallVector<Value> where;
                                            if (x.rank() == 2)
                                              where.push_back(at[0]);
                                            where.push_back(s.add(start[0], s.mul(i[0], distance)));
                                            Value item = s.asIndex(raiser.element(s.b, x, where));
                                            Value same = s.equal(
                                                item, s.asIndex(read(s, itemTable, {g[0], i[0]})));
                                            return SmallVector<Value>{s.select(same, so[0], zero)};
                                          })[0];
                                      return SmallVector<Value>{s.add(inner[0], equal)};
                                    });
                                return found;
                              })[0];
              },
              [&](Scalars &) { return total; });
        });
        Value frequency = s.real(f32, count);
        if (mode == "IDF")
          frequency = s.select(s.equal(count, zero), s.number(f32, 0), s.number(f32, 1));
        if (!given || mode == "TF")
          return frequency;
        return s.mul(frequency, raiser.element(b, weights, {column}));
      }));
  return success();
}

} // namespace

void raise::registerTfIdf(Registry &registry) {
  registry.add("TfIdfVectorizer", raiseTfIdf, 1, 1, 9);
}
