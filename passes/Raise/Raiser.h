// SPDX-License-Identifier: Apache-2.0
//
// What the operator families share while a model is raised.
//
// Nodes are visited in order, and for each ONNX value we keep what is known about it: element type, symbolic sizes,
// and, for integers that shape arithmetic computes and for small constants, the contents themselves. A family's
// function reads what is known of a node's inputs and says what is known of its outputs; most of a decoder's nodes
// vanish in this way. Recognition looks back: the function for the last node of a pattern (a norm's Mul, an
// attention's second MatMul) matches the nodes before it in the ONNX graph, which is still whole. What a
// recognised pattern leaves unused is removed at the end.
#ifndef OTF_PASSES_RAISE_RAISER_H
#define OTF_PASSES_RAISE_RAISER_H

#include "dialects/ONNX/ONNXOps.h"
#include "dialects/OTF/OTF.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

namespace otf::raise {

/// Quantized codes in the file that a value is the dequantization of.
struct GivenCodes {
  onnx::FileBlobAttr codes;
  mlir::Attribute how; // otf::GivenAttr, of the matrix as it lies in the file
  std::string name;
  std::function<mlir::Value()> dequantize; // makes the value as a tensor, for who needs it; may be null
};

/// A tensor that lies on a grid of 256 values (`otf.on_grid`).
struct OnGrid {
  mlir::Value of;     // the tensor that this is said of; nothing is known of another
  mlir::Value grid;   // tensor<2xf32>
  mlir::Value source; // ONNX value that is this one when it is rounded to the grid; null: none other is known
};

/// Where codes of 8 bits come from: a QuantizeLinear's or DynamicQuantizeLinear's operands.
struct CodesOf {
  mlir::Value of;                  // the tensor of codes that this is said of
  mlir::Value source, scale, zero; // ONNX values; zero may be null
};

/// What is known about an ONNX value.
struct Known {
  int64_t elementType = 0;             // ONNX number, onnx::ElementType
  llvm::SmallVector<Size> sizes;       // one a dimension
  std::optional<llvm::SmallVector<Size>> integers; // contents of an integer or boolean tensor, row-major; bits of fp8 and fp4
  std::optional<llvm::SmallVector<double>> reals;  // contents of a small constant float tensor
  mlir::Attribute constant;            // onnx::FileBlobAttr of a constant whose bytes stay in the file
  std::string name;                    // of that constant
  std::optional<GivenCodes> given;     // where the file has the value quantized
  std::optional<OnGrid> onGrid;        // where the value was dequantized
  std::optional<CodesOf> codesOf;      // where it was quantized
  mlir::Value tensor;                  // the raised value; made on demand where contents suffice
  mlir::Value state;                   // the cache after the step, for a present key or value

  size_t rank() const { return sizes.size(); }
};

class Raiser;

/// Raises one node: reads inputs with `Raiser::input`, writes outputs with `Raiser::set`.
using RaiseFunction = std::function<mlir::LogicalResult(Raiser &, onnx::NodeOp)>;

/// Functions by operator, each with the first operator-set version it is right for and how many inputs it needs: the
/// first `least` must be there, and none after `most`. Operators of another domain than ai.onnx are named with it:
/// "com.microsoft::MatMulNBits".
struct Registry {
  struct Entry {
    RaiseFunction raise;
    unsigned least, most;
    int64_t since;
  };
  llvm::StringMap<Entry> entries;

