// Converts a batch's node weights for walks, on a device. Contract: hopfuse/ppr.h, NODE WEIGHTS; kernels/cpu/inputs.cpp gives
// the same bits.
#include "arguments/node_weights_f32.h"
#include "hopfuse/device.h"
#include "hopfuse/node_weights.h"
#include "hopfuse/query_status.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

// A block's part of the nodes or columns of one query.
struct WeightPart {
    int64_t query, begin, end;

    __device__ static WeightPart of(int64_t count, int64_t part) {
        const int64_t parts = count > part ? (count + part - 1) / part : 1, begin = blockIdx.x % parts * part;
        return {blockIdx.x / parts, begin, begin + part < count ? begin + part : count};
    }
};

HOPFUSE_DEVICE bool is_weight(float weight) { return weight >= 0.0f && weight - weight == 0.0f; }

// The nodes whose weights are compared: those that have entries, in their row or out of them, and that a query allows.
struct ComparedNodes {
    const int64_t *indptr, *out_indptr;  // out_indptr: only for directed graphs, else null
    const uint8_t* allowed;              // (queries, N) or (1, N), or null
    int64_t allowed_stride;              // N, or 0

    __device__ bool holds(int64_t query, int64_t node) const {
        const bool has_entries =
            indptr[node] < indptr[node + 1] || (out_indptr != nullptr && out_indptr[node] < out_indptr[node + 1]);
        return has_entries && (allowed == nullptr || allowed[query * allowed_stride + node] != 0);
    }
};

HOPFUSE_DEVICE void note_fault(int32_t* status, int32_t fault) { atomicMin(reinterpret_cast<int*>(status), fault); }

}  // namespace hopfuse

using namespace hopfuse;

// node_weights_largest: for each query, the largest weight of the compared nodes, where a node without a column has weight 1,
// and the largest weight of any column: float32 bits, (queries, 2), 0 beforehand. Invalid weights are ignored.
// Unit: a part of a query's nodes; a block. Block: 256. Shared memory: 8 bytes. Registers: <= 40 (occupancy 75 %).
// Bytes: 20 N, and 4 a weight, gathered.
extern "C" __global__ void __launch_bounds__(256, 4)
    node_weights_largest(const float* given, int64_t columns, const int32_t* column, const int64_t* indptr,
                         const int64_t* out_indptr, const uint8_t* allowed, int64_t allowed_stride, int64_t num_nodes,
                         int64_t part, unsigned* largest) {
    __shared__ unsigned best[2];
    if (threadIdx.x < 2) best[threadIdx.x] = 0;
    __syncthreads();
    const WeightPart at = WeightPart::of(num_nodes, part);
    const ComparedNodes compared = {indptr, out_indptr, allowed, allowed_stride};
    float counted = 0.0f, any = 0.0f;
    for (int64_t node = at.begin + threadIdx.x; node < at.end; node += blockDim.x) {
        const int64_t own = column[node];
        const float weight = own < 0 ? 1.0f : given[at.query * columns + own];
        if (!is_weight(weight)) continue;
        if (own >= 0 && weight > any) any = weight;
        if (weight > counted && compared.holds(at.query, node)) counted = weight;
    }
    atomicMax(best, float_to_bits(counted));
    atomicMax(best + 1, float_to_bits(any));
    __syncthreads();
    if (threadIdx.x < 2) atomicMax(largest + at.query * 2 + threadIdx.x, best[threadIdx.x]);
}

// node_weights_read: weights (queries, columns), and (queries,) the weight of each query's other nodes. Writes faults to
// `status`, which is status_complete before. `lightest`: the lightest edge that each query walks, or null if no product can
// leave float32.
// Unit: a part of a query's columns; a block. Block: 256. Shared memory: 0. Registers: <= 40 (occupancy 75 %).
// Bytes: 8 a weight.
extern "C" __global__ void __launch_bounds__(256)
    node_weights_read(const float* given, int64_t columns, int64_t part, const unsigned* largest,
                      const double* lightest, float* weights, float* other, int32_t* status) {
    constexpr double least_normal = 1.1754943508222875e-38;
    const WeightPart at = WeightPart::of(columns, part);
    const double counted = static_cast<double>(bits_to_float(largest[at.query * 2]));
    const double any = static_cast<double>(bits_to_float(largest[at.query * 2 + 1]));
    const NodeWeightScale scale = node_weight_scale(weight_that_scales(counted, any));
    const double edge = lightest == nullptr ? 1.0 : lightest[at.query];
    const auto is_faint = [&](float weight) {
        return weight > 0.0f && static_cast<double>(weight) * edge < least_normal;
    };
    for (int64_t i = at.begin + threadIdx.x; i < at.end; i += blockDim.x) {
        const int64_t place = at.query * columns + i;
        if (!is_weight(given[place])) {
            note_fault(status + at.query, status_bad_node_weight);
            weights[place] = 0.0f;
            continue;
        }
        weights[place] = read_node_weight(scale, static_cast<double>(given[place]));
        if (is_faint(weights[place])) note_fault(status + at.query, status_faint_node_weight);
    }
    if (at.begin != 0 || threadIdx.x != 0) return;
    other[at.query] = read_node_weight(scale, 1.0);
    if (columns > 0 && !(any > 0.0)) note_fault(status + at.query, status_no_node_weight);
    if (is_faint(other[at.query])) note_fault(status + at.query, status_faint_node_weight);
}

HOPFUSE_KERNEL_TYPE(node_weights_largest, LargestWeightsKernel);
HOPFUSE_KERNEL_TYPE(node_weights_read, ReadWeightsKernel);
