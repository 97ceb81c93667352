// Each query's best nodes, and the proof that they are the best. Contract: hopfuse/ppr.h, PROOF; kernels/cpu/ppr_topk.h gives
// the same bits. L queries are stored side by side: state[node][lane]. L is an argument here, so that each kernel is compiled once.
#include "arguments/ppr_topk_f32.h"
#include "hopfuse/ppr_plan.h"
#include "hopfuse/ppr_proof.h"
#include "hopfuse/query_status.h"
#include "ppr_scales.h"
#include "topk_keys.h"

namespace hopfuse {

struct Candidates : CandidateArguments {
    const float* state;

    __device__ explicit Candidates(const CandidateArguments& given)
        : CandidateArguments(given), state(state_of(given.iterate)) {}

    __device__ int64_t row(int64_t i) const { return among == nullptr ? i : among[i]; }

    __device__ float weight(int64_t row, int lane) const {
        return degree == nullptr ? 1.0f : degree[per_lane ? row * lanes + lane : row];
    }

    __device__ float score(int64_t row, int lane) const {
        const float value = state[row * lanes + lane];
        return final ? value : (value > 0.0f ? value : 0.0f) * weight(row, lane);
    }
};

// A lane's candidates as keys below those of an earlier round, or `parts`, the best keys of each split of them. A node without
// a score is not a hit.
struct CandidateKeys {
    const Candidates& candidates;
    int lane;
    uint64_t ceiling;
    const uint64_t* parts;

    __device__ uint64_t key(int j) const {
        if (parts != nullptr) return parts[j];
        const int64_t row = candidates.row(j);
        const float x = candidates.score(row, lane);
        const uint64_t key = x > 0.0f ? make_topk_key(x, candidates.node_of[row]) : 0;
        return key < ceiling ? key : 0;
    }
};

// Calls take(row, score) for a lane's candidates begin .. end - 1, by a whole block. A thread's scores are read some turns
// ahead, so that the loads overlap.
struct Scores {
    const Candidates& c;
    int lane;
    int64_t begin, end;

    template <class Take>
    __device__ void each(const Take& take) const {
        const int64_t threads = blockDim.x;
        float ahead[KEYS_PER_THREAD];
#pragma unroll
        for (int turn = 0; turn < KEYS_PER_THREAD; ++turn) ahead[turn] = at(begin + threadIdx.x + turn * threads);
        HOPFUSE_ROLLED
        for (int64_t i = begin + threadIdx.x; i < end; i += threads) {
            const float score = ahead[0];
#pragma unroll
            for (int turn = 1; turn < KEYS_PER_THREAD; ++turn) ahead[turn - 1] = ahead[turn];
            ahead[KEYS_PER_THREAD - 1] = at(i + KEYS_PER_THREAD * threads);
            take(c.row(i), score);
        }
    }

private:
    __device__ float at(int64_t i) const { return i < end ? c.score(c.row(i), lane) : 0.0f; }
};

constexpr int SELECT_ROOM = SELECT_KEPT + KEYS_PER_THREAD * SELECT_THREADS;

HOPFUSE_DEVICE uint64_t* list_of(const SelectionRounds& rounds, int lane) { return rounds.keys + lane * rounds.stride; }

HOPFUSE_DEVICE uint64_t* parts_of(const SelectionRounds& rounds, int lane, int splits) {
    if (rounds.parts == nullptr) return nullptr;
    return rounds.parts + static_cast<int64_t>(lane) * splits * rounds.kept;
}

// A block's part of a lane's candidates: `split` of `splits`, candidates begin .. end - 1.
struct Split {
    int lane, split, splits;
    int64_t begin, end;

    __device__ Split(int lanes, int32_t of, int64_t count)
        : lane(static_cast<int>(blockIdx.x) % lanes), split(static_cast<int>(blockIdx.x) / lanes), splits(of),
          begin(split * count / of), end((split + 1) * count / of) {}

