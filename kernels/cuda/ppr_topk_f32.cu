// Each query's best nodes, and the proof that they are the best. Contract: hopfuse/ppr.h, PROOF; kernels/cpu/ppr_topk.h gives
// the same bits. L queries lie side by side: state[node][lane].
#include "hopfuse/ppr_plan.h"
#include "hopfuse/ppr_proof.h"
#include "ppr_walk.h"
#include "topk_keys.h"

namespace hopfuse {

// What is ranked: y, as max(y, 0) deg, or with `final` x^ itself.
struct Candidates {
    const float* state;
    int final;
    const float* degree;  // (N,) or (N, L), or null: 1
    int per_lane;
    const int32_t* node_of;
    const int32_t* among;  // (count,) internal nodes, or null: all
    int64_t count;

    __device__ int64_t row(int64_t i) const { return among == nullptr ? i : among[i]; }

    template <int L>
    __device__ float weight(int64_t row, int lane) const {
        return degree == nullptr ? 1.0f : degree[per_lane ? row * L + lane : row];
    }

    template <int L>
    __device__ float score(int64_t row, int lane) const {
        const float value = state[row * L + lane];
        return final ? value : (value > 0.0f ? value : 0.0f) * weight<L>(row, lane);
    }
};

// A lane's candidates as keys, below those of an earlier round. A node without score is no hit.
template <int L>
struct CandidateKeys {
    const Candidates& candidates;
    int lane;
    uint64_t ceiling;

    __device__ uint64_t key(int j) const {
        const int64_t row = candidates.row(j);
        const float x = candidates.score<L>(row, lane);
        const uint64_t key = x > 0.0f ? make_topk_key(x, candidates.node_of[row]) : 0;
        return key < ceiling ? key : 0;
    }
};

constexpr int SELECT_THREADS = 128;
constexpr int SELECT_KEPT = 512;  // hits that a round of selection finds
constexpr int SELECT_ROOM = SELECT_KEPT + KEYS_PER_THREAD * SELECT_THREADS;

// A lane's best candidates, best first, in rounds of SELECT_KEPT: `keys` has room for whole rounds. Returns how many of
// the first `want` there are.
template <int L>
HOPFUSE_DEVICE int64_t select(const Candidates& c, int lane, int64_t want, uint64_t* keys, uint64_t* buffer,
                              int* num_waiting) {
    uint64_t ceiling = ~static_cast<uint64_t>(0);
    int64_t done = 0;
    while (done < want && ceiling != 0) {
        uint64_t* const list = keys + done;
        for (int i = static_cast<int>(threadIdx.x); i < SELECT_KEPT; i += static_cast<int>(blockDim.x)) list[i] = 0;
        const CandidateKeys<L> source = {c, lane, ceiling};
        keep_best(source, 0, static_cast<int>(c.count), list, SELECT_KEPT, SELECT_ROOM, buffer, num_waiting);
        __syncthreads();
        ceiling = list[SELECT_KEPT - 1];
        done += SELECT_KEPT;
    }
    int64_t found = done < want ? done : want;
    while (found > 0 && keys[found - 1] == 0) --found;
    return found;
}

// A lane's hits as hopfuse/ppr_proof.h reads them.
template <int L>
struct DeviceList {
    const uint64_t* keys;
    const int32_t* internal_of;
    const double* unscale;
    int per_lane;
    int lane;

    __device__ float score(int64_t i) const { return topk_key_score(keys[i]); }
    __device__ double degree(int64_t i) const {
        const int64_t row = internal_of[topk_key_row(keys[i])];
        return unscale == nullptr ? 1.0 : unscale[per_lane ? row * L + lane : row];
    }
};

// The largest x_v + 2 e_v over candidates with x_v below the cut, by a whole block with 4 bytes of shared memory a thread.
template <int L>
HOPFUSE_DEVICE float largest_outside(const Candidates& c, int lane, float cut, float per_degree, float flat,
                                     float* best) {
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    float mine = 0.0f;
    for (int64_t i = thread; i < c.count; i += threads) {
        const int64_t row = c.row(i);
        const float x = c.score<L>(row, lane);
        if (x >= cut) continue;
        const float reach = fmaf(c.weight<L>(row, lane), per_degree, x) + flat;
        mine = reach > mine ? reach : mine;
    }
    best[thread] = mine;
    for (int half = threads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half && best[thread + half] > best[thread]) best[thread] = best[thread + half];
    }
    return best[0];  // of use to thread 0 alone
}

}  // namespace hopfuse

