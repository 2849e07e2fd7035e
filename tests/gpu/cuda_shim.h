// Runs CUDA C++ kernels on a CPU, to check them without a GPU.
//
// Each thread of a block is a fiber; blocks run one after the other. A fiber runs until it meets the others at a barrier
// or a shuffle, in one of several orders, so that a missing barrier shows. Shared memory is full of NaN when a block
// starts. Asynchronous copies arrive as late as they may: when their thread waits for their group. A barrier or shuffle
// at which not all threads arrive ends the launch with an error.
#pragma once
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include <utility>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ __attribute__((section("shim_shared"))) static

struct shim_dim3 {
  unsigned int x, y, z;
};

template <typename T, int n>
struct alignas(sizeof(T) * n) shim_lanes {
  T lane[n];
};
using float2 = shim_lanes<float, 2>;
using float4 = shim_lanes<float, 4>;
using double2 = shim_lanes<double, 2>;
using int2 = shim_lanes<int, 2>;
using int4 = shim_lanes<int, 4>;
using uint4 = shim_lanes<unsigned int, 4>;
using longlong2 = shim_lanes<long long, 2>;
using short2 = shim_lanes<short, 2>;
using short4 = shim_lanes<short, 4>;
using ushort2 = shim_lanes<unsigned short, 2>;
using ushort4 = shim_lanes<unsigned short, 4>;
using char2 = shim_lanes<signed char, 2>;
using char4 = shim_lanes<signed char, 4>;

static shim_dim3 threadIdx, blockIdx, blockDim, gridDim;

extern "C" unsigned char __start_shim_shared[], __stop_shim_shared[];
// There is always something in the section; it also serves as the memory that launches ask for.
__attribute__((section("shim_shared"), used)) alignas(32) static unsigned char weft_shared[232448];

enum shim_state { SHIM_READY, SHIM_BARRIER, SHIM_SHUFFLE, SHIM_WARP, SHIM_DONE };

struct shim_copy {
  void *target;
  const void *source;
  int size;
};

struct shim_thread;
typedef void (*shim_together)(const shim_thread *lanes);

struct shim_thread {
  ucontext_t context;
  shim_state state;
  int line;              // where it waits
  int source, width;     // which lane a shuffle reads from: its lane of the warp
  unsigned long long value;
  shim_together together;  // what the warp does once all its threads are here, with these operands of each
  void *operands[3];
  int number;
  std::vector<shim_copy> started;              // copies of no group yet
  std::vector<std::vector<shim_copy>> groups;  // those on their way
  std::vector<char> stack;
};

static std::vector<shim_thread> shim_threads;
static ucontext_t shim_scheduler;
static int shim_current;
static void (*shim_entry)(void **);
static void **shim_arguments;
static char shim_error[256];

static void shim_pause(shim_state state, int line) {
  shim_thread &self = shim_threads[shim_current];
  const shim_dim3 place = threadIdx;
  self.state = state;
  self.line = line;
  swapcontext(&self.context, &shim_scheduler);
  threadIdx = place;
}

static void shim_barrier(int line) { shim_pause(SHIM_BARRIER, line); }
#define __syncthreads() shim_barrier(__LINE__)

template <typename T>
static T shim_shuffle(T value, int source, int width, int line) {
  shim_thread &self = shim_threads[shim_current];
  self.value = 0;
  memcpy(&self.value, &value, sizeof value);
  self.source = source;
  self.width = width;
  shim_pause(SHIM_SHUFFLE, line);
  T result;
  memcpy(&result, &shim_threads[shim_current].value, sizeof result);
  return result;
}