    // Whether the block is the last one of its lane; it may read what the others wrote.
    __device__ bool is_last(unsigned* arrived, bool* shared) const {
        return splits == 1 || is_last_block(arrived + lane, static_cast<unsigned>(splits), shared);
    }
    __device__ int64_t place() const { return place(split); }
    __device__ int64_t place(int other) const { return static_cast<int64_t>(lane) * splits + other; }
};

HOPFUSE_DEVICE void find_best(const CandidateKeys& source, int64_t begin, int64_t end, uint64_t* list, int kept,
                              uint64_t* buffer, int* num_waiting) {
    keep_best(source, static_cast<int>(begin), static_cast<int>(end), list, true, kept, SELECT_ROOM, buffer,
              num_waiting);
}

// A lane's best candidates, best first. Returns how many of the first `want` exist.
HOPFUSE_DEVICE int64_t select(const Candidates& c, const Split& own, int64_t want, const SelectionRounds& rounds,
                              uint64_t* buffer, int* num_waiting) {
    const int kept = rounds.kept, lane = own.lane;
    const int keys = rounds.parts == nullptr ? static_cast<int>(c.count) : own.splits * kept;
    uint64_t* const best = list_of(rounds, lane);
    const uint64_t* const parts = parts_of(rounds, lane, own.splits);
    uint64_t ceiling = ~static_cast<uint64_t>(0);
    int64_t done = 0;
    while (done < want && ceiling != 0) {
        uint64_t* const list = best + done;
        const CandidateKeys source = {c, lane, ceiling, parts};  // one round is enough for parts
        find_best(source, 0, keys, list, kept, buffer, num_waiting);
        __syncthreads();
        ceiling = list[kept - 1];
        done += kept;
    }
    int64_t found = done < want ? done : want;
    while (found > 0 && best[found - 1] == 0) --found;
    return found;
}

HOPFUSE_DEVICE bool restarts(const TwinTables& t, int64_t row, int lane) {
    return holds_row(t.restart_rows.words, row) && t.restart[index_of_row(t.restart_rows, row) * t.lanes + lane] > 0.0;
}

HOPFUSE_DEVICE float node_weight(const TwinTables& t, int64_t row, int lane) {
    return t.attraction == nullptr ? 1.0f : t.attraction[row * t.lanes + lane];
}

HOPFUSE_DEVICE QueryRows query_rows(const TwinTables& t, int lane) {
    return {t.indptr, t.indices, t.weight, t.edge_type, t.mask == nullptr ? nullptr : t.mask + lane, t.lanes};
}

// A lane's query in the form that hopfuse/ppr_proof.h reads.
struct LaneQuery {
    const TwinTables& tables;
    int lane;

    __device__ bool restarts(int64_t row) const { return hopfuse::restarts(tables, row, lane); }
    __device__ float node_weight(int64_t row) const { return hopfuse::node_weight(tables, row, lane); }
};

HOPFUSE_DEVICE bool are_twins(const TwinTables& t, int64_t row, int64_t other, int lane) {
    return have_equal_scores(query_rows(t, lane), LaneQuery{t, lane}, row, other, t.symmetric != 0);
}

// Whether a node is not an empty place.
HOPFUSE_DEVICE bool may_hold_mass(const TwinTables& t, int64_t row, int lane) {
    return restarts(t, row, lane) || has_entries(query_rows(t, lane), row);
}

// What hopfuse/ppr_proof.h reads of a hit.
struct Listed {
    double local, degree;
    float score;
};

// Of each list, the first hits are read by all threads at once; a chain of loads by one thread would take longer than the rest.
constexpr int LISTED_AT_ONCE = 256;

// A lane's hits in the form that hopfuse/ppr_proof.h reads.
struct DeviceList {
    const uint64_t* keys;
    const int32_t* internal_of;
    const double* unscale;
    const float* locals;
    int per_lane;
    int lane;
    const TwinTables& twins;

