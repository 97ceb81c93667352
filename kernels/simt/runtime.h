// What a kernel's translation unit sees of the emulator. cuda_host.h builds the CUDA names on it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simt {

struct Index {
    unsigned x, y, z;
};

// The running thread; the scheduler writes it before every resumption.
struct Coordinates {
    Index thread, block, block_size, grid_size;
};
extern Coordinates running;

// The place of an operation in the .cu file.
struct Site {
    const char* file;
    int line;
};

enum class BarrierKind : int { plain, count, all, any };
enum class WarpKind : int {
    sync,
    shuffle_index,
    shuffle_up,
    shuffle_down,
    shuffle_xor,
    ballot,
    all,
    any,
    match_any,
    mma,
    mma_bytes
};

// Each returns when the operation is complete for the calling thread, or never: an error ends the launch.
int barrier(BarrierKind kind, int predicate, Site site);
uint64_t warp_operation(WarpKind kind, unsigned mask, uint64_t value, int value_bytes, int lane_argument, int width,
                        Site site);

// One lane's part of a matrix product of 16 rows, 8 columns and a depth of 8 or 16, in the layout of PTX's mma.m16n8k8 and
// mma.m16n8k16: sums += rows * columns. Called by all lanes of a warp; sums are those of mma.cpp.
struct MatrixParts {
    float* sums;              // (4,)
    const uint32_t* rows;     // (depth / 4,) pairs of 16-bit numbers
    const uint32_t* columns;  // (depth / 8,)
    int depth;
    bool is_bfloat;
};
void mma(const MatrixParts& parts, Site site);

// The same of 8-bit integers, in the layout of mma.m8n8k16 and mma.m16n8k32: 8 rows and a depth of 16, or 16 rows and 32. Sums wrap.
struct ByteMatrixParts {
    int32_t* sums;            // (rows / 4,)
    const uint32_t* rows;     // (1,) or (4,) of four numbers
    const uint32_t* columns;  // (1,) or (2,)
    bool is_small;
};
void mma(const ByteMatrixParts& parts, Site site);

// Before an atomic: counts it, and in shuffled order lets other threads run first. After it: a thread that repeats an atomic
// without changing anything is waiting for another thread, which gets to run.
void before_atomic();
void after_atomic(const void* address, uint64_t operand, bool changed);

// For is_last_block of hopfuse/device.h: what a thread did before a release, and everything ordered before that, happens
// before what follows a later acquire of the same address.
void release(const void* address);
void acquire(const void* address);

// For grid_barrier of hopfuse/device.h: waits until a thread of every block of a cooperative launch is here.
void meet_other_blocks(unsigned* arrived);

// A copy of 16 bytes from global to shared memory, or of zeros. It may arrive at any time between its begin and the wait for its
// group: in order of threads when it is waited for, in reverse order at once, in shuffled order at one or the other.
struct Copy {
    void* to;
    const void* from;
    bool is_there;
    unsigned group;
};
// Returns whether the copy arrives at once; else it is kept.
bool begin_copy(const Copy& copy);
void end_copies();
// A copy that the wait for all but the last `groups` groups is for, which the caller makes; null when there are no more.
const Copy* next_copy(int groups);

void* dynamic_shared();
[[noreturn]] void trap(Site site);

// ------------------------------------------------------------------------------------------------
// Registration: each translation unit of kernels ends with its table.

struct Parameter {
    size_t size, alignment;
};

struct Kernel {
    const char* name;
    void (*call)(void** arguments);
    const char* signature;
    const Parameter* parameters;  // the last one has no size
    unsigned max_threads;         // of __launch_bounds__
};
extern const Kernel kernels[];
extern const int num_kernels;

}  // namespace simt
