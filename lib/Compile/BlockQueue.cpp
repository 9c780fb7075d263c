// SPDX-License-Identifier: Apache-2.0
//
// Why no thread waits forever: the first block that is not done has its factors or they are the next ones to make, since both
// go in the order of weights; those are made as soon as nothing else is held, whatever they take.

#include "lib/Compile/BlockQueue.h"

#include "dialects/OTF/Derived.h"

namespace otf {

/// A thread keeps floats up to this for its next block, since memory that is given back and taken again costs page faults.
static constexpr size_t kKeptFloats = 1 << 18;

BlockQueue::BlockQueue(std::vector<StoredWeight> &stored, size_t first, const FileSet &files,
                       std::vector<FactorSource> all, DerivedWeights &derived, unsigned count, int64_t blockBytes, int64_t factorBytes)
    : stored(stored), files(files), sources(std::move(all)), derived(derived), blockLimit(blockBytes), factorLimit(factorBytes),
      mostAhead(count + 1), weights(stored.size()), weight(first) {
  for (size_t i = first; i < stored.size(); ++i) {
    if (!sources[i])
      continue;
    if (factors.empty() || !sources[factors.back().source].makesTheSame(sources[i]))
      factors.emplace_back().source = i;
    ++factors.back().users;
    weights[i].factors = &factors.back();
  }
  for (unsigned i = 0; i < count; ++i)
    threads.emplace_back([this] { work(); });
}

BlockQueue::~BlockQueue() {
  {
    std::lock_guard lock(mutex);
    stopped = true;
  }
  changed.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

BlockQueue::Taken BlockQueue::take() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return !slots.empty() && slots.front().done; });
  Slot &slot = slots.front();
  Taken taken{slot.weight, slot.block == 0, slot.isLast, std::move(slot.made)};
  held -= slot.memory;
  if (slot.isLast)
    weights[slot.weight].blocks.reset();
  slots.pop_front();
  changed.notify_all();
  lock.unlock();
  StoredWeight &of = stored[taken.weight];
  of.error += taken.block.error;
  if (taken.isLast) {
    std::lock_guard guard(deriving);
    derived.account(of.weight, of.error, of.leaves);
  }
  return taken;
}

void BlockQueue::work() {
  std::vector<float> floats;
  std::unique_lock lock(mutex);
  while (!stopped) {
    if (Factors *next = nextFactors())
      makeFactors(*next, lock);
    else if (Weight *next = nextToOpen())
      open(*next, stored[weight], lock);
    else if (Slot *slot = nextSlot())
      makeBlock(*slot, floats, lock);
    else if (weight == weights.size())
      return;
    else
      changed.wait(lock);
  }
}

/// Factors to make now, whose memory is taken; or null.
BlockQueue::Factors *BlockQueue::nextFactors() {
  if (factorsBegun == factors.size())
    return nullptr;
  Factors &next = factors[factorsBegun];
  int64_t bytes = sources[next.source].workBytes();
  // The weight at hand waits for them, so that others hold nothing soon.
  bool needed = weight < weights.size() && weights[weight].factors == &next && factorsHeld == 0;
  if (!needed && (factorsHeld + bytes > factorLimit || factorsBegun - factorsUsed >= mostAhead))
    return nullptr;
  factorsHeld += bytes;
  ++factorsBegun;
  return &next;
}

void BlockQueue::makeFactors(Factors &made, std::unique_lock<std::mutex> &lock) {
  const FactorSource &source = sources[made.source];
  auto feedback = std::make_unique<Feedback>();
  lock.unlock();
  std::string failure = source.make(*feedback);
  lock.lock();
  factorsHeld += source.keptBytes() - source.workBytes();
  made.feedback = std::move(feedback);
  made.failure = std::move(failure);
  made.done = true;
  changed.notify_all();
}

/// The weight of the next block, if it has none yet; or null.
BlockQueue::Weight *BlockQueue::nextToOpen() {
  if (weight == weights.size() || weights[weight].isOpening || weights[weight].left != 0)
    return nullptr;
  weights[weight].isOpening = true;
  return &weights[weight];
}

void BlockQueue::open(Weight &of, StoredWeight &stored, std::unique_lock<std::mutex> &lock) {
  lock.unlock();
  auto rows = [&] {
    if (derivedPart(stored.weight).empty())
      return WeightRows::open(files, stored.weight, stored.rows, stored.columns);
    std::lock_guard guard(deriving);
    return derived.of(stored.weight, stored.rows, stored.columns);
  };
  llvm::Expected<WeightBlocks> opened = WeightBlocks::open(stored, rows());
  lock.lock();
  if (opened) {
    of.blocks = std::move(*opened);
    of.left = of.blocks->count();
  } else {
    of.failure = llvm::toString(opened.takeError());
    of.left = 1;
  }
  of.isOpening = false;
  changed.notify_all();
}

/// The next block, if its factors are there and memory is; or null.
BlockQueue::Slot *BlockQueue::nextSlot() {
  if (weight == weights.size())
    return nullptr;
  Weight &of = weights[weight];
  if (of.left == 0 || (of.factors && !of.factors->done))
    return nullptr;
  int64_t memory = of.blocks ? of.blocks->blockMemory() : 0;
  if (!slots.empty() && held + memory > blockLimit)
    return nullptr;
  int64_t count = of.blocks ? of.blocks->count() : 1;
  held += memory;
  slots.push_back({weight, block, memory, block + 1 == count, false, {}});
  Slot &slot = slots.back();
  if (++block == count) {
    block = 0;
    ++weight;
  }
  changed.notify_all();
  return &slot;
}

void BlockQueue::makeBlock(Slot &slot, std::vector<float> &floats, std::unique_lock<std::mutex> &lock) {
  Weight &of = weights[slot.weight];
  lock.unlock();
  CodedBlock made;
  if (!of.failure.empty())
    made.failure = of.failure;
  else if (of.factors && !of.factors->failure.empty())
    made.failure = of.factors->failure;
  else
    made = of.blocks->make(slot.block, of.factors ? of.factors->feedback.get() : nullptr, floats);
  if (floats.capacity() > kKeptFloats)
    std::vector<float>().swap(floats);
  lock.lock();
  slot.made = std::move(made);
  slot.done = true;
  if (--of.left == 0 && of.factors && --of.factors->users == 0) {
    factorsHeld -= sources[of.factors->source].keptBytes();
    of.factors->feedback.reset();
    ++factorsUsed;
  }
  changed.notify_all();
}

} // namespace otf