    __device__ DeviceList(const ListArguments& of, int lanes_differ, int own)
        : keys(list_of(of.rounds, own)), internal_of(of.internal_of), unscale(of.unscale), locals(of.locals),
          per_lane(lanes_differ), lane(own), twins(of.twins) {}

    __device__ int64_t row(int64_t i) const { return internal_of[topk_key_row(keys[i])]; }
    __device__ bool are_twins(int64_t i) const { return hopfuse::are_twins(twins, row(i - 1), row(i), lane); }
    __device__ float score(int64_t i) const { return topk_key_score(keys[i]); }
    __device__ double weight(int64_t row) const { return static_cast<double>(node_weight(twins, row, lane)); }
    __device__ double local(int64_t i) const {
        const int64_t row = this->row(i);
        return locals == nullptr ? 0.0 : PPR_NEAR * static_cast<double>(locals[row * twins.lanes + lane]) / weight(row);
    }
    __device__ double degree(int64_t i) const {
        const int64_t row = this->row(i);
        return unscale == nullptr ? 1.0 : weight(row) * unscale[per_lane ? row * twins.lanes + lane : row];
    }
    __device__ Listed listed(int64_t i) const { return Listed{local(i), degree(i), score(i)}; }
};

// The same hits, of which the first are in shared memory.
struct SharedList {
    const DeviceList& all;
    const Listed* first;

    __device__ Listed at(int64_t i) const { return i < LISTED_AT_ONCE ? first[i] : all.listed(i); }
    __device__ bool are_twins(int64_t i) const { return all.are_twins(i); }
    __device__ float score(int64_t i) const { return at(i).score; }
    __device__ double local(int64_t i) const { return at(i).local; }
    __device__ double degree(int64_t i) const { return at(i).degree; }
};

// Whether a candidate that is not an empty place has no score above 0. Called by a whole block.
HOPFUSE_DEVICE bool has_others(const Candidates& c, const DeviceList& list, int64_t begin, int64_t end) {
    int other = 0;
    const Scores scores = {c, list.lane, begin, end};
    scores.each([&](int64_t row, float x) {
        if (!(x > 0.0f) && may_hold_mass(list.twins, row, list.lane)) other = 1;
    });
    return __syncthreads_or(other) != 0;
}

// The largest value of a block's threads, for thread 0.
HOPFUSE_DEVICE float largest_of_block(float mine, float* values) {
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    values[thread] = mine;
    for (int half = threads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half && values[thread + half] > values[thread]) values[thread] = values[thread + half];
    }
    return thread == 0 ? values[0] : mine;  // other threads may not read it: thread 0 has just written it
}

// The largest x_v + 2 e_v without its term 2 relative x_v, at least 0, over those of a split's candidates with x_v below the
// last hit's. Infinity if `tied` and a candidate has the score of the last hit but is not its twin; minus infinity if all
// others are empty places. Called by a whole block; thread 0 gets the result.
HOPFUSE_DEVICE float largest_outside(const Candidates& c, const DeviceList& list, const Split& own, int64_t last,
                                     bool tied, NodeError error, float* best) {
    const int lane = list.lane;
    const float cut = list.score(last);
    const int64_t last_id = topk_key_row(list.keys[last]), last_row = list.row(last);
    const float per_degree = round_above(2.0 * error.per_degree), flat = round_above(2.0 * error.flat);
    float mine = -infinite32();
    const Scores scores = {c, lane, own.begin, own.end};
    scores.each([&](int64_t row, float x) {
        const bool shares = tied && x == cut && c.node_of[row] > last_id;
        if (x >= cut && !(shares && !are_twins(list.twins, row, last_row, lane))) return;
        if (!(x > 0.0f) && !may_hold_mass(list.twins, row, lane)) return;
        const float local = list.locals == nullptr ? 0.0f : list.locals[row * c.lanes + lane];
        const float all = list.twins.attraction == nullptr
                              ? per_degree
                              : fmaf(per_degree, node_weight(list.twins, row, lane), static_cast<float>(PPR_LEAST));
        const float share = fmaf(static_cast<float>(2.0 * PPR_NEAR), local, all);
        const float bounded = fmaf(c.weight(row, lane), share, x) + flat;
        const float reach = x >= cut ? infinite32() : bounded > 0.0f ? bounded : 0.0f;
        mine = reach > mine ? reach : mine;
    });
    return largest_of_block(mine, best);
}

