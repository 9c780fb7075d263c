// SPDX-License-Identifier: Apache-2.0
//
// tensor.generate: rows are work items; a row's indices are found once, by division, and its elements are the inner loop. Short
// rows are found together.
//
// Bodies that read many elements of one tensor (depthwise convolutions and pools with channels last) are computed for four
// neighbouring rows at a time, operation by operation. LLVM then finds that neighbours share most of what they read, and that all
// of them share the taps: three times as fast as one row after another, and each element's operations and their order are the same.

#include "lib/Codegen/CPU/Operators.h"
#include "lib/Codegen/CPU/ScalarProgram.h"

using namespace mlir;

namespace otf::cpu {

namespace {

constexpr int64_t kNeighbours = 4;
/// A row of fewer elements is less work than the division that finds where it is.
constexpr int64_t kShortRow = 16;
/// Reads of one tensor that make a window, and operations of a body that four times are not too many.
constexpr unsigned kFewestReads = 4, kMostOperations = 1024;
/// Elements of a row whose sums are made together: a line of the cache, and two vectors; and operations of a body for that.
constexpr int64_t kLanes = 16;
constexpr unsigned kMostSummed = 96;

/// Whether neighbouring rows are likely to read the same.
bool readsWindows(tensor::GenerateOp op) {
  if (cast<RankedTensorType>(op.getType()).getRank() < 3)
    return false;
  llvm::SmallDenseMap<Value, unsigned> reads;
  unsigned operations = 0, most = 0;
  bool straight = true;
  op.getBody().walk([&](Operation *inner) {
    ++operations;
    straight = straight && (inner->getNumRegions() == 0 || isa<scf::IfOp>(inner));
    auto extract = dyn_cast<tensor::ExtractOp>(inner);
    if (extract && cast<RankedTensorType>(extract.getTensor().getType()).getRank() >= 3)
      most = std::max(most, ++reads[extract.getTensor()]);
  });
  return straight && most >= kFewestReads && operations <= kMostOperations;
}

/// Whether a body adds up, in a loop, what neighbours along its last index read next to each other. One element after another goes
/// through memory in strides; LLVM does not turn such loops around.
bool sumsAcross(tensor::GenerateOp op) {
  Value last = op.getBody().front().getArguments().back();
  unsigned operations = 0;
  bool loops = false, beside = false, simple = true;
  op.getBody().walk([&](Operation *inner) {
    ++operations;
    loops = loops || isa<scf::ForOp>(inner);
    simple = simple && (inner->getNumRegions() == 0 || isa<scf::IfOp, scf::ForOp>(inner));
    auto extract = dyn_cast<tensor::ExtractOp>(inner);
    beside = beside || (extract && !extract.getIndices().empty() && extract.getIndices().back() == last &&
                        extract->getParentOfType<scf::ForOp>());
  });
  return loops && beside && simple && operations <= kMostSummed;
}

/// The same operations for several elements, whose indices differ in one argument of the body, `varying`.
class Together {
public:
  Together(KernelBuilder &b, Block &body, const IRMapping &mapping, ArrayRef<Position> positions, Value varying)
      : b(b), body(body), positions(positions), varying(varying), mappings(positions.size(), mapping) {
    for (auto [map, position] : llvm::zip(mappings, positions))
      for (auto [argument, i] : llvm::zip(body.getArguments(), position.indices))
        map.map(argument, i);
  }

  /// What the terminator of `block` yields for each element, element after element.
  std::optional<SmallVector<Value>> emit(Block &block) {
    for (Operation &op : block.without_terminator()) {
      auto branch = dyn_cast<scf::IfOp>(op);
      auto loop = dyn_cast<scf::ForOp>(op);
      if (branch && branch.getNumResults() != 0 && isShared(branch.getCondition())) {
        if (!emitBranch(branch))
          return std::nullopt;
        continue;
      }
      if (loop && loop.getNumResults() != 0 && isShared(loop.getLowerBound()) && isShared(loop.getUpperBound()) &&
          isShared(loop.getStep())) {
        if (!emitLoop(loop))
          return std::nullopt;
        continue;
      }
      for (auto [map, position] : llvm::zip(mappings, positions))
        if (!emitScalar(b, op, map, position))
          return std::nullopt;
    }
    SmallVector<Value> yielded;
    for (IRMapping &map : mappings)
      for (Value operand : block.getTerminator()->getOperands())
        yielded.push_back(map.lookupOrDefault(operand));
    return yielded;
  }

private:
  /// Whether a value is the same for all elements.
  bool isShared(Value value) {
    if (positions.size() == 1)
      return false; // nothing to share it with
    if (auto found = known.find(value); found != known.end())
      return found->second;
    bool shared = dependsOnShared(value);
    known[value] = shared;
    return shared;
  }
  bool dependsOnShared(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return argument != varying && (argument.getOwner() == &body || counters.contains(argument) ||
                                     !body.getParentOp()->isAncestor(argument.getOwner()->getParentOp()));
    Operation *op = value.getDefiningOp();
    if (!body.getParentOp()->isAncestor(op))
      return true;
    return op->getNumRegions() == 0 && llvm::all_of(op->getOperands(), [&](Value v) { return isShared(v); });
  }

