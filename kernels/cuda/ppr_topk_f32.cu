// Each query's best nodes, and the proof that they are the best. Contract: hopfuse/ppr.h, PROOF; kernels/cpu/ppr_topk.h gives
// the same bits. L queries lie side by side: state[node][lane].
#include "hopfuse/ppr_plan.h"
#include "hopfuse/ppr_proof.h"
#include "ppr_walk.h"

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

constexpr int SELECT_ROOM = 1024;  // hits in shared memory: the best so far, and new ones
constexpr int SELECT_KEPT = 512;   // hits that a round of selection finds at most

// Sorts `count` hits, a power of two, best first, by a whole block.
HOPFUSE_DEVICE void sort_hits(float* score, int64_t* id, int count) {
    for (int size = 2; size <= count; size *= 2) {
        for (int distance = size / 2; distance > 0; distance /= 2) {
            for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
                const int j = i ^ distance;
                if (j <= i) continue;
                const bool up = (i & size) == 0;
                const bool wrong = ranks_before(score[j], id[j], score[i], id[i]);
                const bool right = ranks_before(score[i], id[i], score[j], id[j]);
                if (up ? wrong : right) {
                    const float s = score[i];
                    score[i] = score[j];
                    score[j] = s;
                    const int64_t d = id[i];
                    id[i] = id[j];
                    id[j] = d;
                }
            }
            __syncthreads();
        }
    }
}

// The best hits strictly after (last_score, last_id), at most SELECT_KEPT, into the front of score and id. Every thread
// gets their number.
template <int L>
HOPFUSE_DEVICE int select_round(const Candidates& c, int lane, float last_score, int64_t last_id, float* score,
                                int64_t* id, int* filled) {
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    if (thread == 0) *filled = 0;
    float worst_score = 0.0f;  // hits have a score above 0; the id makes every one of them better than this
    int64_t worst_id = -1;
    __syncthreads();
    for (int64_t base = 0; base < c.count; base += threads) {
        const int64_t i = base + thread;
        if (i < c.count) {
            const int64_t row = c.row(i), node = c.node_of[row];
            const float x = c.score<L>(row, lane);
            if (x > 0.0f && ranks_before(last_score, last_id, x, node) &&
                ranks_before(x, node, worst_score, worst_id)) {
                const int at = atomicAdd(filled, 1);
                score[at] = x;
                id[at] = node;
            }
        }
        __syncthreads();
        const int held = *filled;
        const bool last = base + threads >= c.count;
        __syncthreads();
        if (!last && held + threads <= SELECT_ROOM) continue;
        int sorted = 1;
        while (sorted < held) sorted *= 2;
        for (int at = held + thread; at < sorted; at += threads) {
            score[at] = -infinite32();
            id[at] = -1;
        }
        __syncthreads();
        sort_hits(score, id, sorted);
        if (held >= SELECT_KEPT) {
            worst_score = score[SELECT_KEPT - 1];
            worst_id = id[SELECT_KEPT - 1];
        }
        if (thread == 0) *filled = held < SELECT_KEPT ? held : SELECT_KEPT;
        __syncthreads();
    }
    return *filled;
}

// A lane's best `want` candidates with score > 0, in rounds.
template <int L>
HOPFUSE_DEVICE void select(const Candidates& c, int lane, int64_t want, float* out_score, int64_t* out_id,
                           int64_t* found, float* score, int64_t* id, int* filled) {
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    int64_t done = 0;
    float last_score = infinite32();
    int64_t last_id = -1;
    while (done < want) {
        const int held = select_round<L>(c, lane, last_score, last_id, score, id, filled);
        const int64_t taken = held < want - done ? held : want - done;
        for (int64_t i = thread; i < taken; i += threads) {
            out_score[lane * want + done + i] = score[i];
            out_id[lane * want + done + i] = id[i];
        }
        done += taken;
        if (held < SELECT_KEPT) break;
        last_score = score[SELECT_KEPT - 1];
        last_id = id[SELECT_KEPT - 1];
        __syncthreads();  // all have read it before the next round begins
    }
    if (thread == 0) found[lane] = done;
}