HOPFUSE_DEVICE bool takes_part(const LaneTurn& turn, int lane) {
    if (turn.rows != nullptr) return turn.rows[lane] >= 0;
    return turn.walking[lane] != 0 && turn.number >= turn.next_try[lane];
}

HOPFUSE_DEVICE NodeError error_of(const ErrorArguments& e, int lane) {
    if (e.measured != nullptr) return forecast_error(static_cast<float>(e.measured[e.lanes + lane]), e.damping[lane]);
    if (e.refined != 0) return ppr_refined_error(e.per_degree[lane]);
    return ppr_final_error(e.bound[lane], e.per_degree[lane]);
}

HOPFUSE_DEVICE void put_proof(const ListProofs& to, int lane, const NodeError& error, const ListProof& proof,
                              int64_t hits) {
    to.errors[lane] = error.per_degree;
    to.errors[to.lanes + lane] = error.flat;
    to.errors[2 * to.lanes + lane] = error.relative;
    to.evidence[lane] = proof.shortfall;
    to.evidence[to.lanes + lane] = proof.least;
    to.found[lane] = hits;
    to.flags[lane] = proof.open ? 1 : 0;
    to.flags[to.lanes + lane] = proof.tied ? 1 : 0;
}

HOPFUSE_DEVICE NodeError kept_error(const ListProofs& of, int lane) {
    return NodeError{of.errors[lane], of.errors[of.lanes + lane], of.errors[2 * of.lanes + lane]};
}

HOPFUSE_DEVICE ListProof kept_proof(const ListProofs& of, int lane) {
    return ListProof{of.evidence[lane], of.evidence[of.lanes + lane], of.flags[lane] != 0,
                     of.flags[of.lanes + lane] != 0};
}

// What a block's threads exchange about their lane.
struct RankShared {
    union {
        uint64_t buffer[SELECT_ROOM];
        Listed listed[LISTED_AT_ONCE];  // after the selection
    };
    int num_waiting;
    bool is_last;
};

// Ranks a lane's candidates into its list, k + 1 of them to detect a tie, and proves as much as the first k show; by a block
// for each split.
HOPFUSE_DEVICE void rank(const RankArguments& a, RankShared* shared) {
    const Candidates c(a.candidates);
    const Split own(c.lanes, a.splits, c.count);
    const int lane = own.lane;
    if (!takes_part(a.turn, lane)) return;
    const SelectionRounds& rounds = a.list.rounds;
    const DeviceList list(a.list, c.per_lane, lane);
    if (rounds.parts != nullptr) {
        uint64_t* const part = parts_of(rounds, lane, own.splits) + static_cast<int64_t>(own.split) * rounds.kept;
        const CandidateKeys source = {c, lane, ~static_cast<uint64_t>(0), nullptr};
        find_best(source, own.begin, own.end, part, rounds.kept, shared->buffer, &shared->num_waiting);
        __syncthreads();
        const bool full = part[rounds.kept - 1] != 0;  // more than k hits
        const bool other = !full && has_others(c, list, own.begin, own.end);
        if (threadIdx.x == 0) a.others[own.place()] = other ? 1 : 0;
        if (!own.is_last(a.arrived, &shared->is_last)) return;
    }
    const int64_t k = a.list.k;
    const int64_t found = select(c, own, k + 1, rounds, shared->buffer, &shared->num_waiting);
    bool is_all = found < k;
    if (is_all && rounds.parts == nullptr) is_all = !has_others(c, list, 0, c.count);
    if (is_all && rounds.parts != nullptr) {
        int other = 0;
        for (int split = static_cast<int>(threadIdx.x); split < own.splits; split += static_cast<int>(blockDim.x))
            other |= a.others[own.place(split)];
        is_all = __syncthreads_or(other) == 0;
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < found && i < LISTED_AT_ONCE; i += blockDim.x) shared->listed[i] = list.listed(i);
    __syncthreads();
    if (threadIdx.x != 0) return;
    const NodeError error = error_of(a.error, lane);
    const SharedList hits = {list, shared->listed};
    const ListProof proof = prove_list(hits, k, found, c.count, is_all, error_to_outlast(error), a.list.order != 0);
    put_proof(a.proofs, lane, error, proof, found);
}