static inline int shim_lane() { return shim_current % 32; }
template <typename T>
static T shim_shuffle_down(T value, int offset, int width, int line) {
  const int lane = shim_lane();
  return shim_shuffle(value, lane % width + offset < width ? lane + offset : lane, width, line);
}
template <typename T>
static T shim_shuffle_up(T value, int offset, int width, int line) {
  const int lane = shim_lane();
  return shim_shuffle(value, lane % width >= offset ? lane - offset : lane, width, line);
}
template <typename T>
static T shim_shuffle_xor(T value, int offset, int width, int line) {
  const int lane = shim_lane();
  return shim_shuffle(value, lane - lane % width + ((lane % width) ^ offset), width, line);
}
template <typename T>
static T shim_shuffle_idx(T value, int source, int width, int line) {
  const int lane = shim_lane();
  return shim_shuffle(value, lane - lane % width + source % width, width, line);
}
#define __shfl_down_sync(mask, value, offset, width) shim_shuffle_down(value, offset, width, __LINE__)
#define __shfl_up_sync(mask, value, offset, width) shim_shuffle_up(value, offset, width, __LINE__)
#define __shfl_xor_sync(mask, value, offset, width) shim_shuffle_xor(value, offset, width, __LINE__)
#define __shfl_sync(mask, value, source, width) shim_shuffle_idx(value, source, width, __LINE__)

static void shim_async_copy(void *target, const void *source, int size) {
  shim_threads[shim_current].started.push_back({target, source, size});
}
static void shim_async_commit() {
  shim_thread &self = shim_threads[shim_current];
  self.groups.push_back(std::move(self.started));
  self.started.clear();
}
static void shim_async_wait(int pending) {
  std::vector<std::vector<shim_copy>> &groups = shim_threads[shim_current].groups;
  while ((int)groups.size() > pending) {
    for (const shim_copy &copy : groups.front()) memcpy(copy.target, copy.source, (size_t)copy.size);
    groups.erase(groups.begin());
  }
}

template <typename T>
static T shim_as(const void *x) {
  T result;
  memcpy(&result, x, sizeof result);
  return result;
}
static inline int __float_as_int(float x) { return shim_as<int>(&x); }
static inline float __int_as_float(int x) { return shim_as<float>(&x); }
static inline long long __double_as_longlong(double x) { return shim_as<long long>(&x); }
static inline double __longlong_as_double(long long x) { return shim_as<double>(&x); }
static inline int __popc(unsigned int x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }

// Threads take turns only where they wait, so that nothing comes between.
template <typename T>
static T atomicAdd(T *place, T value) {
  const T old = *place;
  *place = old + value;
  return old;
}
template <typename T>
static T atomicMin(T *place, T value) {
  const T old = *place;
  *place = value < old ? value : old;
  return old;
}
template <typename T>
static T atomicMax(T *place, T value) {
  const T old = *place;
  *place = value > old ? value : old;
  return old;
}
template <typename T>
static T atomicAnd(T *place, T value) {
  const T old = *place;
  *place = old & value;
  return old;
}
template <typename T>
static T atomicOr(T *place, T value) {
  const T old = *place;
  *place = old | value;
  return old;
}
template <typename T>
static T atomicCAS(T *place, T compare, T value) {
  const T old = *place;
  if (old == compare) *place = value;
  return old;
}

#include "tensor_core_shim.h"

static void shim_run_thread() {
  shim_entry(shim_arguments);
  shim_threads[shim_current].state = SHIM_DONE;
  swapcontext(&shim_threads[shim_current].context, &shim_scheduler);
}

// The values that the threads of a warp give each other, once all of them that are left wait for that.
static bool shim_exchange(int first, int last) {
  int line = -1;
  for (int t = first; t < last; ++t) {
    if (shim_threads[t].state == SHIM_DONE) continue;
    if (shim_threads[t].state != SHIM_SHUFFLE) return false;
    if (line >= 0 && shim_threads[t].line != line) return false;
    line = shim_threads[t].line;
  }
  if (line < 0) return false;
  unsigned long long values[32];
  for (int t = first; t < last; ++t) values[t - first] = shim_threads[t].value;
  for (int t = first; t < last; ++t) {
    shim_thread &thread = shim_threads[t];
    if (thread.state == SHIM_DONE) continue;
    thread.value = values[thread.source < last - first ? thread.source : t - first];
    thread.state = SHIM_READY;
  }
  return true;
}

// What the threads of a warp do together, once all 32 of them wait for that.
static bool shim_run_together(int first, int last) {
  if (last - first != 32) return false;
  for (int t = first; t < last; ++t)
    if (shim_threads[t].state != SHIM_WARP || shim_threads[t].together != shim_threads[first].together) return false;
  shim_threads[first].together(&shim_threads[first]);
  for (int t = first; t < last; ++t) shim_threads[t].state = SHIM_READY;
  return true;
}