  SmallVector<Type> typesOf(Operation *op) {
    SmallVector<Type> types;
    for (size_t i = 0; i != positions.size(); ++i)
      llvm::append_range(types, op->getResultTypes());
    return types;
  }

  /// Fills `to` with `from` for all elements and maps their results.
  bool fill(Block &from, Block &to) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&to);
    auto yielded = emit(from);
    if (yielded)
      scf::YieldOp::create(b, *yielded);
    return yielded.has_value();
  }
  void mapResults(Operation *from, Operation *to) {
    unsigned each = from->getNumResults();
    for (auto [i, map] : llvm::enumerate(mappings))
      map.map(from->getResults(), to->getResults().slice(i * each, each));
  }

  bool emitBranch(scf::IfOp op) {
    Value condition = mappings.front().lookupOrDefault(op.getCondition());
    auto copy = scf::IfOp::create(b, typesOf(op), condition, /*addThenBlock=*/true, /*addElseBlock=*/true);
    if (!fill(op.getThenRegion().front(), copy.getThenRegion().front()) ||
        !fill(op.getElseRegion().front(), copy.getElseRegion().front()))
      return false;
    mapResults(op, copy);
    return true;
  }

  bool emitLoop(scf::ForOp op) {
    auto shared = [&](Value value) { return mappings.front().lookupOrDefault(value); };
    SmallVector<Value> initial;
    for (IRMapping &map : mappings)
      for (Value value : op.getInitArgs())
        initial.push_back(map.lookupOrDefault(value));
    auto copy = scf::ForOp::create(b, shared(op.getLowerBound()), shared(op.getUpperBound()), shared(op.getStep()), initial);
    unsigned each = op.getNumResults();
    counters.insert(op.getInductionVar());
    for (auto [i, map] : llvm::enumerate(mappings)) {
      map.map(op.getInductionVar(), copy.getInductionVar());
      map.map(op.getRegionIterArgs(), copy.getRegionIterArgs().slice(i * each, each));
    }
    if (!fill(*op.getBody(), *copy.getBody()))
      return false;
    mapResults(op, copy);
    return true;
  }

  KernelBuilder &b;
  Block &body;
  ArrayRef<Position> positions;
  Value varying;
  llvm::SmallDenseSet<Value> counters; // of loops that all elements share
  llvm::DenseMap<Value, bool> known;   // answers of isShared
  SmallVector<IRMapping> mappings;
};

struct Generate {
  KernelBuilder &b;
  Block &body;
  const Memory &result;
  const IRMapping &mapping;
  Value width;
  bool fine = true;

  /// Elements of the rows from `row` on whose indices are `lead` and its `rows` neighbours along the last of them, each from
  /// `last` on, `count` of them.
  void elements(Value row, ArrayRef<Value> lead, int64_t rows, Value last, int64_t count) {
    SmallVector<Position> positions;
    for (int64_t i = 0; i != rows; ++i)
      for (int64_t j = 0; j != count; ++j) {
        Value column = j ? b.add(last, b.index(j)) : last;
        Value first = b.mul(i ? b.add(row, b.index(i)) : row, width);
        Position position{SmallVector<Value>(lead), b.add(first, column), result.shape};
        if (i)
          position.indices.back() = b.add(position.indices.back(), b.index(i));
        position.indices.push_back(column);
        positions.push_back(position);
      }
    unsigned varying = body.getNumArguments() - (rows > 1 ? 2 : 1);
    auto yielded = Together(b, body, mapping, positions, body.getArgument(varying)).emit(body);
    fine = fine && yielded.has_value();
    if (yielded)
      for (auto [value, position] : llvm::zip(*yielded, positions))
        b.store(value, result, position.offset);
  }