struct OutsideShared {
    float best[SELECT_THREADS];
    bool is_last;
};

// Looks at the candidates outside a lane's list, by a block for each split. True in the lane's last block, whose thread 0 gets
// how far the list is from proof; below 1 it is proven.
HOPFUSE_DEVICE bool look_outside(const OutsideArguments& a, const DeviceList& list, const Candidates& c,
                                 const Split& own, OutsideShared* shared, double* shortfall) {
    if (a.list.k == 0) {  // nothing was ranked
        *shortfall = 0.0;
        return own.split == 0;
    }
    const NodeError error = error_to_outlast(kept_error(a.proofs, own.lane));
    const ListProof proof = kept_proof(a.proofs, own.lane);
    float outside = -infinite32();
    if (proof.open) outside = largest_outside(c, list, own, a.list.k - 1, proof.tied, error, shared->best);
    if (own.splits > 1) {
        if (threadIdx.x == 0) a.largest[own.place()] = outside;
        if (!own.is_last(a.arrived, &shared->is_last)) return false;
        outside = -infinite32();
        for (int split = static_cast<int>(threadIdx.x); split < own.splits; split += static_cast<int>(blockDim.x)) {
            const float other = a.largest[own.place(split)];
            outside = other > outside ? other : outside;
        }
        outside = largest_of_block(outside, shared->best);
    }
    const bool holds = !proof.open || proof.least > outside_reach(outside, error);
    *shortfall = holds ? proof.shortfall : PPR_OUTSIDE_SHORTFALL;
    return true;
}

// Ends or schedules a lane after its try. Called by one thread.
HOPFUSE_DEVICE void end_try(const TryArguments& a, int lane, double shortfall) {
    const int64_t number = a.outside.turn.number;
    if (!(shortfall < 1.0)) {
        const double decay = ppr_error_decay(a.accelerates[lane] != 0, a.damping[lane]);
        a.next_try[lane] = next_proof(number, shortfall, decay);
        return;
    }
    a.walking[lane] = 0;
    a.passes[lane] = number;
    a.unproven[lane] = 0;
    if (atomicSub(a.left, 1) == 1) *a.last_pass = number;
}

// Called by one thread.
HOPFUSE_DEVICE void write_evidence(const FinishArguments& a, int lane, int64_t row, int64_t held, double shortfall) {
    const PprAnswers& out = a.answers;
    const bool is_met = a.bound[lane] <= a.tol, is_empty = a.limit[lane] == 0;
    out.counts[row] = held;
    out.proven[row] = shortfall < 1.0 || is_empty ? 1 : 0;
    out.shortfall[row] = is_empty ? 0.0 : shortfall;
    const int64_t before = a.goes_on != 0 ? out.iterations[row] : 0;
    out.iterations[row] = before + (is_empty ? 0 : a.passes[lane] + 1);
    out.residual[row] = is_empty ? 0.0 : a.residual[lane];
    out.bound[row] = is_empty ? 0.0 : a.bound[lane];
    out.converged[row] = is_met || is_empty ? 1 : 0;
    const int32_t known = is_empty || (is_met && a.walking[lane] == 0) ? status_complete : status_incomplete;
    out.status[row] = a.seed_status[lane] < known ? a.seed_status[lane] : known;
}