  void add(llvm::StringRef op, RaiseFunction raise, unsigned least, unsigned most, int64_t since = 7) {
    entries[op] = {std::move(raise), least, most, since};
  }
  /// The entry of a node's operator, or null.
  Entry *find(onnx::NodeOp node) {
    llvm::StringRef domain = node.getDomain();
    auto found = entries.find(domain.empty() ? node.getOpType().str() : (domain + "::" + node.getOpType()).str());
    return found == entries.end() ? nullptr : &found->second;
  }
};

inline constexpr unsigned kAnyNumber = ~0u;

/// The newest operator set of the default domain whose changes were read for the operators here.
inline constexpr int64_t kNewestOperatorSet = 28;
/// Older ones are checked apart.
inline constexpr int64_t kOldestOperatorSet = 7;

void registerArithmetic(Registry &);
void registerLogic(Registry &);
void registerCasts(Registry &);
void registerActivations(Registry &);
void registerRandom(Registry &);
void registerShapes(Registry &);
void registerMovement(Registry &);
void registerSlicing(Registry &);
void registerPadding(Registry &);
void registerIndexing(Registry &);
void registerMatrices(Registry &);
void registerImages(Registry &);
void registerEinsum(Registry &);
void registerReduce(Registry &);
void registerSignal(Registry &);
void registerWindows(Registry &);
void registerContractions(Registry &);
void registerBranches(Registry &);
void registerLoops(Registry &);
void registerRecurrent(Registry &);
void registerScans(Registry &);
void registerScatter(Registry &);
void registerSelection(Registry &);
void registerSorting(Registry &);
void registerNormalizations(Registry &);
void registerSoftmax(Registry &);
void registerConvolutions(Registry &);
void registerPooling(Registry &);
void registerSampling(Registry &);
void registerRegions(Registry &);
void registerResize(Registry &);
void registerTfIdf(Registry &);
void registerTraining(Registry &);
void registerQuantization(Registry &);
void registerIntegerContractions(Registry &);
void registerQuantizedContrib(Registry &);
void registerQuantizedConvolutions(Registry &);
void registerIntegerProducts(Registry &);
void registerGivenWeights(Registry &);
void registerMixtureOfExperts(Registry &);
void registerStandardAttention(Registry &);
void registerContribAttention(Registry &);
void registerContribNorms(Registry &);
void registerFusedMatMul(Registry &);
void registerLinearAttention(Registry &);

/// What every node owes: attributes of their types and limits, before its function runs; results, after it.
mlir::LogicalResult checkBefore(Raiser &, onnx::NodeOp node);
mlir::LogicalResult checkAfter(Raiser &, onnx::NodeOp node);

/// Refuses a node of operator set 1 to 6 whose operator meant something else then.
mlir::LogicalResult checkOlder(Raiser &, onnx::NodeOp node);

// Patterns, tried by the function of their last node before its plain meaning. Each sets the node's
// output and returns true, or returns false and has changed nothing that is used.
bool recognizeAttention(Raiser &, onnx::NodeOp matmul);
bool recognizeRope(Raiser &, onnx::NodeOp add);
bool recognizeRmsNorm(Raiser &, onnx::NodeOp node);
bool recognizeScaledNorm(Raiser &, onnx::NodeOp mul);
bool recognizeGatedActivation(Raiser &, onnx::NodeOp mul);
bool recognizeBias(Raiser &, onnx::NodeOp add);
bool recognizeIntegerProduct(Raiser &, onnx::NodeOp mul);
bool recognizeScaledCodes(Raiser &, onnx::NodeOp mul);

class Raiser {
public:
  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange indices)>;

  /// A result of an otf.compute, and its body.
  struct Output {
    int64_t elementType;
    llvm::SmallVector<Size> sizes;
  };
  using ComputeBody = llvm::function_ref<void(mlir::OpBuilder &, mlir::Value item, mlir::ValueRange handles)>;

  explicit Raiser(mlir::ModuleOp module);

  mlir::LogicalResult run();
  /// Raises one node, whose inputs are known.
  mlir::LogicalResult raiseNode(onnx::NodeOp node);

  mlir::OpBuilder builder;
  /// Sizes that a program computes at run time, by the block where it is and by what it computes.
  std::map<std::pair<mlir::Block *, std::string>, Size> boundNumbers;
  /// Where new operations come from: the node that is being raised.
  std::optional<mlir::Location> currentLocation;

  /// Raises the nodes of a subgraph where `builder` stands.
  mlir::LogicalResult raiseNodes(mlir::Block &block);
  /// Makes `region`'s block with `argumentTypes` and lets `body` fill it. What it makes is known inside only: a tensor of a
  /// value from outside is made again where it is needed outside.
  mlir::LogicalResult inRegion(mlir::Region &region, mlir::TypeRange argumentTypes,
                               llvm::function_ref<mlir::LogicalResult(mlir::Block &)> body);

  //===-- values ----------------------------------------------------------------------------===//

  /// What is known of a value that was visited before.
  Known &known(mlir::Value value) { return values[value.getAsOpaquePointer()]; }
  /// Of a node's input, which must be present.
  Known &input(onnx::NodeOp node, unsigned position) { return known(node.getInputs()[position]); }
  bool hasInput(onnx::NodeOp node, unsigned position) {
    return node.inputOrNull(position) != nullptr;
  }
  /// Sets what is known of a node's output.
  Known &set(onnx::NodeOp node, Known what, unsigned output = 0) {
    return known(node.getOutputs()[output]) = std::move(what);
  }

  /// The value as a tensor, making it from contents or from the file where needed.
  mlir::Value tensor(Known &what);
  /// The value's element at `indices` of a space of `rank` dimensions that it broadcasts into.
  mlir::Value element(mlir::OpBuilder &, Known &what, mlir::ValueRange indices);
  /// The constant as a matrix of N x K for a contraction; null if it is no constant matrix of floats.
  /// `transposed`: the file has K x N.
  /// `taps` T: a row of the file is [K / T][T], and one of the matrix [T][K / T].
  mlir::Value matrix(Known &what, bool transposed, int64_t taps = 1);
  bool isMatrix(const Known &what);

