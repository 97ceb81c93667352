// Variants of a pass of a walk, timed by variants.py. Each sums the rows of a graph as kernels/cpu/ppr_pass.h and
// ppr_slices.h do, multiplies by a factor, and takes a Chebyshev step, without residuals, restarts and masks.
// The file needs GCC or Clang, for their vector types.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

struct Graph {
    int64_t nodes;
    const int64_t* indptr;
    const int32_t* indices;
    const uint16_t* indices16;  // if all node numbers fit in 16 bits
    const float* weight;
    const uint16_t* code;  // position of the weight in `table`
    const float* table;
};

template <int N>
struct Float {
    typedef float V __attribute__((vector_size(4 * N)));
    V v;
    static Float load(const float* p) {
        Float x;
        std::memcpy(&x.v, p, sizeof(V));
        return x;
    }
    static void store(float* p, Float x) { std::memcpy(p, &x.v, sizeof(V)); }
};

typedef uint16_t Halves __attribute__((vector_size(32)));
typedef uint32_t Words __attribute__((vector_size(64)));

struct Half {  // bfloat16: the upper half of a float32
    static Float<16> load(const uint16_t* p) {
        Halves h;
        std::memcpy(&h, p, sizeof(h));
        const Words wide = __builtin_convertvector(h, Words) << 16;
        Float<16> x;
        std::memcpy(&x.v, &wide, sizeof(wide));
        return x;
    }
    static void store(uint16_t* p, Float<16> x) {
        Words wide;
        std::memcpy(&wide, &x.v, sizeof(wide));
        const Words rounded = (wide + 0x7fff + ((wide >> 16) & 1)) >> 16;
        const Halves h = __builtin_convertvector(rounded, Halves);
        std::memcpy(p, &h, sizeof(h));
    }
};

struct Plain {
    static int64_t column(const Graph& g, int64_t e) { return g.indices[e]; }
    static float weight(const Graph& g, int64_t e) { return g.weight[e]; }
};
struct Short : Plain {
    static int64_t column(const Graph& g, int64_t e) { return g.indices16[e]; }
};
struct Coded : Short {
    static float weight(const Graph& g, int64_t e) { return g.table[g.code[e]]; }
};

// The order of the entries of rows that are summed together: row by row, or entry 0 of each row, then entry 1 of each.
enum class Stored { by_row, interleaved };

// L lanes in vectors of 16 (or one of L), `together` rows of equal length at a time, prefetching `ahead` entries early.
template <int L, int together, int ahead, class Entries, Stored stored, class Memory, class State>
void pass(const Graph& g, const State* from, State* to, int64_t begin, int64_t end) {
    constexpr int N = L < 16 ? L : 16, vectors = L / N;
    typedef typename Float<N>::V V;
    for (int64_t row = begin; row < end;) {
        const int64_t length = g.indptr[row + 1] - g.indptr[row];
        bool alike = row + together <= end && length <= 64 && (stored == Stored::by_row || row % together == 0);
        for (int i = 1; alike && i < together; ++i) alike = g.indptr[row + i + 1] - g.indptr[row + i] == length;
        const int count = alike ? together : 1;
        V sum[together][vectors] = {};
        const int64_t first = g.indptr[row];
        const auto add = [&](int64_t e, V* acc) __attribute__((always_inline)) {
            if (ahead > 0)
                for (int line = 0; line < L; line += 64 / int(sizeof(State)))
                    __builtin_prefetch(from + Entries::column(g, e + ahead) * L + line);
            const State* y = from + Entries::column(g, e) * L;
            const float w = Entries::weight(g, e);
            for (int v = 0; v < vectors; ++v) acc[v] += w * Memory::load(y + v * N).v;
        };
        if (alike) {
            for (int64_t j = 0; j < length; ++j)
#pragma GCC unroll 8
                for (int i = 0; i < together; ++i)
                    add(first + (stored == Stored::by_row ? i * length + j : j * together + i), sum[i]);
        } else {
            for (int64_t e = first; e < first + length; ++e) add(e, sum[0]);
        }
#pragma GCC unroll 8
        for (int i = 0; i < together; ++i) {
            if (i >= count) break;
            for (int v = 0; v < vectors; ++v) {
                State* target = to + (row + i) * L + v * N;
                Float<N> before = Memory::load(target);
                before.v += 1.07f * (0.01f * sum[i][v] - before.v);
                Memory::store(target, before);
            }
        }
        row += count;
    }
}

template <int L, int together, int ahead, class Entries = Plain, Stored stored = Stored::by_row>
void with_floats(const Graph& g, const void* from, void* to, int threads) {
#pragma omp parallel for schedule(dynamic, 8) num_threads(threads)
    for (int64_t tile = 0; tile < (g.nodes + 63) / 64; ++tile)
        pass<L, together, ahead, Entries, stored, Float<(L < 16 ? L : 16)>>(
            g, static_cast<const float*>(from), static_cast<float*>(to), tile * 64, std::min(g.nodes, tile * 64 + 64));
}

template <int L, int together, int ahead>
void with_halves(const Graph& g, const void* from, void* to, int threads) {
#pragma omp parallel for schedule(dynamic, 8) num_threads(threads)
    for (int64_t tile = 0; tile < (g.nodes + 63) / 64; ++tile)
        pass<L, together, ahead, Plain, Stored::by_row, Half>(g, static_cast<const uint16_t*>(from),
                                                              static_cast<uint16_t*>(to), tile * 64,
                                                              std::min(g.nodes, tile * 64 + 64));
}

// Two blocks of 16 lanes, one after the other.
void twice_16(const Graph& g, const void* from, void* to, int threads) {
    const float* x = static_cast<const float*>(from);
    float* y = static_cast<float*>(to);
    with_floats<16, 1, 24>(g, x, y, threads);
    with_floats<16, 1, 24>(g, x + g.nodes * 16, y + g.nodes * 16, threads);
}

using Pass = void (*)(const Graph&, const void*, void*, int);
const Pass passes[] = {
    with_floats<32, 1, 24>,
    with_floats<32, 1, 0>,
    with_floats<32, 1, 48>,
    with_floats<32, 2, 24>,
    twice_16,
    with_halves<32, 1, 24>,
    with_floats<1, 8, 0, Short, Stored::interleaved>,
    with_floats<1, 1, 0>,
    with_floats<1, 8, 0, Short>,
    with_floats<1, 8, 0, Plain, Stored::interleaved>,
    with_floats<1, 8, 0, Coded, Stored::interleaved>,
};

}  // namespace

extern "C" void run_pass(int which, int64_t nodes, const int64_t* indptr, const int32_t* indices,
                         const uint16_t* indices16, const float* weight, const uint16_t* code, const float* table,
                         const void* from, void* to, int threads) {
    passes[which](Graph{nodes, indptr, indices, indices16, weight, code, table}, from, to, threads);
}
