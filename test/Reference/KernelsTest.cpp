// SPDX-License-Identifier: Apache-2.0
//
// The kernels of whole models as the CPU code generator makes them, each against the reference on the
// very inputs that it got, within what rounding to f32 can do. Activations that a kernel quantized
// otherwise at a tie are then inputs of the next like any other.

#include "include/otf/KernelABI.h"
#include "dialects/OTF/Caches.h"
#include "lib/Codegen/CPU/CompileObject.h"
#include "test/Reference/Bounds.h"
#include "test/Reference/Fixture.h"
#include "test/Reference/Model.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;

namespace otf::reference::test {
namespace {

constexpr double u = 0x1p-24;

/// Memory as the runtime gives it.
struct Buffer {
  explicit Buffer(size_t size) : storage(size + 64) {}
  uint8_t *data() {
    return reinterpret_cast<uint8_t *>((reinterpret_cast<uintptr_t>(storage.data()) + 63) / 64 * 64);
  }
  std::vector<uint8_t> storage;
};

template <typename T, typename From> void put(uint8_t *to, const std::vector<From> &from) {
  for (size_t i = 0; i < from.size(); ++i) {
    T value = T(from[i]);
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}
template <typename T, typename To> void take(const uint8_t *from, std::vector<To> &to) {
  for (size_t i = 0; i < to.size(); ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    to[i] = To(value);
  }
}

unsigned bytesOf(Type element) { return (element.getIntOrFloatBitWidth() + 7) / 8; }

void store(const Tensor &tensor, Type element, uint8_t *to) {
  if (tensor.isReal())
    return put<float>(to, tensor.reals());
  switch (bytesOf(element)) {
  case 1:
    return put<int8_t>(to, tensor.integers());
  case 4:
    return put<int32_t>(to, tensor.integers());
  default:
    return put<int64_t>(to, tensor.integers());
  }
}

Tensor load(const Shape &shape, Type element, const uint8_t *from) {
  Tensor tensor = Tensor::zeros(shape, isa<FloatType>(element));
  if (tensor.isReal())
    take<float>(from, tensor.reals());
  else if (bytesOf(element) == 1)
    take<int8_t>(from, tensor.integers());
  else if (bytesOf(element) == 4)
    take<int32_t>(from, tensor.integers());
  else
    take<int64_t>(from, tensor.integers());
  return tensor;
}

using Arguments = ArrayRef<const Content *>;

/// The argument that holds an operand of the kernel's operator; null where it is none.
const Content *given(Value operand, Arguments arguments) {
  auto argument = dyn_cast_or_null<BlockArgument>(operand);
  return argument ? arguments[argument.getArgNumber()] : nullptr;
}
const Tensor *tensor(Value operand, Arguments arguments) {
  const Content *content = given(operand, arguments);
  return content ? std::get_if<Tensor>(content) : nullptr;
}

class Kernels {
public:
  Kernels(ModuleOp module, const std::string &level) {
    FailureOr<std::string> object = cpu::compileObject(module, level);
    if (failed(object))
      return;
    int file = memfd_create("otf-kernels", MFD_CLOEXEC);
    if (file < 0 || write(file, object->data(), object->size()) != ssize_t(object->size()))
      return;
    library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  }

  bool loaded() const { return library; }

  /// Runs both, compares, and goes on with what the kernel gave.
  llvm::Expected<std::vector<Content>> run(plan::KernelOp kernel, Arguments arguments,
                                           const KernelSizes &sizes) {
    auto wanted = interpretKernel(kernel, arguments, sizes);
    if (!wanted)
      return wanted;
    Content got = call(kernel, arguments, sizes, wanted->front());
    compare(kernel, arguments, wanted->front(), got);
    ++count;
    return std::vector<Content>{std::move(got)};
  }

  int64_t count = 0;
  double worst = 0; ///< the largest part of a bound that was used

private:
  static int64_t extent(plan::KernelOp kernel, Arguments arguments, const Content &result) {
    Operation *root = kernel.getRoot();
    auto leading = [](const Tensor &t, size_t dims) {
      return elementCount(Shape(t.shape.begin(), t.shape.begin() + int64_t(dims)));
    };
    if (auto linear = dyn_cast<LinearOp>(root))
      return (linear.getWeight().getType().getRows() + 7) / 8;
    if (auto attention = dyn_cast<AttentionOp>(root); attention && isa<StateType>(attention.getKey().getType())) {
      const Shape &q = tensor(attention.getQuery(), arguments)->shape;
      return q[0] * (q[1] * q[2] + q[attention.getPositionsFirst() ? 2 : 1] * (kAttentionParts - 1));
    }
    if (isa<RopeOp>(root) || isa<AttentionOp>(root))
      return leading(*tensor(root->getOperand(0), arguments), 3);
    if (auto append = dyn_cast<AppendOp>(root))
      return leading(*tensor(append.getUpdate(), arguments), 3);
    const Tensor &t = std::get<Tensor>(result);
    return leading(t, t.shape.empty() ? 0 : t.shape.size() - 1);
  }

  Content call(plan::KernelOp kernel, Arguments arguments, const KernelSizes &sizes,
               const Content &like) {
    auto *entry =
        reinterpret_cast<otf_kernel>(dlsym(library, kernel.getSymName().str().c_str()));
    if (!entry) {
      ADD_FAILURE() << "the object has no " << kernel.getSymName().str();
      return like;
    }
    std::vector<Buffer> memory;
    auto past = sizes.find("past");
    int64_t capacity = 0;
    for (const Content *content : arguments)
      if (auto *cache = std::get_if<Cache>(content))
        capacity = std::max(capacity, cache->content.shape[2] + 64);
    const Cache *cacheResult = std::get_if<Cache>(&like);
    size_t cacheAt = 0;
    for (auto [content, type] : llvm::zip(arguments, kernel.getArgumentTypes())) {
      if (auto *tensor = std::get_if<Tensor>(content)) {
        Type element = cast<RankedTensorType>(type).getElementType();
        memory.emplace_back(size_t(tensor->count()) * bytesOf(element));
        store(*tensor, element, memory.back().data());
      } else if (auto *matrix = std::get_if<Matrix>(content)) {
        memory.emplace_back(matrix->blob.size());
        std::copy(matrix->blob.begin(), matrix->blob.end(), memory.back().data());
      } else {
        const Tensor &from = std::get<Cache>(*content).content;
        cacheAt = memory.size();
        int64_t batch = sizes.at("batch"), heads = from.shape[1], width = from.shape[3];
        memory.emplace_back(size_t(batch * heads * capacity * width * 4));
        moveCache(from, batch, capacity, memory.back().data(), true);
      }
    }
    if (!cacheResult) {
      const Tensor &t = std::get<Tensor>(like);
      Type element = cast<RankedTensorType>(kernel.getResultTypes()[0]).getElementType();
      memory.emplace_back(size_t(t.count()) * bytesOf(element));
    }
    std::vector<void *> pointers;
    for (Buffer &buffer : memory)
      pointers.push_back(buffer.data());
    std::vector<int64_t> dims;
    for (size_t i = 0; sizes.count("d" + std::to_string(i)); ++i)
      dims.push_back(sizes.at("d" + std::to_string(i)));
    if (past != sizes.end())
      dims.insert(dims.end(), {past->second, capacity, sizes.at("batch")});
    Buffer scratch(OTF_KERNEL_SCRATCH + sizeof(otf_kernel_shared));
    entry(pointers.data(), dims.data(), 0, extent(kernel, arguments, like), scratch.data());
    if (!cacheResult)
      return load(std::get<Tensor>(like).shape,
                  cast<RankedTensorType>(kernel.getResultTypes()[0]).getElementType(),
                  memory.back().data());
    Cache result = *cacheResult;
    moveCache(result.content, result.content.shape[0], capacity, memory[cacheAt].data(), false);
    return result;
  }

  /// Between a cache's content and memory with room for `capacity` positions.
  template <typename T>
  static void moveCache(T &cache, int64_t batch, int64_t capacity, uint8_t *memory, bool out) {
    int64_t heads = cache.shape[1], length = cache.shape[2], width = cache.shape[3];
    for (int64_t row = 0; row < (length ? batch : 0) * heads; ++row)
      for (int64_t i = 0; i < length * width; ++i) {
        uint8_t *at = memory + (row * capacity * width + i) * 4;
        auto &element = cache.reals()[size_t(row * length * width + i)];
        float value = float(element);
        if (out) {
          std::memcpy(at, &value, 4);
        } else if constexpr (!std::is_const_v<T>) {
          std::memcpy(&value, at, 4);
          element = value;
        }
      }
  }

  static double bound(Operation *root, Arguments arguments) {
    double reals = 1, integers = 1;
    for (const Content *content : arguments)
      if (auto *t = std::get_if<Tensor>(content))
        (t->isReal() ? reals : integers) =
            std::max(t->isReal() ? reals : integers, magnitude(*t));
    if (auto op = dyn_cast<LinearOp>(root)) {
      const Tensor &x = *tensor(op.getInput(), arguments);
      const Matrix &w = std::get<Matrix>(*given(op.getWeight(), arguments));
      const Tensor *bias = tensor(op.getBias(), arguments);
      bool zeros = op.getWeight().getType().getEncoding().getKind() == EncodingKind::codebook2;
      double sums = linearBound(x, w, bias, zeros);
      if (op.getEpilogue().empty())
        return sums;
      // Activations have a slope below 1.2 and are multiplied by one tensor at most; what else an
      // epilogue rounds is a few units of what it reads.
      return 1.2 * reals * sums + 32 * u * reals * std::max(1.0, linearMagnitude(x, w, bias));
    }
    if (auto op = dyn_cast<EmbeddingOp>(root)) {
      const Matrix &w = std::get<Matrix>(*given(op.getTable(), arguments));
      double largest = 0;
      for (double weight : w.weights)
        largest = std::max(largest, std::abs(weight));
      bool zeros = op.getTable().getType().getEncoding().getKind() == EncodingKind::codebook2;
      return zeros ? 8 * u * largest : 0; // scale · q fits a float
    }
    if (auto op = dyn_cast<NormOp>(root))
      return normBound(*tensor(op.getInput(), arguments), tensor(op.getScale(), arguments),
                       tensor(op.getBias(), arguments), op.getEpsilon().convertToDouble(),
                       op.getKind() == NormKind::layer);
    if (isa<RopeOp>(root))
      return 4 * u * reals * reals;
    if (isa<AppendOp>(root))
      return 0;
    if (auto op = dyn_cast<AttentionOp>(root)) {
      auto keys = [&](Value value) -> const Tensor & {
        const Content &content = *given(value, arguments);
        auto *cache = std::get_if<Cache>(&content);
        return cache ? cache->content : std::get<Tensor>(content);
      };
      return attentionBound(*tensor(op.getQuery(), arguments), keys(op.getKey()),
                            keys(op.getValue()), tensor(op.getMask(), arguments),
                            op.getScale().convertToDouble());
    }
    // Elementwise. Positions are multiplied by frequencies before they become angles.
    bool computes = false;
    root->walk([&](Operation *op) {
      computes |= op->getNumResults() == 1 && isa<FloatType>(op->getResult(0).getType()) &&
                  !isa<tensor::ExtractOp, arith::ConstantOp, arith::SelectOp>(op);
    });
    return computes ? 64 * u * reals * integers : 0;
  }

  void compare(plan::KernelOp kernel, Arguments arguments, const Content &wanted,
               const Content &got) {
    std::string name = kernel.getSymName().str();
    Operation *root = kernel.getRoot();
    if (auto op = dyn_cast<PrologueOp>(root)) {
      const Tensor &x = *tensor(op.getInput(), arguments);
      double bound = op.getKind() == NormKind::none
                         ? 0
                         : normBound(x, tensor(op.getScale(), arguments),
                                     tensor(op.getBias(), arguments),
                                     op.getEpsilon().convertToDouble(),
                                     op.getKind() == NormKind::layer);
      int64_t outliers = op.getColumns() ? op.getColumns().getType().getOutliers() : 0;
      EXPECT_EQ(compareRecords(std::get<Tensor>(wanted), std::get<Tensor>(got),
                               x.shape.back() - outliers, outliers, bound),
                "")
          << name;
      return;
    }
    auto content = [](const Content &c) -> const Tensor & {
      auto *cache = std::get_if<Cache>(&c);
      return cache ? cache->content : std::get<Tensor>(c);
    };
    double limit = bound(root, arguments), error = distance(content(wanted), content(got));
    EXPECT_LE(error, limit) << name;
    if (limit > 0)
      worst = std::max(worst, error / limit);
  }

  void *library = nullptr; // stays loaded: tests are few
};

struct Case {
  const char *fixture;
  const char *name;
  Recipe recipe;
};

class Generated : public testing::TestWithParam<std::tuple<Case, const char *>> {};

TEST_P(Generated, KernelsAreWithinRounding) {
  auto &[what, level] = GetParam();
  if (std::string(level) == "avx512vnni" &&
      !(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni")))
    GTEST_SKIP() << "this CPU lacks " << level;
  Model model(what.fixture, Stage::outlined, what.recipe);
  ASSERT_TRUE(model.module);
  Kernels kernels(*model.module, level);
  ASSERT_TRUE(kernels.loaded()) << model.context.complaints;
  double difference = 0, largest = 0;
  for (std::string name : {"prefill", "decode", "padded_left"}) {
    SCOPED_TRACE(name);
    Tensors inputs = loadArrays(what.fixture, name + "/in");
    Tensors got = model.run(inputs, [&](plan::KernelOp kernel, Arguments arguments,
                                        const KernelSizes &sizes) {
      return kernels.run(kernel, arguments, sizes);
    });
    Tensors wanted = model.run(inputs);
    const Tensor &mask = inputs["attention_mask"];
    difference = std::max(difference, distance(wanted["logits"], got["logits"], &mask));
    largest = std::max(largest, magnitude(wanted["logits"]));
  }
  EXPECT_GT(kernels.count, 30);
  // Whole models: rounding to f32, and for coded weights a code at a tie now and then.
  EXPECT_LE(difference, (what.recipe.linear == "f32" ? 1e-5 : 1e-2) * largest);
  RecordProperty("kernels", int(kernels.count));
  std::printf("  %lld kernels, at most %.3f of a bound used; logits differ by %.2e of %.2e\n",
              (long long)kernels.count, kernels.worst, difference, largest);
}

const Case generated[] = {
    {"llama-optimum", "llama_f32", {}},
    {"llama-optimum", "llama_f16", {"f16", "f16"}},
    {"llama-optimum", "llama_int8", {"int8", "int8"}},
    {"llama-optimum", "llama_int4", {"int4", "int8", 0.1}},
    {"llama-optimum", "llama_codebook2", {"codebook2", "f16", 0.035}},
    {"llama-optimum", "llama_int4_rows", {"int4", "int4", 0, 0}},
    {"llama-optimum", "llama_planes", {"planes3x3", "planes3x4", 0.1, 0}},
    {"qwen2-optimum", "qwen2_f32", {}},
    {"qwen2-optimum", "qwen2_int8", {"int8", "int8"}},
    {"qwen2-optimum", "qwen2_int4", {"int4", "int8"}},
    {"gpt2-optimum", "gpt2_f32", {}},
    {"gpt2-optimum", "gpt2_int8", {"int8", "int8", 0.1}},
    {"gpt2-optimum", "gpt2_codebook2", {"codebook2", "int8", 0.1, 64}},
    {"gpt2-optimum", "gpt2_planes", {"planes4x2", "int8", 0, 64}},
};

INSTANTIATE_TEST_SUITE_P(Models, Generated,
                         testing::Combine(testing::ValuesIn(generated),
                                          testing::Values("avx2", "avx512vnni")),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::get<1>(info.param);
                         });

} // namespace
} // namespace otf::reference::test