  /// A tensor.generate over `sizes`.
  mlir::Value generate(mlir::Type elementType, llvm::ArrayRef<Size> sizes, Body body);
  /// A generate as a Known of ONNX type `elementType`.
  Known generated(int64_t elementType, llvm::ArrayRef<Size> sizes, Body body);
  /// Symbols whose values are, when the plan runs, the elements of `values`, a tensor of rank 1 and i64. A negative
  /// one ends the run, with `message` if there is one; so `values` has −1 where the data makes no sense.
  llvm::SmallVector<Size> bind(mlir::Value values, llvm::StringRef name = "size", const llvm::Twine &message = "");
  /// The same with symbols that freshSize made.
  void bindAs(mlir::Value values, llvm::ArrayRef<Size> symbols, const llvm::Twine &message = "");
  Size freshSize(llvm::StringRef name) { return Size::symbol(freshSymbol(name.str())); }
  /// The same under sizes that a bind's program has compared.
  Known reshapedChecked(Known &what, llvm::ArrayRef<Size> sizes);
  /// An otf.compute of `extent` work items, and its results. The body stores every element of each result that is used.
  std::vector<Known> computed(llvm::ArrayRef<Output> results, const Size &extent, ComputeBody body);
  /// The same elements under another shape.
  Known reshaped(Known &what, llvm::ArrayRef<Size> sizes);

  //===-- questions -------------------------------------------------------------------------===//

  /// The node that computes `value`, looking through casts between floats and Identity; or null.
  onnx::NodeOp node(mlir::Value value);
  onnx::NodeOp node(mlir::Value value, llvm::StringRef op) {
    onnx::NodeOp found = node(value);
    return found && found.is(op) ? found : onnx::NodeOp();
  }
  /// `value` without those casts.
  mlir::Value source(mlir::Value value);
  /// The one element of a constant.
  std::optional<double> scalar(mlir::Value value);
  /// Integer contents that are all constant.
  std::optional<llvm::SmallVector<int64_t>> constants(mlir::Value value);

  /// The sizes that `a` and `b` broadcast to, or nothing.
  std::optional<llvm::SmallVector<Size>> broadcast(llvm::ArrayRef<Size> a, llvm::ArrayRef<Size> b);
  /// The internal MLIR type of an ONNX element type; null if there is none.
  mlir::Type internalType(int64_t elementType);

  bool isUnsigned(int64_t elementType);
  /// f32, f16 or bf16: what is computed in f32.
  bool isFloat(int64_t elementType);
  /// The type that a model's input or output, or a weight in its file, has in memory.
  mlir::Type storedType(int64_t elementType);

  /// Is `past` a cache that this node adds a step's positions to?
  bool isCacheOf(mlir::Value past, onnx::NodeOp writer);
  /// That cache before the step, with heads and a width that the model's input may leave open; null if it says otherwise.
  mlir::Value cacheState(mlir::Value past, const Size &heads, const Size &width);

  /// Elements of `value` must be in [-extent, extent). Where the value is an input of the model the plan says so, the
  /// runtime refuses others before any kernel runs, and the answer is true.
  bool limitIndices(mlir::Value value, const Size &extent);

  mlir::LogicalResult fail(onnx::NodeOp node, const llvm::Twine &what);

private:
  mlir::LogicalResult checkOperators();
  void findCaches();
  mlir::LogicalResult raiseArguments();
  mlir::LogicalResult raiseReturn();
  mlir::DictionaryAttr boundaryAttributes(mlir::StringAttr name, int64_t elementType);
  mlir::LogicalResult setConstant(mlir::Value result, mlir::Attribute value, llvm::StringRef name);
  /// A Constant node's number or list of numbers as elements.
  mlir::Attribute denseConstant(mlir::Attribute value);
  /// The weight of these bytes with this logical type; one for each pair.
  WeightOp weight(onnx::FileBlobAttr blob, llvm::StringRef name, mlir::RankedTensorType type,
                  bool transposed, GivenAttr given = {}, int64_t taps = 1);
  WeightOp givenWeight(const GivenCodes &given, mlir::RankedTensorType type, bool transposed, int64_t taps);
  Size readSize(mlir::Attribute dim);
  /// Sizes of the arguments, by number.
  std::vector<llvm::SmallVector<Size>> argumentSizes();
  Size symbolFor(llvm::StringRef text);
  std::string freshSymbol(std::string name);
  bool isCache(unsigned argument) { return caches.count(argument) != 0; }
  /// Sizes as a tensor type takes them; remembers an impossible one for the node's error.
  llvm::SmallVector<Size> checked(llvm::ArrayRef<Size> sizes);

  mlir::ModuleOp module;
  mlir::func::FuncOp source_, target;
  Registry registry;
  std::unordered_map<const void *, Known> values; // references into it stay valid
  mlir::SymbolTable symbols;
  llvm::StringMap<onnx::InitializerOp> initializers;
  llvm::DenseMap<mlir::Attribute, llvm::SmallVector<WeightOp>> weights; // by blob

  /// Caches by argument of the model, and the result that holds each after the step.
  struct Cache {
    unsigned result;
    mlir::Operation *writer;
    CacheOp op;
  };
  std::map<unsigned, Cache> caches;
  std::map<std::string, std::string> symbolNames; // the model's text to a symbol
  std::set<std::string> takenSymbols;
  std::optional<std::string> impossibleSize;
};

} // namespace otf::raise

#endif // OTF_PASSES_RAISE_RAISER_H
