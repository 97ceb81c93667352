// Each query's best nodes, and the proof that they are the best. Contract: hopfuse/ppr.h, PROOF; kernels/cpu/ppr_topk.h gives
// the same bits. L queries are stored side by side: state[node][lane].
#include "hopfuse/ppr_plan.h"
#include "hopfuse/ppr_proof.h"
#include "hopfuse/query_status.h"
#include "ppr_scales.h"
#include "topk_keys.h"

namespace hopfuse {

// The nodes that are ranked, by max(y, 0) deg or, with `final`, by x^ itself.
struct CandidateArguments {
    Iterate iterate;
    int32_t final;
    const float* degree;  // (N,) or (N, L), or null: 1
    int32_t per_lane;
    const int32_t* node_of;
    const int32_t* among;  // (count,) internal nodes, or null: all
    int64_t count;
};

struct Candidates : CandidateArguments {
    const float* state;

    __device__ explicit Candidates(const CandidateArguments& given)
        : CandidateArguments(given), state(given.iterate.state()) {}

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

// A lane's candidates as keys below those of an earlier round, or `parts`, the best keys of each split of them. A node without
// a score is not a hit.
template <int L>
struct CandidateKeys {
    const Candidates& candidates;
    int lane;
    uint64_t ceiling;
    const uint64_t* parts;

    __device__ uint64_t key(int j) const {
        if (parts != nullptr) return parts[j];
        const int64_t row = candidates.row(j);
        const float x = candidates.score<L>(row, lane);
        const uint64_t key = x > 0.0f ? make_topk_key(x, candidates.node_of[row]) : 0;
        return key < ceiling ? key : 0;
    }
};

// Calls take(row, score) for a lane's candidates, by a whole block. A thread's scores are read some turns ahead, so that the
// loads overlap.
template <int L>
struct Scores {
    const Candidates& c;
    int lane;

    template <class Take>
    __device__ void each(const Take& take) const {
        const int64_t threads = blockDim.x;
        float ahead[KEYS_PER_THREAD];
#pragma unroll
        for (int turn = 0; turn < KEYS_PER_THREAD; ++turn) ahead[turn] = at(threadIdx.x + turn * threads);
        HOPFUSE_ROLLED
        for (int64_t i = threadIdx.x; i < c.count; i += threads) {
            const float score = ahead[0];
#pragma unroll
            for (int turn = 1; turn < KEYS_PER_THREAD; ++turn) ahead[turn - 1] = ahead[turn];
            ahead[KEYS_PER_THREAD - 1] = at(i + KEYS_PER_THREAD * threads);
            take(c.row(i), score);
        }
    }

private:
    __device__ float at(int64_t i) const { return i < c.count ? c.score<L>(c.row(i), lane) : 0.0f; }
};

constexpr int SELECT_THREADS = 128;
constexpr int SELECT_KEPT = 512;  // the most hits that a round of selection finds
constexpr int SELECT_ROOM = SELECT_KEPT + KEYS_PER_THREAD * SELECT_THREADS;

// Where a lane's best keys are written, and how many a round finds: few if few are requested, which leaves space for waiting
// keys, so that they are seldom sorted.
struct Rounds {
    uint64_t* keys;  // (L, stride), with space for whole rounds
    int64_t stride;
    int32_t kept;
    const uint64_t* parts;  // (L, splits, kept) the best of each split of the candidates, or null: read all candidates
    int32_t splits;