// A lane's hits as hopfuse/ppr_proof.h reads them.
template <int L>
struct DeviceList {
    const float* scores;
    const int64_t* ids;
    const int32_t* internal_of;
    const double* unscale;
    int per_lane;
    int lane;

    __device__ float score(int64_t i) const { return scores[i]; }
    __device__ double degree(int64_t i) const {
        const int64_t row = internal_of[ids[i]];
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
#define HOPFUSE_LISTS                                                                                                 \
    const float *scores, const int64_t *ids, const int64_t *found, const int32_t *internal_of, const double *unscale, \
        int per_lane, int64_t k, int64_t count, const double *per_degree, const double *flat
#define HOPFUSE_MAKE_LIST(L, lane) \
    const DeviceList<L> list = {scores + lane * (k + 1), ids + lane * (k + 1), internal_of, unscale, per_lane, lane}

// ppr_forecast_lL: which lanes try a proof after this pass, and the error that their largest |z - y| forecasts.
//   Unit: a lane; a warp, all in one block. Block: 32 L. Shared memory: 0. Registers: <= 64. Bytes: 4 L tiles.
// ppr_select_lL: the best `want` nodes with score > 0 of every lane that tries, in order.
//   Unit: a lane; a block of 256 threads. Block: 256. Shared memory: 12292 bytes. Registers: <= 64.
//   Bytes: (8 + 4) candidates for each 512 hits asked for.
// ppr_prove_lL: how far the lists' own gaps are from proof, and what candidates outside must stay below.
//   Unit: a lane; a thread. Block: 32. Shared memory: 0. Registers: <= 80 (occupancy 25 %). Bytes: 24 k L.
// ppr_outside_lL: the largest score plus twice its error outside each open list.
//   Unit: a lane; a block of 256 threads. Block: 256. Shared memory: 1 KiB. Registers: <= 40. Bytes: 8 L candidates.
// ppr_decide_lL: the shortfall of every list that tries; with `walking` given, ends proven lanes and says when the others
//   try again.
//   Unit: a lane; a thread. Block: 32. Shared memory: 0. Registers: <= 40 (occupancy 25 %). Bytes: 64 L.
// ppr_hit_degrees_lL: the degree of every hit, for its score's bound.
//   Unit: a hit; a thread. Block: 256. Shared memory: 0. Registers: <= 32. Bytes: 20 a hit.
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
    extern "C" __global__ void __launch_bounds__(256) ppr_select_l##L(                                             \
        HOPFUSE_CANDIDATES, const int32_t* tried, int64_t want, float* scores, int64_t* ids, int64_t* found) {     \
        __shared__ int64_t id[SELECT_ROOM];                                                                        \
        __shared__ float score[SELECT_ROOM];                                                                       \
        __shared__ int filled;                                                                                     \
        const int lane = static_cast<int>(blockIdx.x);                                                             \
        if (tried[lane] == 0) return;                                                                              \
        HOPFUSE_MAKE_CANDIDATES;                                                                                   \
        select<L>(candidates, lane, want, scores, ids, found, score, id, &filled);                                 \
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
    extern "C" __global__ void __launch_bounds__(256)                                                              \
        ppr_hit_degrees_l##L(const int64_t* ids, const int64_t* found, int64_t want, const int32_t* internal_of,   \
                             const double* unscale, int per_lane, double* degree) {                                \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                            \
        if (at >= want * L) return;                                                                                \
        const int64_t lane = at / want;                                                                            \
        const int64_t row = at % want < found[lane] ? internal_of[ids[at]] : 0;                                    \
        degree[at] = at % want < found[lane] ? unscale[per_lane ? row * L + lane : row] : 1.0;                     \
    }

HOPFUSE_TOPK(4)
HOPFUSE_TOPK(8)
HOPFUSE_TOPK(16)
HOPFUSE_TOPK(32)