using namespace hopfuse;

#define HOPFUSE_CANDIDATES                                                                                          \
    const float *state, int final, const float *degree, int per_lane, const int32_t *node_of, const int32_t *among, \
        int64_t count
#define HOPFUSE_MAKE_CANDIDATES const Candidates candidates = {state, final, degree, per_lane, node_of, among, count}
#define HOPFUSE_LISTS                                                                                              \
    const uint64_t *keys, int64_t stride, const int64_t *found, const int32_t *internal_of, const double *unscale, \
        int per_lane, int64_t k, int64_t count, const double *per_degree, const double *flat
#define HOPFUSE_MAKE_LIST(L, lane) \
    const DeviceList<L> list = {keys + lane * stride, internal_of, unscale, per_lane, lane}

// ppr_forecast_lL: which lanes try a proof after this pass, and the error that their largest |z - y| forecasts.
//   Unit: a lane; a warp, all in one block. Block: 32 L. Shared memory: 0. Registers: <= 64. Bytes: 4 L tiles.
// ppr_select_lL: the best `want` nodes with score > 0 of every lane that tries, best first, as keys; a lane's are
//   `stride` apart from the next one's.
//   Unit: a lane; a block of 128 threads. Block: 128. Shared memory: 8196 bytes. Registers: <= 64.
//   Bytes: (8 + 4) candidates for each 512 hits asked for.
// ppr_prove_lL: how far the lists' own gaps are from proof, and what candidates outside must stay below.
//   Unit: a lane; a thread. Block: 32. Shared memory: 0. Registers: <= 80 (occupancy 25 %). Bytes: 24 k L.
// ppr_outside_lL: the largest score plus twice its error outside each open list.
//   Unit: a lane; a block of 256 threads. Block: 256. Shared memory: 1 KiB. Registers: <= 40. Bytes: 8 L candidates.
// ppr_decide_lL: the shortfall of every list that tries; with `walking` given, ends proven lanes and says when the others
//   try again.
//   Unit: a lane; a thread. Block: 32. Shared memory: 0. Registers: <= 40 (occupancy 25 %). Bytes: 64 L.
// ppr_hit_errors_lL: the error bound of each lane's first k hits, 0 where there are fewer.
//   Unit: a hit; a thread. Block: 256. Shared memory: 0. Registers: <= 40. Bytes: 28 a hit.
#define HOPFUSE_TOPK(L)                                                                                            \
    extern "C" __global__ void __launch_bounds__(32 * L) ppr_forecast_l##L(                                        \
        const float* tiles, int64_t num_tiles, int64_t pass, const double* damping, const int32_t* walking,        \
        const int64_t* next_try, int32_t* tried, double* per_degree, double* flat) {                               \
        const int query = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;           \
        const bool tries = walking[query] != 0 && pass >= next_try[query];                                         \
        const float largest = tries ? max_tiles<L, float>(tiles, num_tiles, 1, query, lane) : 0.0f;                \
        if (lane != 0) return;                                                                                     \
        tried[query] = tries ? 1 : 0;                                                                              \
        const NodeError error = forecast_error(largest, damping[query]);                                           \
        per_degree[query] = error.per_degree;                                                                      \
        flat[query] = error.flat;                                                                                  \
    }                                                                                                              \
    extern "C" __global__ void __launch_bounds__(SELECT_THREADS) ppr_select_l##L(                                  \
        HOPFUSE_CANDIDATES, const int32_t* tried, int64_t want, int64_t stride, uint64_t* keys, int64_t* found) {  \
        __shared__ uint64_t buffer[SELECT_ROOM];                                                                   \
        __shared__ int num_waiting;                                                                                \
        const int lane = static_cast<int>(blockIdx.x);                                                             \
        if (tried[lane] == 0) return;                                                                              \
        HOPFUSE_MAKE_CANDIDATES;                                                                                   \
        const int64_t held = select<L>(candidates, lane, want, keys + lane * stride, buffer, &num_waiting);        \
        if (threadIdx.x == 0) found[lane] = held;                                                                  \
    }                                                                                                              \
    extern "C" __global__ void __launch_bounds__(32)                                                               \
        ppr_prove_l##L(HOPFUSE_LISTS, const int32_t* tried, double* shortfall, int32_t* open, float* cut,          \
                       float* reach_per_degree, float* reach_flat) {                                               \
        const int lane = static_cast<int>(threadIdx.x);                                                            \
        if (lane >= L || tried[lane] == 0) return;                                                                 \
        HOPFUSE_MAKE_LIST(L, lane);                                                                                \
        const NodeError error = {per_degree[lane], flat[lane]};                                                    \
        const ListProof proof = prove_list(list, k, found[lane], count, error);                                    \
        shortfall[lane] = proof.shortfall;                                                                         \
        open[lane] = proof.open ? 1 : 0;                                                                           \
        cut[lane] = proof.open ? list.score(k - 1) : infinite32();                                                 \
        reach_per_degree[lane] = static_cast<float>(2.0 * error.per_degree);                                       \
        reach_flat[lane] = static_cast<float>(2.0 * error.flat);                                                   \
    }                                                                                                              \
    extern "C" __global__ void __launch_bounds__(256)                                                              \
        ppr_outside_l##L(HOPFUSE_CANDIDATES, const int32_t* tried, const int32_t* open, const float* cut,          \
                         const float* reach_per_degree, const float* reach_flat, float* outside) {                 \
        __shared__ float best[256];                                                                                \
        const int lane = static_cast<int>(blockIdx.x);                                                             \
        if (tried[lane] == 0 || open[lane] == 0) return;                                                           \
        HOPFUSE_MAKE_CANDIDATES;                                                                                   \
        const float most =                                                                                         \
            largest_outside<L>(candidates, lane, cut[lane], reach_per_degree[lane], reach_flat[lane], best);       \
        if (threadIdx.x == 0) outside[lane] = most;                                                                \
    }                                                                                                              \
    extern "C" __global__ void __launch_bounds__(32)                                                               \
        ppr_decide_l##L(HOPFUSE_LISTS, const int32_t* tried, const int32_t* open, const float* outside,            \
                        double* shortfall, const double* damping, int64_t pass, int32_t* walking, int64_t* passes, \
                        int64_t* next_try, int32_t* unproven, int32_t* left, int64_t* last_pass) {                 \
        const int lane = static_cast<int>(threadIdx.x);                                                            \
        if (lane >= L || tried[lane] == 0) return;                                                                 \
        if (open[lane] != 0) {                                                                                     \
            HOPFUSE_MAKE_LIST(L, lane);                                                                            \
            const double last = node_error(NodeError{per_degree[lane], flat[lane]}, list.degree(k - 1));           \
            if (!proven_against(list.score(k - 1), last, outside_reach(outside[lane])))                            \
                shortfall[lane] = PPR_OUTSIDE_SHORTFALL;                                                           \
        }                                                                                                          \
        if (walking == nullptr) return;                                                                            \
        if (!(shortfall[lane] < 1.0)) {                                                                            \
            next_try[lane] = next_proof(pass, shortfall[lane], ppr_error_decay(true, damping[lane]));              \
            return;                                                                                                \
        }                                                                                                          \
        walking[lane] = 0;                                                                                         \
        passes[lane] = pass;                                                                                       \
        unproven[lane] = 0;                                                                                        \
        if (atomicSub(left, 1) == 1) *last_pass = pass;                                                            \
    }                                                                                                              \
    extern "C" __global__ void __launch_bounds__(256) ppr_hit_errors_l##L(HOPFUSE_LISTS, double* error) {          \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                            \
        if (at >= k * L) return;                                                                                   \
        const int lane = static_cast<int>(at / k);                                                                 \
        HOPFUSE_MAKE_LIST(L, lane);                                                                                \
        const NodeError own = {per_degree[lane], flat[lane]};                                                      \
        error[at] = at % k < found[lane] ? node_error(own, list.degree(at % k)) : 0.0;                             \
    }

HOPFUSE_TOPK(4)
HOPFUSE_TOPK(8)
HOPFUSE_TOPK(16)
HOPFUSE_TOPK(32)
