// Restarts from seeds and from hits, as HippoRAG 2 adds passages to its phrase seeds. kernels/cpu/seeds.cpp gives the same
// bits.
#include "arguments/add_passage_seeds.h"
#include "arguments/kernel_type.h"
#include "hopfuse/device.h"
#include "hopfuse/integers.h"
#include "seed_row.h"

namespace hopfuse {

struct HitRow {
    const int64_t* ids;
    const float* scores;
    int count;
    double mass;

    __device__ double score(int i) const { return scores[i] > 0.0f ? static_cast<double>(scores[i]) : 0.0; }
    __device__ double sum() const {
        double total = 0.0;
        for (int i = 0; i < count; ++i) total = total + score(i);
        return total;
    }
};

}  // namespace hopfuse

// add_passage_seeds_f64: seeds (B, width + k) from seeds (B, width), each row scaled to sum 1, and from a row's hits with
// score > 0, which share `mass`: mass * score / (sum of scores). A hit that is already a seed adds to its weight.
// Unit: a query; a block. Block: 128. Shared memory: 16 bytes. Registers: <= 64 (occupancy 50 %).
// Bytes: 16 width + 12 k read, 16 (width + k) written.
extern "C" __global__ void __launch_bounds__(128)
    add_passage_seeds_f64(const int64_t* node, const double* weight, int width, const int64_t* ids, const float* scores,
                          const int64_t* counts, int k, double mass, int64_t* out_node, double* out_weight) {
    using namespace hopfuse;
    __shared__ double sums[2];
    const int64_t query = blockIdx.x;
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    const SeedRow seeds = {node + query * width, weight + query * width, width};
    const HitRow hits = {ids + query * k, scores + query * k, static_cast<int>(counts[query]), mass};
    if (thread == 0) sums[0] = seeds.sum();
    if (thread == 32) sums[1] = hits.sum();
    __syncthreads();
    int64_t* const nodes = out_node + query * (width + k);
    double* const weights = out_weight + query * (width + k);
    for (int i = thread; i < width; i += threads) {
        double own = seeds.holds(i) ? seeds.weight[i] : 0.0;
        if (sums[0] > 0.0 && is_finite(sums[0])) own = own / sums[0];  // otherwise the walk refuses the weights
        for (int j = 0; seeds.holds(i) && j < hits.count; ++j)
            if (hits.ids[j] == seeds.node[i] && hits.score(j) > 0.0) own = own + mass * hits.score(j) / sums[1];
        nodes[i] = seeds.node[i];
        weights[i] = own;
    }
    for (int j = thread; j < k; j += threads) {
        bool is_new = j < hits.count && hits.score(j) > 0.0;
        for (int i = 0; is_new && i < width; ++i) is_new = seeds.node[i] != hits.ids[j];
        nodes[width + j] = is_new ? hits.ids[j] : -1;
        weights[width + j] = is_new ? mass * hits.score(j) / sums[1] : 0.0;
    }
}

HOPFUSE_KERNEL_TYPE(add_passage_seeds_f64, hopfuse::AddPassageSeedsKernel);