    __device__ uint64_t* list(int lane) const { return keys + lane * stride; }
    __device__ const uint64_t* parts_of(int lane) const {
        return parts == nullptr ? nullptr : parts + static_cast<int64_t>(lane) * splits * kept;
    }
};

template <int L>
HOPFUSE_DEVICE void find_best(const CandidateKeys<L>& source, int begin, int end, uint64_t* list, int kept,
                              uint64_t* buffer, int* num_waiting) {
    keep_best(source, begin, end, list, true, kept, SELECT_ROOM, buffer, num_waiting);
}

// A lane's best candidates, best first. Returns how many of the first `want` exist.
template <int L>
HOPFUSE_DEVICE int64_t select(const Candidates& c, int lane, int64_t want, const Rounds& rounds, uint64_t* buffer,
                              int* num_waiting) {
    const int kept = rounds.kept, keys = rounds.parts == nullptr ? static_cast<int>(c.count) : rounds.splits * kept;
    uint64_t* const best = rounds.list(lane);
    const uint64_t* const parts = rounds.parts_of(lane);
    uint64_t ceiling = ~static_cast<uint64_t>(0);
    int64_t done = 0;
    while (done < want && ceiling != 0) {
        uint64_t* const list = best + done;
        const CandidateKeys<L> source = {c, lane, ceiling, parts};  // one round is enough for parts
        find_best(source, 0, keys, list, kept, buffer, num_waiting);
        __syncthreads();
        ceiling = list[kept - 1];
        done += kept;
    }
    int64_t found = done < want ? done : want;
    while (found > 0 && best[found - 1] == 0) --found;
    return found;
}

// What shows that two nodes have equal scores, or that a node has none: the entries of rows, and the restarts.
struct TwinTables {
    const int64_t* indptr;
    const int32_t* indices;
    const float* weight;
    const uint8_t* edge_type;
    const float* mask;        // (N, L) or null
    const float* attraction;  // (N, L) node weights, or null: all 1
    RowSet restart_rows;
    const double* restart;  // (rows, L)

    template <int L>
    __device__ bool restarts(int64_t row, int lane) const {
        return restart_rows.holds(row) && restart[restart_rows.index(row) * L + lane] > 0.0;
    }

    template <int L>
    __device__ bool are_twins(int64_t row, int64_t other, int lane) const {
        if (restarts<L>(row, lane) || restarts<L>(other, lane)) return false;
        if (node_weight<L>(row, lane) != node_weight<L>(other, lane)) return false;
        return have_equal_entries(rows<L>(lane), row, other);
    }

    template <int L>
    __device__ float node_weight(int64_t row, int lane) const {
        return attraction == nullptr ? 1.0f : attraction[row * L + lane];
    }

    // Whether a node is not an empty place.
    template <int L>
    __device__ bool may_hold_mass(int64_t row, int lane) const {
        return restarts<L>(row, lane) || has_entries(rows<L>(lane), row);
    }

    template <int L>
    __device__ QueryRows rows(int lane) const {
        return {indptr, indices, weight, edge_type, mask == nullptr ? nullptr : mask + lane, L};
    }
};

// How the best are selected and proven.
struct ListArguments {
    Rounds rounds;
    const int32_t* internal_of;
    const double* unscale;
    const float* locals;  // (N, L) the part of the error that is specific to each node, or null
    int64_t k;
    int32_t order;  // whether the order is proven too
    TwinTables twins;
};

// A lane's hits in the form that hopfuse/ppr_proof.h reads.
template <int L>
struct DeviceList {
    const uint64_t* keys;
    const int32_t* internal_of;
    const double* unscale;
    const float* locals;
    int per_lane;
    int lane;
    const TwinTables& twins;

    __device__ DeviceList(const ListArguments& of, int lanes_differ, int own)
        : keys(of.rounds.list(own)), internal_of(of.internal_of), unscale(of.unscale), locals(of.locals),
          per_lane(lanes_differ), lane(own), twins(of.twins) {}