static void shim_resume(int t) {
  shim_current = t;
  threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
  swapcontext(&shim_scheduler, &shim_threads[t].context);
}

// One block of threads. Returns whether all of them came to the end. A warp whose threads have met goes on at once, as
// far as it can, while other warps still stand where they were.
static bool shim_run_block(const std::vector<int> &order) {
  const int count = (int)shim_threads.size();
  for (;;) {
    for (int t : order) {
      if (shim_threads[t].state != SHIM_READY) continue;
      shim_resume(t);
      const int first = t / 32 * 32, last = first + 32 < count ? first + 32 : count;
      while (shim_exchange(first, last) || shim_run_together(first, last)) {
        if (shim_error[0]) return false;
        for (int u : order)
          if (u >= first && u < last && shim_threads[u].state == SHIM_READY) shim_resume(u);
      }
    }
    int waiting = 0, done = 0, line = -1;
    bool same = true;
    for (shim_thread &thread : shim_threads) {
      done += thread.state == SHIM_DONE;
      if (thread.state != SHIM_BARRIER) continue;
      same = same && (line < 0 || line == thread.line);
      line = thread.line;
      ++waiting;
    }
    if (done == count) return true;
    if (waiting != count || !same) {
      snprintf(shim_error, sizeof shim_error, "%d of %d threads wait at a barrier, %d have ended", waiting, count, done);
      return false;
    }
    for (shim_thread &thread : shim_threads) thread.state = SHIM_READY;
  }
}

// Orders of threads: 0 forwards, 1 backwards, any other number is the seed of a shuffled order.
static std::vector<int> shim_order(int count, int kind) {
  std::vector<int> order;
  for (int t = 0; t < count; ++t) order.push_back(kind == 1 ? count - 1 - t : t);
  uint32_t random = (uint32_t)kind;
  for (int t = count - 1; kind > 1 && t > 0; --t) {
    random = random * 1664525u + 1013904223u;
    std::swap(order[t], order[random % (uint32_t)(t + 1)]);
  }
  return order;
}

static const char *shim_launch(const int *grid, const int *block, int kind, void (*entry)(void **), void **arguments) {
  gridDim = {(unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2]};
  blockDim = {(unsigned)block[0], (unsigned)block[1], (unsigned)block[2]};
  shim_error[0] = 0;
  shim_entry = entry;
  shim_arguments = arguments;
  const int count = block[0] * block[1] * block[2];
  shim_threads = std::vector<shim_thread>((size_t)count);
  for (shim_thread &thread : shim_threads) thread.stack.resize(64 << 10);
  const std::vector<int> order = shim_order(count, kind);
  const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
  for (unsigned number = 0; number < blocks; ++number) {
    const unsigned at = kind == 1 ? blocks - 1 - number : number;
    blockIdx = {at % gridDim.x, at / gridDim.x % gridDim.y, at / (gridDim.x * gridDim.y)};
    memset(__start_shim_shared, 0xFF, (size_t)(__stop_shim_shared - __start_shim_shared));
    for (shim_thread &thread : shim_threads) {
      getcontext(&thread.context);
      thread.context.uc_stack.ss_sp = thread.stack.data();
      thread.context.uc_stack.ss_size = thread.stack.size();
      thread.context.uc_link = &shim_scheduler;
      thread.state = SHIM_READY;
      thread.started.clear();
      thread.groups.clear();
      makecontext(&thread.context, shim_run_thread, 0);
    }
    if (!shim_run_block(order)) return shim_error;
  }
  return nullptr;
}

template <typename... P, size_t... i>
static void shim_call(void (*kernel)(P...), void **arguments, std::index_sequence<i...>) {
  kernel(*(P *)arguments[i]...);
}

#define SHIM_KERNEL(name)                                                                                       \
  static void shim_enter_##name(void **arguments) { shim_apply(name, arguments); }                              \
  extern "C" const char *shim_launch_##name(const int *grid, const int *block, int order, void **arguments) {   \
    return shim_launch(grid, block, order, shim_enter_##name, arguments);                                       \
  }
template <typename... P>
static void shim_apply(void (*kernel)(P...), void **arguments) {
  shim_call(kernel, arguments, std::index_sequence_for<P...>{});
}