HOPFUSE_DEVICE int64_t hits_to_write(const FinishArguments& a, int lane) {
    const int64_t k = a.outside.list.k;
    if (k == 0) return 0;
    const int64_t found = a.outside.proofs.found[lane];
    return found < k ? found : k;
}

HOPFUSE_DEVICE void write_hits(const PprAnswers& out, int64_t row, const DeviceList& list, int64_t held, double bound,
                               const ListProofs& proofs) {
    const NodeError error = held > 0 ? kept_error(proofs, list.lane) : NodeError{0.0, 0.0, 0.0};
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

// ppr_rank: ranks each lane's candidates, and proves as much of the list as its hits show: after a pass, by the iterate that
//   the pass read and the error estimated from its largest |z - y|, in each lane whose turn it is; at the end, by x^ and its
//   certificate. `refined`: x^ is a rounded sum. With `locals` these are part of each error and `per_degree` the rest.
//   Unit: a lane and a split; a block. Block: 128. Shared memory: 8200 bytes. Registers: <= 80 (occupancy 25 %).
//   Bytes: 12 candidates, or for each 512 requested hits (8 + 4) candidates and 12 KiB of keys, 24 k; 16 kept a split.
// ppr_try: completes the proof by the candidates outside each list. A proven lane ends with that iterate; the next try of
//   the others is scheduled.
//   Unit: a lane and a split; a block. Block: 128. Shared memory: 516 bytes. Registers: <= 80 (occupancy 25 %).
//   Bytes: 20 candidates.
// ppr_finish: completes the proof, and writes each lane's best k of x^ and their evidence to the query's row of the answers.
//   `goes_on`: iterations are added to earlier ones.
//   Unit: a lane and a split; a block. Block: 128. Shared memory: 516 bytes. Registers: <= 80 (occupancy 25 %).
//   Bytes: as ppr_try; 20 k written.
extern "C" __global__ void __launch_bounds__(SELECT_THREADS, 6) ppr_rank(const RankArguments a) {
    __shared__ RankShared shared;
    rank(a, &shared);
}

extern "C" __global__ void __launch_bounds__(SELECT_THREADS, 6) ppr_try(const TryArguments a) {
    __shared__ OutsideShared shared;
    const Candidates candidates(a.outside.candidates);
    const Split own(candidates.lanes, a.outside.splits, candidates.count);
    if (!takes_part(a.outside.turn, own.lane)) return;
    const DeviceList list(a.outside.list, candidates.per_lane, own.lane);
    double shortfall;
    if (!look_outside(a.outside, list, candidates, own, &shared, &shortfall)) return;
    __syncthreads();  // all have read whose turn it is, which the end of a try changes
    if (threadIdx.x == 0) end_try(a, own.lane, shortfall);
}

extern "C" __global__ void __launch_bounds__(SELECT_THREADS, 6) ppr_finish(const FinishArguments a) {
    __shared__ OutsideShared shared;
    const Candidates candidates(a.outside.candidates);
    const Split own(candidates.lanes, a.outside.splits, candidates.count);
    const int lane = own.lane;
    if (!takes_part(a.outside.turn, lane)) return;
    const DeviceList list(a.outside.list, candidates.per_lane, lane);
    double shortfall;
    if (!look_outside(a.outside, list, candidates, own, &shared, &shortfall)) return;
    const int64_t row = a.outside.turn.rows[lane], held = hits_to_write(a, lane);
    write_hits(a.answers, row, list, held, a.bound[lane], a.outside.proofs);
    if (threadIdx.x == 0) write_evidence(a, lane, row, held, shortfall);
}

HOPFUSE_KERNEL_TYPE(ppr_rank, RankKernel);
HOPFUSE_KERNEL_TYPE(ppr_try, TryKernel);
HOPFUSE_KERNEL_TYPE(ppr_finish, FinishKernel);