    __device__ int64_t row(int64_t i) const { return internal_of[topk_key_row(keys[i])]; }
    __device__ bool are_twins(int64_t i) const { return twins.are_twins<L>(row(i - 1), row(i), lane); }
    __device__ float score(int64_t i) const { return topk_key_score(keys[i]); }
    __device__ double weight(int64_t row) const { return static_cast<double>(twins.node_weight<L>(row, lane)); }
    __device__ double local(int64_t i) const {
        const int64_t row = this->row(i);
        return locals == nullptr ? 0.0 : PPR_NEAR * static_cast<double>(locals[row * L + lane]) / weight(row);
    }
    __device__ double degree(int64_t i) const {
        const int64_t row = this->row(i);
        return unscale == nullptr ? 1.0 : weight(row) * unscale[per_lane ? row * L + lane : row];
    }
};

// Whether every candidate that is not an empty place has a score above 0. Called by a whole block.
template <int L>
HOPFUSE_DEVICE bool are_all_hits(const Candidates& c, const DeviceList<L>& list) {
    int other = 0;
    const Scores<L> scores = {c, list.lane};
    scores.each([&](int64_t row, float x) {
        if (!(x > 0.0f) && list.twins.template may_hold_mass<L>(row, list.lane)) other = 1;
    });
    return __syncthreads_or(other) == 0;
}

// The largest x_v + 2 e_v without its term 2 relative x_v, at least 0, over candidates with x_v below the last hit's. Infinity
// if `tied` and a candidate has the score of the last hit but is not its twin; minus infinity if all others are empty places.
// Called by a whole block; thread 0 gets the result.
template <int L>
HOPFUSE_DEVICE float largest_outside(const Candidates& c, const DeviceList<L>& list, int64_t last, bool tied,
                                     NodeError error, float* best) {
    const int lane = list.lane;
    const float cut = list.score(last);
    const int64_t last_id = topk_key_row(list.keys[last]), last_row = list.row(last);
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    const float per_degree = round_above(2.0 * error.per_degree), flat = round_above(2.0 * error.flat);
    float mine = -infinite32();
    const Scores<L> scores = {c, lane};
    scores.each([&](int64_t row, float x) {
        const bool shares = tied && x == cut && c.node_of[row] > last_id;
        if (x >= cut && !(shares && !list.twins.template are_twins<L>(row, last_row, lane))) return;
        if (!(x > 0.0f) && !list.twins.template may_hold_mass<L>(row, lane)) return;
        const float own = list.locals == nullptr ? 0.0f : list.locals[row * L + lane];
        const float all =
            list.twins.attraction == nullptr
                ? per_degree
                : fmaf(per_degree, list.twins.template node_weight<L>(row, lane), static_cast<float>(PPR_LEAST));
        const float share = fmaf(static_cast<float>(2.0 * PPR_NEAR), own, all);
        const float bounded = fmaf(c.weight<L>(row, lane), share, x) + flat;
        const float reach = x >= cut ? infinite32() : bounded > 0.0f ? bounded : 0.0f;
        mine = reach > mine ? reach : mine;
    });
    best[thread] = mine;
    for (int half = threads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half && best[thread + half] > best[thread]) best[thread] = best[thread + half];
    }
    return thread == 0 ? best[0] : mine;  // other threads may not read it: thread 0 has just written it
}

// What a block's threads exchange about their lane.
struct Shared {
    uint64_t buffer[SELECT_ROOM];
    float best[SELECT_THREADS];
    int num_waiting;
    NodeError error;
    int64_t found;
    bool open, tied;
};

// Ranks a lane's candidates into `list`, k + 1 of them to detect a tie, and proves the first k; by a whole block. Thread 0
// gets how far the list is from proof; below 1 it is proven.
template <int L>
HOPFUSE_DEVICE double rank_and_prove(const Candidates& c, const DeviceList<L>& list, const ListArguments& of,
                                     Shared* shared) {
    const int64_t k = of.k;
    const int64_t found = select<L>(c, list.lane, k + 1, of.rounds, shared->buffer, &shared->num_waiting);
    const bool is_all = found < k && are_all_hits<L>(c, list);
    const NodeError error = error_to_outlast(shared->error);
    ListProof proof = {0.0, 0.0, false, false};
    if (threadIdx.x == 0) {
        proof = prove_list(list, k, found, c.count, is_all, error, of.order != 0);
        shared->found = found;
        shared->open = proof.open;
        shared->tied = proof.tied;
    }
    __syncthreads();
    if (!shared->open) return proof.shortfall;
    const float outside = largest_outside<L>(c, list, k - 1, shared->tied, error, shared->best);
    if (threadIdx.x != 0) return 0.0;
    return proof.least > outside_reach(outside, error) ? proof.shortfall : PPR_OUTSIDE_SHORTFALL;
}

// Where the answers of a batch are written, (B, width) and (B,).
struct Answers {
    int64_t width;
    int64_t* ids;
    float* scores;
    float* score_bounds;
    int64_t* counts;
    uint8_t* proven;
    int64_t* iterations;
    double* residual;
    double* bound;
    uint8_t* converged;
    int32_t* status;
    double* shortfall;
};

struct SelectArguments {
    CandidateArguments candidates;
    const int32_t* walking;   // (L,) or null: every lane
    const int64_t* next_try;  // (L,)
    int64_t number;           // of the pass
    int32_t kept, splits;
    uint64_t* parts;  // (L, splits, kept)
};

struct TryArguments {
    CandidateArguments candidates;
    ListArguments list;
    const double* measured;  // (2, L) by the pass
    int64_t number;          // of the pass
    const double* damping;   // (L,) and so on
    const int32_t* accelerates;
    int32_t* walking;
    int64_t* passes;
    int64_t* next_try;
    int32_t* unproven;
    int32_t* left;       // (1,)
    int64_t* last_pass;  // (1,)
};

struct FinishArguments {
    CandidateArguments candidates;
    ListArguments list;
    const double *slack, *residual, *bound, *per_degree;  // (L,) and so on
    const int64_t* polished;                              // float64 steps, or null: none
    int32_t refined;
    const int32_t* walking;
    const int64_t *limit, *passes;
    const int32_t* seed_status;
    double tol;
    const int64_t* rows;  // of the answers; -1: none
    int32_t goes_on;
    Answers answers;
};

// Ends or schedules a lane after its try. Called by one thread.
HOPFUSE_DEVICE void end_try(const TryArguments& a, int lane, double shortfall) {
    if (!(shortfall < 1.0)) {
        const double decay = ppr_error_decay(a.accelerates[lane] != 0, a.damping[lane]);
        a.next_try[lane] = next_proof(a.number, shortfall, decay);
        return;
    }
    a.walking[lane] = 0;
    a.passes[lane] = a.number;
    a.unproven[lane] = 0;
    if (atomicSub(a.left, 1) == 1) *a.last_pass = a.number;
}

HOPFUSE_DEVICE NodeError final_error(const FinishArguments& a, const Certificate& own, int lane) {
    if (a.refined != 0) return ppr_refined_error(own.per_degree);
    if (a.list.locals != nullptr) return ppr_local_error(own.per_degree, a.slack[lane]);
    return ppr_final_error(own.bound, own.per_degree);
}

// Called by one thread.
HOPFUSE_DEVICE void write_evidence(const FinishArguments& a, const Certificate& own, int lane, int64_t held,
                                   double shortfall) {
    const Answers& out = a.answers;
    const int64_t row = a.rows[lane];
    const bool is_met = own.bound <= a.tol, is_empty = a.limit[lane] == 0;
    out.counts[row] = held;
    out.proven[row] = shortfall < 1.0 || is_empty ? 1 : 0;
    out.shortfall[row] = is_empty ? 0.0 : shortfall;
    const int64_t before = a.goes_on != 0 ? out.iterations[row] : 0;
    const int64_t polished = a.polished == nullptr ? 0 : a.polished[lane];
    out.iterations[row] = before + (is_empty ? 0 : a.passes[lane] + 1 + polished);
    out.residual[row] = is_empty ? 0.0 : own.residual;
    out.bound[row] = is_empty ? 0.0 : own.bound;
    out.converged[row] = is_met || is_empty ? 1 : 0;
    const int32_t known = is_empty || (is_met && a.walking[lane] == 0) ? status_complete : status_incomplete;
    out.status[row] = a.seed_status[lane] < known ? a.seed_status[lane] : known;
}

template <int L>
HOPFUSE_DEVICE void write_hits(const Answers& out, int64_t row, const DeviceList<L>& list, int64_t held, double bound,
                               NodeError error) {
    for (int64_t i = threadIdx.x; i < out.width; i += blockDim.x) {
        const int64_t at = row * out.width + i;
        const bool is_hit = i < held;
        out.ids[at] = is_hit ? topk_key_row(list.keys[i]) : -1;
        out.scores[at] = is_hit ? list.score(i) : -infinite32();
        const double score = is_hit ? static_cast<double>(list.score(i)) : 0.0;
        const double own = is_hit ? node_error(error, list.local(i), list.degree(i), score) : 0.0;
        out.score_bounds[at] = is_hit ? round_above(own < bound ? own : bound) : 0.0f;
    }
}

}  // namespace hopfuse

