// SPDX-License-Identifier: Apache-2.0
#include "runtime/CPU/Ceilings.h"

#include "runtime/CPU/Team.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace otf::runtime {
namespace {

// Eight times the last-level cache of small servers, read in slices of a millisecond. The fastest slice
// counts: others that use the machine only ever make one slower, and few are interrupted.
constexpr size_t kBytes = size_t(256) << 20, kSlice = size_t(16) << 20;
constexpr int kPasses = 48;
constexpr int64_t kRounds = 1 << 16;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

uint64_t readScalar(const std::byte *from, size_t bytes) {
  uint64_t sum = 0, word;
  for (size_t i = 0; i + 8 <= bytes; i += 8)
    std::memcpy(&word, from + i, 8), sum ^= word;
  return sum;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) uint64_t readVectors(const std::byte *from, size_t bytes) {
  __m256i sums[4] = {};
  for (size_t i = 0; i + 128 <= bytes; i += 128)
    for (size_t k = 0; k < 4; ++k)
      sums[k] = _mm256_xor_si256(
          sums[k], _mm256_load_si256(reinterpret_cast<const __m256i *>(from + i + 32 * k)));
  __m256i sum = _mm256_xor_si256(_mm256_xor_si256(sums[0], sums[1]), _mm256_xor_si256(sums[2], sums[3]));
  return uint64_t(_mm256_extract_epi64(sum, 0) ^ _mm256_extract_epi64(sum, 3));
}

// Ten sums hide the latency of a product. The empty assembly keeps products from being computed once
// for all: it claims to change an operand.
constexpr int kSums = 10;

__attribute__((target("avx2"))) uint64_t multiplyAvx2(int64_t rounds) {
  __m256i sums[kSums] = {}, x = _mm256_set1_epi8(3), w = _mm256_set1_epi8(5);
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t i = 0; i < rounds; ++i)
    for (__m256i &sum : sums) {
      __asm__ volatile("" : "+x"(x));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(x, w), ones));
    }
  __m256i all = sums[0];
  for (int i = 1; i < kSums; ++i)
    all = _mm256_xor_si256(all, sums[i]);
  return uint64_t(_mm256_extract_epi64(all, 0));
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"))) uint64_t multiplyVnni(int64_t rounds) {
  __m512i sums[kSums] = {}, x = _mm512_set1_epi8(3), w = _mm512_set1_epi8(5);
  for (int64_t i = 0; i < rounds; ++i)
    for (__m512i &sum : sums) {
      __asm__ volatile("" : "+v"(x));
      sum = _mm512_dpbusd_epi32(sum, x, w);
    }
  __m512i all = sums[0];
  for (int i = 1; i < kSums; ++i)
    all = _mm512_xor_si512(all, sums[i]);
  return uint64_t(_mm512_reduce_add_epi64(all));
}
#endif

std::atomic<uint64_t> sink; // or the loops would be left out

/// The fastest pass: function(part, pass) for as many parts as there are threads, whoever takes which, as with a plan's weights.
template <typename Function> double best(Team &team, const Function &function) {
  double least = 1e30;
  for (int pass = 0; pass < kPasses; ++pass) {
    double start = seconds();
    team.run(team.size(), [&](int64_t part) { sink += function(size_t(part), size_t(pass)); });
    least = std::min(least, seconds() - start);
  }
  return least;
}

Result<double> readBandwidth(Team &team, size_t bytes) {
  const size_t share = kSlice / team.size() / 4096 * 4096, slices = bytes / kSlice;
  uint64_t (*read)(const std::byte *, size_t) = readScalar;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2"))
    read = readVectors;
#endif
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return deviceError("memory: ", bytes, " bytes cannot be had to measure the machine (", std::strerror(errno), ")");
  auto *memory = static_cast<std::byte *>(mapped);
  // Touched by all threads, so that it does not lie near one alone.
  team.run(team.size(), [&](int64_t part) {
    for (size_t slice = 0; slice < slices; ++slice)
      std::memset(memory + slice * kSlice + size_t(part) * share, 1, share);
  });
  const double reading = best(team, [&](size_t part, size_t pass) {
    return read(memory + pass % slices * kSlice + part * share, share);
  });
  munmap(mapped, bytes);
  return double(share * team.size()) / reading;
}

void measureProducts(Team &team, Ceilings &ceilings) {
  uint64_t (*multiply)(int64_t) = nullptr;
  double macs = 0; // a round
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2"))
    multiply = multiplyAvx2, macs = 32 * kSums, ceilings.integers = "vpmaddubsw and vpmaddwd, 256 bits";
  if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    multiply = multiplyVnni, macs = 64 * kSums, ceilings.integers = "vpdpbusd, 512 bits";
#endif
  if (!multiply)
    return;
  const double multiplying = best(team, [&](size_t, size_t) { return multiply(kRounds); });
  ceilings.integerMacs = macs * double(kRounds) * team.size() / multiplying;
}

} // namespace

Result<Ceilings> measureCeilings(unsigned threads) {
  Result<std::unique_ptr<Team>> team = Team::create(threads);
  if (!team.ok())
    return team.status();
  Result<double> readBytes = readBandwidth(*team.value(), kBytes);
  if (!readBytes.ok())
    return readBytes.status();
  Ceilings ceilings{readBytes.value(), 0, "not measured on this processor"};
  measureProducts(*team.value(), ceilings);
  return ceilings;
}

Result<double> measureReadBandwidth(unsigned threads, size_t bytes) {
  Result<std::unique_ptr<Team>> team = Team::create(threads);
  if (!team.ok())
    return team.status();
  return readBandwidth(*team.value(), bytes);
}

} // namespace otf::runtime