  void rows(Value row, ArrayRef<Value> lead, int64_t count) {
    b.loop(b.index(0), width, 1, [&](Value last) { elements(row, lead, count, last, 1); });
  }

  /// One row, several elements at a time.
  void lanes(Value row, ArrayRef<Value> lead) {
    Value rest = arith::RemUIOp::create(b, width, b.index(kLanes)), whole = b.sub(width, rest);
    b.loop(b.index(0), whole, kLanes, [&](Value last) { elements(row, lead, 1, last, kLanes); });
    b.loop(whole, width, 1, [&](Value last) { elements(row, lead, 1, last, 1); });
  }

  /// Items from b.begin on; one division finds all that are left along the last of their indices.
  void runs() {
    ArrayRef<otf::Size> lead = ArrayRef(result.shape).drop_back();
    Value length = b.size(lead.back());
    scf::WhileOp::create(
        b, TypeRange{b.getIndexType()}, ValueRange{b.begin},
        [&](OpBuilder &, Location, ValueRange row) {
          Value more = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row[0], b.end);
          scf::ConditionOp::create(b, more, row);
        },
        [&](OpBuilder &, Location, ValueRange row) {
          SmallVector<Value> indices = b.split(row[0], lead);
          Value from = indices.back();
          Value count = b.smaller(b.sub(length, from), b.sub(b.end, row[0]));
          b.loop(b.index(0), count, 1, [&](Value i) {
            indices.back() = b.add(from, i);
            rows(b.add(row[0], i), indices, 1);
          });
          scf::YieldOp::create(b, ValueRange{b.add(row[0], count)});
        });
  }

  /// The same, four at a time where there are four left.
  void neighbours() {
    ArrayRef<otf::Size> lead = ArrayRef(result.shape).drop_back();
    Value length = b.size(lead.back());
    auto less = [&](Value a, Value c) -> Value {
      return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, a, c);
    };
    scf::WhileOp::create(
        b, TypeRange{b.getIndexType()}, ValueRange{b.begin},
        [&](OpBuilder &, Location, ValueRange row) {
          scf::ConditionOp::create(b, less(row[0], b.end), row);
        },
        [&](OpBuilder &, Location, ValueRange row) {
          SmallVector<Value> indices = b.split(row[0], lead);
          Value left = b.smaller(b.sub(length, indices.back()), b.sub(b.end, row[0]));
          Value many = less(b.index(kNeighbours - 1), left);
          auto branch = scf::IfOp::create(b, TypeRange{b.getIndexType()}, many, true, true);
          OpBuilder::InsertionGuard guard(b);
          auto take = [&](Region &region, int64_t count) {
            b.setInsertionPointToEnd(&region.front());
            rows(row[0], indices, count);
            scf::YieldOp::create(b, ValueRange{b.add(row[0], b.index(count))});
          };
          take(branch.getThenRegion(), kNeighbours);
          take(branch.getElseRegion(), 1);
          b.setInsertionPointAfter(branch);
          scf::YieldOp::create(b, branch.getResults());
        });
  }
};

} // namespace

bool emitGenerate(KernelBuilder &b, tensor::GenerateOp op, const Memory &result,
                  IRMapping &mapping) {
  Block &body = op.getBody().front();
  bool scalar = result.shape.empty();
  Value width = scalar ? b.index(1) : b.size(result.shape.back());
  if (!width)
    return false;
  Generate generate{b, body, result, mapping, width};
  size_t rank = result.shape.size();
  if (rank >= 2 && b.knows(result.shape[rank - 2])) {
    std::optional<int64_t> length = result.shape.back().constant();
    if (readsWindows(op)) {
      generate.neighbours();
      return generate.fine;
    }
    if (length && *length < kShortRow) {
      generate.runs();
      return generate.fine;
    }
  }
  bool fine = true;
  bool across = !scalar && result.shape.back().constant().value_or(kLanes) >= kLanes && sumsAcross(op);
  b.loop(b.begin, b.end, 1, [&](Value row) {
    if (!scalar) {
      SmallVector<Value> lead = b.split(row, ArrayRef(result.shape).drop_back());
      return across ? generate.lanes(row, lead) : generate.rows(row, lead, 1);
    }
    auto yielded = emitProgram(b, body, mapping, {{}, b.index(0), result.shape});
    fine = yielded.has_value();
    if (fine)
      b.store(yielded->front(), result, b.index(0));
  });
  return fine && generate.fine;
}

} // namespace otf::cpu