using namespace hopfuse;

// ppr_select_lL: for many candidates, the best `kept` of each of their splits, which ppr_try (for lanes whose turn it is)
//   or ppr_finish then read.
//   Unit: a lane and a split; a block. Block: 128. Shared memory: 8448 bytes. Registers: <= 64 (occupancy 25 %).
//   Bytes: 12 candidates, 8 kept a split.
// ppr_try_lL: after a pass, ranks the iterate that the pass read in each lane whose turn it is, with the error estimated
//   from its largest |z - y|. A proven lane ends with that iterate; the next try of the others is scheduled.
//   Unit: a lane; a block. Block: 128. Shared memory: 8960 bytes. Registers: <= 80 (occupancy 25 %).
//   Bytes: 20 candidates, (8 + 4) candidates and 12 KiB of keys for each 512 requested hits, 24 k.
// ppr_finish_lL: writes each lane's best k of x^ and their evidence to the query's row of the answers. `refined`: x^ is a
//   rounded sum. With `locals` these are part of each error and `per_degree` the rest. `goes_on`: iterations are added to
//   earlier ones.
//   Unit: a lane; a block. Block: 128. Shared memory: 8960 bytes. Registers: <= 80 (occupancy 25 %).
//   Bytes: as ppr_try; 20 k written.
#define HOPFUSE_TOPK(L)                                                                                            \
    extern "C" __global__ void __launch_bounds__(SELECT_THREADS) ppr_select_l##L(const SelectArguments a) {        \
        __shared__ uint64_t buffer[SELECT_ROOM];                                                                   \
        __shared__ int num_waiting;                                                                                \
        const int lane = static_cast<int>(blockIdx.x % L);                                                         \
        const int64_t split = blockIdx.x / L;                                                                      \
        if (a.walking != nullptr && (a.walking[lane] == 0 || a.number < a.next_try[lane])) return;                 \
        const Candidates candidates(a.candidates);                                                                 \
        const int64_t count = candidates.count, begin = split * count / a.splits;                                  \
        const CandidateKeys<L> source = {candidates, lane, ~static_cast<uint64_t>(0), nullptr};                    \
        find_best(source, static_cast<int>(begin), static_cast<int>((split + 1) * count / a.splits),               \
                  a.parts + (lane * a.splits + split) * a.kept, a.kept, buffer, &num_waiting);                     \
    }                                                                                                              \
    extern "C" __global__ void __launch_bounds__(SELECT_THREADS, 6) ppr_try_l##L(const TryArguments a) {           \
        __shared__ Shared shared;                                                                                  \
        const int lane = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);                     \
        if (a.walking[lane] == 0 || a.number < a.next_try[lane]) return;                                           \
        const Candidates candidates(a.candidates);                                                                 \
        const DeviceList<L> list(a.list, candidates.per_lane, lane);                                               \
        if (thread == 0) shared.error = forecast_error(static_cast<float>(a.measured[L + lane]), a.damping[lane]); \
        __syncthreads();                                                                                           \
        const double shortfall = rank_and_prove<L>(candidates, list, a.list, &shared);                             \
        if (thread == 0) end_try(a, lane, shortfall);                                                              \
    }                                                                                                              \
    extern "C" __global__ void __launch_bounds__(SELECT_THREADS, 6) ppr_finish_l##L(const FinishArguments a) {     \
        __shared__ Shared shared;                                                                                  \
        __shared__ Certificate own;                                                                                \
        const int lane = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);                     \
        if (a.rows[lane] < 0) return;                                                                              \
        const Candidates candidates(a.candidates);                                                                 \
        const DeviceList<L> list(a.list, candidates.per_lane, lane);                                               \
        if (thread == 0) {                                                                                         \
            own = Certificate{a.residual[lane], a.bound[lane], a.per_degree[lane]};                                \
            shared.error = final_error(a, own, lane);                                                              \
            shared.found = 0;                                                                                      \
        }                                                                                                          \
        __syncthreads();                                                                                           \
        const double shortfall = a.list.k > 0 ? rank_and_prove<L>(candidates, list, a.list, &shared) : 0.0;        \
        __syncthreads();                                                                                           \
        const int64_t held = shared.found < a.list.k ? shared.found : a.list.k;                                    \
        write_hits<L>(a.answers, a.rows[lane], list, held, own.bound, shared.error);                               \
        if (thread == 0) write_evidence(a, own, lane, held, shortfall);                                            \
    }

HOPFUSE_TOPK(4)
HOPFUSE_TOPK(8)
HOPFUSE_TOPK(16)
HOPFUSE_TOPK(32)
