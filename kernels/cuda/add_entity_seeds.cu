// Restarts from seeds and from the nodes in hits: pseudo-relevance feedback. kernels/cpu/seeds.cpp gives the same bits.
#include "arguments/add_entity_seeds.h"
#include "arguments/kernel_type.h"
#include "hopfuse/device.h"
#include "hopfuse/integers.h"
#include "hopfuse/query_status.h"
#include "seed_row.h"

namespace hopfuse {

// The nodes in a query's hits, by rank and then by node, and their values.
struct HeldNodes {
    const int32_t* node;
    const double* value;
    int count;

    __device__ double sum() const {
        double total = 0.0;
        for (int i = 0; i < count; ++i) total = total + value[i];
        return total;
    }
    // The sum of a node's values from place `first` on.
    __device__ double sum_of(int64_t wanted, int first) const {
        double total = 0.0;
        for (int i = first; i < count; ++i)
            if (node[i] == wanted) total = total + value[i];
        return total;
    }
    __device__ bool holds_before(int place) const {
        for (int i = 0; i < place; ++i)
            if (node[i] == node[place]) return true;
        return false;
    }
};

}  // namespace hopfuse

// add_entity_seeds_f64: seeds (B, width + places) from seeds (B, width), which share 1 - mass of the restart, and from the
// nodes in a query's hits (rows of the incidence), which share `mass`: a node of the hit at rank r has the value
// weight / (r frequency). A query whose hits have more than `places` nodes is incomplete. `frequency` has a row per query,
// `frequency_stride` apart, or with a stride of 0 one row for all.
// Unit: a query; a block. Block: 128. Shared memory: 16 bytes. Registers: <= 64 (occupancy 50 %).
// Bytes: 16 width + 8 k + 20 a held node read, 16 (width + places) written; held nodes are compared with each other.
extern "C" __global__ void __launch_bounds__(128) add_entity_seeds_f64(const hopfuse::EntitySeedArguments a) {
    using namespace hopfuse;
    __shared__ double sums[2];
    const int64_t query = blockIdx.x;
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    const int width = a.seeds.width, places = a.places;
    const SeedRow seeds = {a.seeds.node + query * width, a.seeds.weight + query * width, width};
    int32_t* const nodes_here = a.held_node + query * places;
    double* const values_here = a.held_value + query * places;
    const int64_t* const ids = a.ids + query * a.k;
    const int64_t* const indptr = a.indptr;

    bool is_outside = false;
    int64_t total = 0;
    for (int64_t j = 0; j < a.counts[query]; ++j) {
        const int64_t row = ids[j];
        is_outside = is_outside || row < 0 || row >= a.rows;
        if (!is_outside) total += indptr[row + 1] - indptr[row];
    }
    const bool fits = !is_outside && total <= places;
    if (thread == 0)
        a.status[query] = is_outside ? status_document_outside : fits ? status_complete : status_incomplete;

    int64_t place = 0;
    for (int64_t j = 0; fits && j < a.counts[query]; ++j) {
        const int64_t row = ids[j], length = indptr[row + 1] - indptr[row];
        for (int64_t i = thread; i < length; i += threads) {
            const int64_t entry = indptr[row] + i;
            const int64_t often = a.frequency[query * a.frequency_stride + a.indices[entry]];
            const double worth = a.weight == nullptr ? 1.0 : static_cast<double>(a.weight[entry]);
            nodes_here[place + i] = a.indices[entry];
            values_here[place + i] = often > 0 ? worth / static_cast<double>((j + 1) * often) : 0.0;
        }
        place += length;
    }
    __syncthreads();
    const HeldNodes held = {nodes_here, values_here, fits ? static_cast<int>(total) : 0};
    if (thread == 0) sums[0] = seeds.sum();
    if (thread == 32) sums[1] = held.sum();
    __syncthreads();

    const bool has_own = sums[0] > 0.0 && is_finite(sums[0]), has_other = sums[1] > 0.0;
    const double kept = has_own && has_other ? 1.0 - a.mass : 1.0, given = has_own ? a.mass : 1.0;
    int64_t* const nodes = a.out_node + query * (width + places);
    double* const weights = a.out_weight + query * (width + places);
    for (int i = thread; i < width; i += threads) {
        double own = seeds.holds(i) ? seeds.weight[i] : 0.0;
        if (has_own) own = own / sums[0];  // otherwise the walk refuses the weights
        own = kept * own;
        if (seeds.holds(i) && has_other) own = own + held.sum_of(seeds.node[i], 0) * given / sums[1];
        nodes[i] = seeds.node[i];
        weights[i] = own;
    }
    for (int i = thread; i < places; i += threads) {
        bool is_new = i < held.count && has_other && !held.holds_before(i);
        for (int s = 0; is_new && s < width; ++s) is_new = seeds.node[s] != held.node[i];
        const double share = is_new ? held.sum_of(held.node[i], i) * given / sums[1] : 0.0;
        nodes[width + i] = share > 0.0 ? held.node[i] : -1;
        weights[width + i] = share;
    }
}

HOPFUSE_KERNEL_TYPE(add_entity_seeds_f64, hopfuse::AddEntitySeedsKernel);
