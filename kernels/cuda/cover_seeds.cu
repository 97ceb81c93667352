// Hits that mention the seeds. kernels/cpu/seeds.cpp gives the same bits.
#include "arguments/cover_seeds.h"
#include "arguments/kernel_type.h"
#include "hopfuse/device.h"
#include "hopfuse/integers.h"
#include "hopfuse/query_status.h"
#include "hopfuse/scalar.h"
#include "seed_row.h"

namespace hopfuse {

// Whether a row holds the node with a weight above 0.
HOPFUSE_DEVICE bool mentions(const CoverArguments& a, int64_t row, int64_t node) {
    int64_t begin = a.indptr[row], end = a.indptr[row + 1];
    const int64_t last = end;
    while (begin < end) {
        const int64_t middle = begin + (end - begin) / 2;
        if (a.indices[middle] < node) begin = middle + 1;
        else end = middle;
    }
    return begin < last && a.indices[begin] == node && (a.weight == nullptr || a.weight[begin] > 0.0f);
}

// The next seed, by weight and then by lower node, whose first hit is not chosen; -1 if there is none.
HOPFUSE_DEVICE int next_seed(const SeedRow& seeds, const int32_t* first, const int32_t* chosen, int count) {
    int next = -1;
    for (int s = 0; s < seeds.width; ++s) {
        if (first[s] == count || chosen[first[s]] != 0) continue;
        const bool is_before = next < 0 || seeds.weight[s] > seeds.weight[next] ||
                               (seeds.weight[s] == seeds.weight[next] && seeds.node[s] < seeds.node[next]);
        if (is_before) next = s;
    }
    return next;
}

}  // namespace hopfuse

// cover_seeds_f64: the first hit of a list, and the first hit that mentions each seed, heaviest first, until k are chosen;
// seeds lighter than `least` times the heaviest are left out. Hits are rows of the incidence; status as in query_status.h.
// Unit: a query; a block, with a thread for a seed and a hit. Block: 128. Registers: <= 40 (occupancy 75 %).
// Bytes: 16 a seed and 12 a hit read by all threads; 16 and 4 for each step of bisection in a hit's row, for each seed and
// hit; one thread reads 20 a seed for each hit that it chooses.
extern "C" __global__ void __launch_bounds__(128) cover_seeds_f64(const hopfuse::CoverArguments a) {
    using namespace hopfuse;
    const int64_t query = blockIdx.x;
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    const int places = a.seeds.width;
    const SeedRow seeds = {a.seeds.node + query * places, a.seeds.weight + query * places, places};
    const int64_t* const ids = a.ids + query * a.width;
    int32_t* const first = a.first + query * places;
    int32_t* const chosen = a.chosen + query * a.width;

    bool is_outside = false, is_bad = false;
    for (int64_t j = 0; j < a.counts[query]; ++j) is_outside = is_outside || ids[j] < 0 || ids[j] >= a.rows;
    double heaviest = 0.0;
    for (int s = 0; s < places; ++s) {
        is_bad = is_bad || !seeds.is_good(s);
        if (seeds.holds(s) && seeds.weight[s] > heaviest) heaviest = seeds.weight[s];
    }
    const int count = is_outside || is_bad ? 0 : static_cast<int>(a.counts[query]);
    for (int s = thread; s < places; s += threads) first[s] = count;
    for (int j = thread; j < count; j += threads) chosen[j] = j == 0 ? 1 : 0;
    __syncthreads();

    const double floor = a.least * heaviest;
    for (int64_t i = thread; i < static_cast<int64_t>(places) * count; i += threads) {
        const int s = static_cast<int>(i / count), hit = static_cast<int>(i % count);
        const bool is_heavy = seeds.holds(s) && seeds.weight[s] > 0.0 && seeds.weight[s] >= floor;
        if (is_heavy && mentions(a, ids[hit], seeds.node[s])) atomicMin(first + s, hit);
    }
    __syncthreads();
    if (thread != 0) return;

    for (int more = 1; more < a.k; ++more) {
        const int seed = next_seed(seeds, first, chosen, count);
        if (seed < 0) break;
        chosen[first[seed]] = 1;
    }
    int64_t* const out_ids = a.out_ids + query * a.k;
    float* const out_scores = a.out_scores + query * a.k;
    int found = 0;
    for (int j = 0; j < count; ++j) {
        if (chosen[j] == 0) continue;
        out_ids[found] = ids[j];
        out_scores[found] = a.scores[query * a.width + j];
        ++found;
    }
    a.out_counts[query] = found;
    for (; found < a.k; ++found) {
        out_ids[found] = -1;
        out_scores[found] = bits_to_float(0xff800000u);
    }
    a.status[query] = is_outside ? status_document_outside : is_bad ? status_bad_weight : status_complete;
}

HOPFUSE_KERNEL_TYPE(cover_seeds_f64, hopfuse::CoverSeedsKernel);
