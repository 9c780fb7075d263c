// SPDX-License-Identifier: Apache-2.0
//
// Encodes blocks of many weights at once, and gives them in order.
//
// Problem: a matrix of a small model is a few blocks, and factoring the second moments that feedback needs is work of one thread;
// threads that wait for either do nothing. Approach: threads take the next block in order, across weights, and before that make
// factors for weights to come, as far as memory goes. Whoever calls takes finished blocks in order. What is
// held is bounded: blocks that are being made or not yet taken, and factors.
#ifndef OTF_LIB_COMPILE_BLOCKQUEUE_H
#define OTF_LIB_COMPILE_BLOCKQUEUE_H

#include "lib/Compile/DerivedWeights.h"
#include "lib/Compile/FeedbackSource.h"
#include "lib/Compile/WeightBlocks.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace otf {

class BlockQueue {
public:
  /// Weights from `first` on are encoded, with one of `sources` each. Threads begin at once; what is given must stay.
  ///   blockBytes    of blocks that are being made or wait to be taken; what one needs is taken in any case
  ///   factorBytes   the same of factors, kept or being made
  BlockQueue(std::vector<StoredWeight> &weights, size_t first, const FileSet &files, std::vector<FactorSource> sources,
             DerivedWeights &derived, unsigned threads, int64_t blockBytes, int64_t factorBytes);
  /// Work that has begun is finished, and nothing more is begun.
  ~BlockQueue();

  struct Taken {
    size_t weight = 0;
    bool isFirst = false, isLast = false; ///< of its weight
    CodedBlock block;
  };
  /// Waits for the next block, whose error it adds to the weight's. Only while there are more.
  Taken take();

private:
  /// Factors that some weights in a row share.
  struct Factors {
    size_t source = 0;     ///< whose FactorSource it is
    size_t users = 0;      ///< weights that are not done
    std::unique_ptr<Feedback> feedback;
    bool done = false;
    std::string failure;
  };
  struct Weight {
    Factors *factors = nullptr;
    std::optional<WeightBlocks> blocks;
    bool isOpening = false; ///< by a thread
    std::string failure; ///< of opening
    int64_t left = 0;    ///< blocks to make
  };
  struct Slot {
    size_t weight;
    int64_t block, memory;
    bool isLast, done = false;
    CodedBlock made;
  };

  void work();
  Factors *nextFactors();
  Weight *nextToOpen();
  void open(Weight &weight, StoredWeight &stored, std::unique_lock<std::mutex> &lock);
  Slot *nextSlot();
  void makeFactors(Factors &factors, std::unique_lock<std::mutex> &lock);
  void makeBlock(Slot &slot, std::vector<float> &floats, std::unique_lock<std::mutex> &lock);

  std::vector<StoredWeight> &stored;
  const FileSet &files;
  std::vector<FactorSource> sources;
  DerivedWeights &derived; ///< under `deriving`; they are made in order
  const int64_t blockLimit, factorLimit;
  const size_t mostAhead; ///< factors that are begun and not done with

  std::mutex mutex, deriving; ///< the first is never taken under the second
  std::condition_variable changed;
  std::deque<Factors> factors;
  std::vector<Weight> weights;
  size_t factorsBegun = 0, factorsUsed = 0; ///< of `factors`, and with how many all weights are done
  size_t weight = 0;          ///< that the next block to begin is of ...
  int64_t block = 0;          ///< ... and which one it is
  std::deque<Slot> slots;     ///< begun and not taken, in order
  int64_t held = 0, factorsHeld = 0; ///< bytes of slots, and of factors
  bool stopped = false;
  std::vector<std::thread> threads;
};

} // namespace otf

#endif // OTF_LIB_COMPILE_BLOCKQUEUE_H
