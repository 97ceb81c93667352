// Each query's best nodes, and the proof that they are the best. Contract: hopfuse/ppr.h, PROOF; kernels/cpu/ppr_topk.h gives
// the same bits. L queries are stored side by side: state[node][lane]. L is an argument here, so that each kernel is compiled once.
//
// A SCAN reads all candidates once, for all lanes, and keeps of each group of them and lane the best key and the largest reach,
// which bounds what a candidate outside the list may score. Both are maxima, which no order changes. Then a block per lane reads
// what is known of the groups, and again the candidates of few of them:
//   The best. Let f be the n-th largest of the groups' keys, or of some of them; n = k + 1. At least n candidates have keys of f
//   or more, so the n best are among these, and all of them are in groups whose key is at least f.
//   Those outside, below the list's k-th score c. A group whose best score is below c has no hit, and no other candidate with the
//   score c: its reach counts as it is. Of the other groups, each candidate is looked at.
// So how the candidates are divided changes no answer.
#include "arguments/ppr_topk_f32.h"
#include "hopfuse/ppr_plan.h"
#include "hopfuse/ppr_proof.h"
#include "hopfuse/query_status.h"
#include "ppr_scales.h"
#include "topk_keys.h"
#include "warp.h"

namespace hopfuse {

constexpr int MOST_LANES = 32, QUAD = 4;  // a thread reads a quad of lanes at once

struct Candidates : CandidateArguments {
    const float* state;

    __device__ explicit Candidates(const CandidateArguments& given)
        : CandidateArguments(given), state(state_of(given.iterate)) {}

    __device__ int64_t row(int64_t i) const { return among == nullptr ? i : among[i]; }

    __device__ float weight(int64_t row, int lane) const {
        return degree == nullptr ? 1.0f : degree[per_lane ? row * lanes + lane : row];
    }

    __device__ float score(float value, float weight) const {
        return final ? value : (value > 0.0f ? value : 0.0f) * weight;
    }

    __device__ float score(int64_t row, int lane) const {
        const float value = state[row * lanes + lane];
        return final ? value : score(value, weight(row, lane));
    }

    // The rows of a tile, which a warp reads at once.
    __device__ int tile_rows() const { return 32 * QUAD / lanes; }
};

HOPFUSE_DEVICE bool restarts(const TwinTables& t, int64_t row, int lane) {
    return holds_row(t.restart_rows.words, row) && t.restart[index_of_row(t.restart_rows, row) * t.lanes + lane] > 0.0;
}

HOPFUSE_DEVICE float node_weight(const TwinTables& t, int64_t row, int lane) {
    return t.attraction == nullptr ? 1.0f : t.attraction[row * t.lanes + lane];
}

HOPFUSE_DEVICE QueryRows query_rows(const TwinTables& t, int lane) {
    return {t.indptr, t.entries, t.edge_type, t.mask == nullptr ? nullptr : t.mask + lane, t.lanes};
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

HOPFUSE_DEVICE bool takes_part(const LaneTurn& turn, int lane) {
    if (turn.rows != nullptr) return turn.rows[lane] >= 0;
    return turn.walking[lane] != 0 && turn.number >= turn.next_try[lane];
}

HOPFUSE_DEVICE NodeError error_of(const ErrorArguments& e, int lane) {
    if (e.measured != nullptr) return forecast_error(static_cast<float>(e.measured[e.lanes + lane]), e.damping[lane]);
    if (e.refined != 0) return ppr_refined_error(e.per_degree[lane]);
    return ppr_final_error(e.bound[lane], e.per_degree[lane]);
}

// Twice the error of a lane's nodes without its term relative x_v, in float32.
struct Margin {
    float per_degree, flat;

    __device__ explicit Margin(const NodeError& error)
        : per_degree(round_above(2.0 * error.per_degree)), flat(round_above(2.0 * error.flat)) {}
    __device__ Margin(float of_degree, float all) : per_degree(of_degree), flat(all) {}

    // The part of 2 e_v that is multiplied by the degree; `attraction` is a node weight, `local` 0 without such a part.
    __device__ float of_attraction(float attraction) const {
        return fmaf(per_degree, attraction, static_cast<float>(PPR_LEAST));
    }
    __device__ static float share(float of_all, float local) {
        return fmaf(static_cast<float>(2.0 * PPR_NEAR), local, of_all);
    }
    // x_v + 2 e_v without its term 2 relative x_v, at least 0.
    __device__ float reach(float x, float weight, float share) const {
        const float bounded = fmaf(weight, share, x) + flat;
        return bounded > 0.0f ? bounded : 0.0f;
    }
    // The same of a row, whose tables are read.
    __device__ float reach(const Candidates& c, const ListArguments& list, int64_t row, int lane, float x) const {
        const int64_t at = row * c.lanes + lane;
        const float all = list.twins.attraction == nullptr ? per_degree : of_attraction(list.twins.attraction[at]);
        return reach(x, c.weight(row, lane), share(all, list.locals == nullptr ? 0.0f : list.locals[at]));
    }
};

// ---- The scan

// Reads a quad of a table (N, L).
HOPFUSE_DEVICE void read_quad(float (&quad)[QUAD], const float* table, int64_t row, int lanes, int first) {
    const float4 four = *reinterpret_cast<const float4*>(table + row * lanes + first);
    quad[0] = four.x, quad[1] = four.y, quad[2] = four.z, quad[3] = four.w;
}

HOPFUSE_DEVICE void fill_quad(float (&quad)[QUAD], float value) {
#pragma unroll
    for (int i = 0; i < QUAD; ++i) quad[i] = value;
}

// The best of some candidates in a quad of lanes. A node without a score above 0 is not a hit.
struct QuadBest {
    float score[QUAD];
    int32_t node[QUAD];
    float reach[QUAD];
    unsigned others;  // a bit for each lane in which a candidate without a score above 0 may hold mass

    __device__ QuadBest() : others(0) {
#pragma unroll
        for (int i = 0; i < QUAD; ++i) score[i] = 0.0f, node[i] = 0, reach[i] = -infinite32();
    }

    __device__ void take(int i, float x, int32_t of) {
        if (!(x > score[i]) && !(x == score[i] && x > 0.0f && of < node[i])) return;
        score[i] = x;
        node[i] = of;
    }

    __device__ void take_reach(int i, float value) { reach[i] = value > reach[i] ? value : reach[i]; }

    // Joins the best of those of a warp's threads which have the same quad; `quads` threads read a row.
    __device__ void join(int quads) {
        HOPFUSE_ROLLED
        for (int apart = quads; apart < 32; apart *= 2) {
#pragma unroll
            for (int i = 0; i < QUAD; ++i) {
                const float x = __shfl_xor_sync(ALL_LANES, score[i], apart);
                const int32_t of = __shfl_xor_sync(ALL_LANES, node[i], apart);
                const float value = __shfl_xor_sync(ALL_LANES, reach[i], apart);
                take(i, x, of);
                take_reach(i, value);
            }
            others |= __shfl_xor_sync(ALL_LANES, others, apart);
        }
    }

    __device__ uint64_t key(int i) const {
        return (score[i] > 0.0f ? make_topk_key(score[i], node[i]) : 0) | ((others >> i) & 1u);
    }
};

struct ScanShared {
    float per_degree[MOST_LANES], flat[MOST_LANES];
    int takes_part[MOST_LANES];
    uint64_t keys[MOST_LANES][SCAN_WARPS];
    float reach[MOST_LANES][SCAN_WARPS];
};

// A thread's part of the scan: a quad of lanes of every row that it reads.
struct QuadScan {
    const RankArguments& a;
    const Candidates& c;
    const ScanShared& shared;
    int64_t begin;  // the candidate of the first tile of the group that the thread reads
    int32_t apart;  // the candidates between two tiles
    int first;      // lane
    unsigned part;  // a bit for each lane of the quad that takes part

    // The row of the thread's candidate in a tile, or -1.
    __device__ int32_t row(int tile) const {
        const int64_t i = begin + static_cast<int64_t>(tile) * apart;
        return i < c.count ? static_cast<int32_t>(c.row(i)) : -1;
    }

    __device__ Margin margin(int lane) const { return Margin(shared.per_degree[lane], shared.flat[lane]); }

    // Takes a candidate whose state is `value`. Returns a bit for each lane in which it has no score above 0 and must be looked at.
    __device__ unsigned take(int64_t row, const float (&value)[QUAD], float common, int32_t node,
                             QuadBest* best) const {
        float weight[QUAD], share[QUAD];
        if (a.list.twins.attraction == nullptr) {
#pragma unroll
            for (int i = 0; i < QUAD; ++i) share[i] = shared.per_degree[first + i];
        } else {
            read_quad(share, a.list.twins.attraction, row, c.lanes, first);
#pragma unroll
            for (int i = 0; i < QUAD; ++i) share[i] = margin(first + i).of_attraction(share[i]);
        }
        if (a.list.locals != nullptr) {
            float local[QUAD];
            read_quad(local, a.list.locals, row, c.lanes, first);
#pragma unroll
            for (int i = 0; i < QUAD; ++i) share[i] = Margin::share(share[i], local[i]);
        }
        if (c.per_lane && c.degree != nullptr) read_quad(weight, c.degree, row, c.lanes, first);
        else fill_quad(weight, common);
        unsigned asked = 0;
#pragma unroll
        for (int i = 0; i < QUAD; ++i) {
            const float x = c.score(value[i], weight[i]);
            const float reach = margin(first + i).reach(x, weight[i], share[i]);
            best->take(i, x, node);
            if (x > 0.0f) best->take_reach(i, reach);
            else if (reach > best->reach[i] || ((best->others >> i) & 1u) == 0) asked |= 1u << i;
        }
        return asked & part;
    }

    // Takes a candidate without a score above 0.
    __device__ void take_other(int64_t row, int place, QuadBest* best) const {
        const int lane = first + place;
        if (!may_hold_mass(a.list.twins, row, lane)) return;
        const float reach = margin(lane).reach(c, a.list, row, lane, c.score(row, lane));
        best->others |= 1u << place;
#pragma unroll
        for (int i = 0; i < QUAD; ++i)
            if (i == place) best->take_reach(i, reach);
    }

    __device__ void take_group(QuadBest* best) const {
        HOPFUSE_ROLLED
        for (int tile = 0; tile < a.groups.tiles; tile += SCAN_READS) {
            float value[SCAN_READS][QUAD], common[SCAN_READS];
            int32_t rows[SCAN_READS], node[SCAN_READS];
#pragma unroll
            for (int read = 0; read < SCAN_READS; ++read) rows[read] = row(tile + read);
#pragma unroll
            for (int read = 0; read < SCAN_READS; ++read) {
                const int64_t at = rows[read] < 0 ? 0 : rows[read];
                read_quad(value[read], c.state, at, c.lanes, first);
                node[read] = c.node_of[at];
                common[read] = c.per_lane ? 1.0f : c.weight(at, 0);
            }
            unsigned asked = 0;
#pragma unroll
            for (int read = 0; read < SCAN_READS; ++read)
                if (rows[read] >= 0)
                    asked |= take(rows[read], value[read], common[read], node[read], best) << (QUAD * read);
            HOPFUSE_ROLLED
            for (; asked != 0; asked &= asked - 1) {
                const int bit = __ffs(static_cast<int>(asked)) - 1;
                take_other(row(tile + bit / QUAD), bit % QUAD, best);
            }
        }
    }
};

// By a warp for each group.
HOPFUSE_DEVICE void scan(const RankArguments& a, ScanShared* shared) {
    const Candidates c(a.candidates);
    const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, quads = c.lanes / QUAD;
    if (thread < c.lanes) {
        shared->takes_part[thread] = takes_part(a.turn, thread) ? 1 : 0;
        if (shared->takes_part[thread] != 0) {
            const Margin margin(error_to_outlast(error_of(a.error, thread)));
            shared->per_degree[thread] = margin.per_degree;
            shared->flat[thread] = margin.flat;
        }
    }
    __syncthreads();
    const int first = thread % quads * QUAD;
    const int64_t block = static_cast<int64_t>(blockIdx.x) * SCAN_WARPS;
    const int rows = c.tile_rows();
    QuadScan own = {a, c, *shared, (block + warp) * rows + thread % 32 / quads, a.groups.count * rows, first, 0};
#pragma unroll
    for (int i = 0; i < QUAD; ++i) own.part |= static_cast<unsigned>(shared->takes_part[first + i]) << i;
    QuadBest best;
    if (own.part != 0) own.take_group(&best);
    best.join(quads);
    if (thread % 32 < quads) {
#pragma unroll
        for (int i = 0; i < QUAD; ++i) {
            shared->keys[first + i][warp] = best.key(i);
            shared->reach[first + i][warp] = best.reach[i];
        }
    }
    __syncthreads();
    if (thread >= c.lanes * SCAN_WARPS) return;
    const int lane = thread / SCAN_WARPS, other = thread % SCAN_WARPS;
    const int64_t at = static_cast<int64_t>(lane) * a.groups.count + block + other;
    a.groups.keys[at] = shared->keys[lane][other];
    a.groups.reach[at] = shared->reach[lane][other];
}

// ---- A lane's list

// A lane's hits in the form that hopfuse/ppr_proof.h reads.
struct DeviceList {
    const uint64_t* keys;
    const int32_t* internal_of;
    const double* unscale;
    const float* locals;
    int per_lane;
    int lane;
    const TwinTables& twins;

    __device__ DeviceList(const RankArguments& a, int own, const uint64_t* hits)
        : keys(hits), internal_of(a.list.internal_of), unscale(a.list.unscale), locals(a.list.locals),
          per_lane(a.candidates.per_lane), lane(own), twins(a.list.twins) {}

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
};

constexpr int SELECT_STEP = KEYS_PER_THREAD * SELECT_THREADS;
constexpr int SELECT_ROOM = 2 * SELECT_STEP;
static_assert(SELECT_ROOM >= SELECT_KEPT + SELECT_STEP && SELECT_KEPT == 2 * SELECT_THREADS, "");

// What a block's threads exchange about their lane.
struct RankShared {
    uint64_t buffer[SELECT_ROOM];
    uint64_t kept[SELECT_KEPT];   // the list, if a round is enough
    int32_t groups[SELECT_ROOM];  // that are looked at
    int num_groups, num_waiting;
    double values[SELECT_THREADS / 32];
};

// A block as the team that proves a list.
struct BlockProver {
    double* values;

    template <class F>
    __device__ void each(int64_t n, F f) const {
        HOPFUSE_ROLLED
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x) f(i);
    }

    __device__ double least(double mine) const {
        HOPFUSE_ROLLED
        for (int apart = 16; apart > 0; apart /= 2) {
            const double other = __shfl_xor_sync(ALL_LANES, mine, apart);
            mine = other < mine ? other : mine;
        }
        if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = mine;
        __syncthreads();
        HOPFUSE_ROLLED
        for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) mine = values[warp] < mine ? values[warp] : mine;
        __syncthreads();
        return mine;
    }
};

// What the scan has left of a lane.
struct LaneGroups {
    const uint64_t* keys;
    const float* reach;
    int count;

    __device__ LaneGroups(const CandidateGroups& g, int lane)
        : keys(g.keys + static_cast<int64_t>(lane) * g.count), reach(g.reach + static_cast<int64_t>(lane) * g.count),
          count(g.count) {}

    __device__ static uint64_t best(uint64_t key) { return key & ~static_cast<uint64_t>(1); }

    // Calls look(n) once the numbers of n groups are in shared->groups, until that was done for all those for which
    // choose(key, reach) is true. Called by a whole block.
    template <class Choose, class Look>
    __device__ void each(RankShared* shared, const Choose& choose, const Look& look) const {
        const int thread = static_cast<int>(threadIdx.x);
        if (thread == 0) shared->num_groups = 0;
        __syncthreads();
        HOPFUSE_ROLLED
        for (int at = 0; at < count; at += SELECT_STEP) {
            uint64_t key[KEYS_PER_THREAD];
            float far[KEYS_PER_THREAD];
#pragma unroll
            for (int item = 0; item < KEYS_PER_THREAD; ++item) {
                const int group = at + item * SELECT_THREADS + thread;
                key[item] = group < count ? keys[group] : 0;
                far[item] = group < count ? reach[group] : -infinite32();
            }
#pragma unroll
            for (int item = 0; item < KEYS_PER_THREAD; ++item)
                if (choose(best(key[item]), far[item]))
                    shared->groups[atomicAdd(&shared->num_groups, 1)] = at + item * SELECT_THREADS + thread;
            __syncthreads();
            const int chosen = shared->num_groups;
            __syncthreads();
            const bool is_last = at + SELECT_STEP >= count;
            if (chosen == 0 || (!is_last && chosen + SELECT_STEP <= SELECT_ROOM)) continue;
            look(chosen);
            __syncthreads();
            if (thread == 0) shared->num_groups = 0;
            __syncthreads();
        }
    }
};

// Some candidates of a thread: their rows, or -1, and scores.
struct RowScores {
    int32_t row[KEYS_PER_THREAD];
    float x[KEYS_PER_THREAD];
};

// A lane's candidates of some groups, by number; the last ones may not exist.
struct GroupRows {
    const Candidates& c;
    int lane;
    const int32_t* groups;
    unsigned tiles, tile_rows;
    int64_t apart;  // the candidates between two tiles of a group

    __device__ GroupRows(const Candidates& of, const CandidateGroups& g, int own, const int32_t* numbers)
        : c(of), lane(own), groups(numbers), tiles(static_cast<unsigned>(g.tiles)),
          tile_rows(static_cast<unsigned>(of.tile_rows())), apart(static_cast<int64_t>(g.count) * of.tile_rows()) {}

    __device__ int count(int of_groups) const { return of_groups * static_cast<int>(tiles * tile_rows); }

    // The row of candidate number j, or -1.
    __device__ int64_t row(unsigned j) const {
        const unsigned tile = j / tile_rows;
        const int64_t i = groups[tile / tiles] * static_cast<int64_t>(tile_rows) + tile % tiles * apart + j % tile_rows;
        return i < c.count ? c.row(i) : -1;
    }

    // Reads a thread's candidates of a step. No load waits for another's score.
    __device__ RowScores read(int64_t first, int end) const {
        RowScores read;
        float value[KEYS_PER_THREAD], weight[KEYS_PER_THREAD];
#pragma unroll
        for (int item = 0; item < KEYS_PER_THREAD; ++item) {
            const int64_t j = first + item * SELECT_THREADS;
            read.row[item] = j < end ? static_cast<int32_t>(row(static_cast<unsigned>(j))) : -1;
        }
#pragma unroll
        for (int item = 0; item < KEYS_PER_THREAD; ++item) {
            const int64_t at = read.row[item] < 0 ? 0 : read.row[item];
            value[item] = c.state[at * c.lanes + lane];
            weight[item] = c.final ? 1.0f : c.weight(at, lane);
        }
#pragma unroll
        for (int item = 0; item < KEYS_PER_THREAD; ++item) read.x[item] = c.score(value[item], weight[item]);
        return read;
    }
};

// These as keys, of at least some score, below those of an earlier round.
struct RowKeys {
    const GroupRows& rows;
    float least;
    uint64_t ceiling;
};

HOPFUSE_DEVICE void read_keys(const RowKeys& source, int64_t first, int, int end, uint64_t (&keys)[KEYS_PER_THREAD]) {
    const RowScores read = source.rows.read(first, end);
#pragma unroll
    for (int item = 0; item < KEYS_PER_THREAD; ++item) {
        const float x = read.x[item];
        const bool is_hit = read.row[item] >= 0 && x > 0.0f && x >= source.least;
        const uint64_t key = is_hit ? make_topk_key(x, source.rows.c.node_of[read.row[item]]) : 0;
        keys[item] = key < source.ceiling ? key : 0;
    }
}

// Returns a key that at least `want` of the groups' keys reach, at least 1: the one at that place of the largest keys of
// SELECT_KEPT sets of groups. Called by a whole block. `others`: whether a candidate without a score above 0 may hold mass.
HOPFUSE_DEVICE uint64_t reached_by(const LaneGroups& groups, int64_t want, RankShared* shared, bool* others) {
    const int thread = static_cast<int>(threadIdx.x);
    uint64_t largest[2] = {0, 0};
    int other = 0;
    HOPFUSE_ROLLED
    for (int at = thread; at < groups.count; at += 4 * SELECT_KEPT) {
        uint64_t keys[8];
#pragma unroll
        for (int item = 0; item < 8; ++item) {
            const int group = at + item * SELECT_THREADS;
            keys[item] = group < groups.count ? groups.keys[group] : 0;
        }
#pragma unroll
        for (int item = 0; item < 8; ++item) {
            other |= static_cast<int>(keys[item] & 1);
            const uint64_t key = LaneGroups::best(keys[item]);
            largest[item % 2] = key > largest[item % 2] ? key : largest[item % 2];
        }
    }
    shared->buffer[thread] = largest[0];
    shared->buffer[SELECT_THREADS + thread] = largest[1];
    *others = __syncthreads_or(other) != 0;
    const int sets = groups.count < SELECT_KEPT ? groups.count : SELECT_KEPT;
    sort_held(shared->buffer, sets);
    const uint64_t key = want <= sets ? shared->buffer[want - 1] : 0;
    __syncthreads();
    return key > 0 ? key : 1;
}

// A lane's best candidates, best first. Returns how many of the first `want` exist.
HOPFUSE_DEVICE int64_t select(const RankArguments& a, const Candidates& c, const LaneGroups& groups, int lane,
                              int64_t want, uint64_t* best, RankShared* shared, bool* others) {
    const int kept = a.list.rounds.kept;
    const GroupRows rows(c, a.groups, lane, shared->groups);
    uint64_t floor = reached_by(groups, want < kept ? want : kept, shared, others);
    uint64_t ceiling = ~static_cast<uint64_t>(0);
    int64_t done = 0;
    while (done < want && ceiling != 0) {
        uint64_t* const list = best + done;
        for (int i = static_cast<int>(threadIdx.x); i < kept; i += SELECT_THREADS) list[i] = 0;
        const RowKeys source = {rows, floor > 1 ? topk_key_score(floor) : 0.0f, ceiling};
        groups.each(
            shared, [&](uint64_t key, float) { return key >= floor; },
            [&](int chosen) {
                keep_best(source, 0, rows.count(chosen), list, false, kept, SELECT_ROOM, shared->buffer,
                          &shared->num_waiting, floor - 1);
            });
        __syncthreads();
        ceiling = list[kept - 1];
        done += kept;
        floor = 1;
    }
    int64_t found = done < want ? done : want;
    while (found > 0 && best[found - 1] == 0) --found;
    return found;
}

// The largest reach of a lane's candidates with x_v below the last hit's. Infinity if `tied` and a candidate has the score of the
// last hit but is not its twin; minus infinity if all others are empty places. Called by a whole block.
HOPFUSE_DEVICE float largest_outside(const RankArguments& a, const Candidates& c, const LaneGroups& groups,
                                     const DeviceList& list, int64_t last, bool tied, const Margin& margin,
                                     RankShared* shared) {
    const int lane = list.lane;
    const float cut = list.score(last);
    const uint64_t least_key = make_topk_key(cut, 0x7fffffff);
    const int64_t last_id = topk_key_row(list.keys[last]), last_row = list.row(last);
    const GroupRows rows(c, a.groups, lane, shared->groups);
    float mine = -infinite32();
    const auto take = [&](float reach) { mine = reach > mine ? reach : mine; };
    // Takes a candidate without a score above 0, or with that of the last hit.
    const auto take_rare = [&](int64_t row, float x) {
        if (x > 0.0f) {
            if (c.node_of[row] > last_id && !are_twins(list.twins, row, last_row, lane)) take(infinite32());
        } else if (may_hold_mass(list.twins, row, lane)) {
            take(margin.reach(c, a.list, row, lane, x));
        }
    };
    groups.each(
        shared,
        [&](uint64_t key, float reach) {
            if (key < least_key) take(reach);
            return key >= least_key;
        },
        [&](int chosen) {
            const int count = rows.count(chosen);
            HOPFUSE_ROLLED
            for (int64_t at = threadIdx.x; at < count; at += SELECT_STEP) {
                const RowScores read = rows.read(at, count);
                unsigned rare = 0;
#pragma unroll
                for (int item = 0; item < KEYS_PER_THREAD; ++item) {
                    const float x = read.x[item];
                    if (read.row[item] < 0) continue;
                    if (x > 0.0f && x < cut) take(margin.reach(c, a.list, read.row[item], lane, x));
                    else if (!(x > 0.0f) || (tied && x == cut)) rare |= 1u << item;
                }
                HOPFUSE_ROLLED
                for (; rare != 0; rare &= rare - 1) {
                    const int item = __ffs(static_cast<int>(rare)) - 1;
                    const int64_t row = rows.row(static_cast<unsigned>(at + item * SELECT_THREADS));
                    take_rare(row, c.score(row, lane));
                }
            }
        });
    return -static_cast<float>(BlockProver{shared->values}.least(-static_cast<double>(mine)));
}

// What is known of a lane's list.
struct RankedLane {
    int64_t found;  // at most k + 1: the first one left out reveals a tie
    NodeError error;
    double shortfall;  // below 1: the list is proven
};

HOPFUSE_DEVICE uint64_t* list_of(const RankArguments& a, int lane, RankShared* shared) {
    const SelectionRounds& rounds = a.list.rounds;
    return rounds.keys == nullptr ? shared->kept : rounds.keys + lane * rounds.stride;
}

// Writes the lane's list and proves it. Called by a whole block, whose threads all get the result.
HOPFUSE_DEVICE RankedLane rank(const RankArguments& a, int lane, RankShared* shared) {
    const int64_t k = a.list.k;
    if (k == 0) return RankedLane{0, {0.0, 0.0, 0.0}, 0.0};
    const Candidates c(a.candidates);
    const LaneGroups groups(a.groups, lane);
    uint64_t* const best = list_of(a, lane, shared);
    bool others = false;
    const int64_t found = select(a, c, groups, lane, k + 1, best, shared, &others);
    const DeviceList list(a, lane, best);
    const NodeError stated = error_of(a.error, lane), error = error_to_outlast(stated);
    const BlockProver team = {shared->values};
    const ListProof proof = prove_list(list, k, found, c.count, !others, error, a.list.order != 0, team);
    double shortfall = proof.shortfall;
    if (proof.open) {
        const float outside = largest_outside(a, c, groups, list, k - 1, proof.tied, Margin(error), shared);
        if (!(proof.least > outside_reach(outside, error))) shortfall = PPR_OUTSIDE_SHORTFALL;
    }
    return RankedLane{found, stated, shortfall};
}

// Ends or schedules a lane after its try. Called by one thread.
HOPFUSE_DEVICE void end_try(const TryArguments& a, int lane, double shortfall) {
    const int64_t number = a.rank.turn.number;
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

HOPFUSE_DEVICE void write_hits(const PprAnswers& out, int64_t row, const DeviceList& list, int64_t held,
                               const NodeError& error, double bound) {
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

// ppr_scan: what groups of candidates have in each lane, for ppr_try and ppr_finish: after a pass, by the iterate that the pass
//   read and the error estimated from its largest |z - y|, in each lane whose turn it is; at the end, by x^ and its certificate.
//   `refined`: x^ is a rounded sum. With `locals` these are part of each error and `per_degree` the rest.
//   Unit: four lanes of a row; a thread. A warp for each group. Block: 256. Shared memory: 3456 bytes. Registers: <= 80
//   (occupancy 37 %). Bytes: 4 L + 8 a candidate (4 L each for degrees by lane, locals and node weights), 12 L a group.
// ppr_try: ranks each such lane's candidates into its list, k + 1 of them to detect a tie, and proves the list. A proven lane ends
//   with that iterate; the next try of the others is scheduled.
//   Unit: a lane; a block. Block: 256. Shared memory: 28744 bytes. Registers: <= 96 (occupancy 25 %).
//   Bytes: 20 a group, and 40 for each candidate of k + 1 groups, or a few more.
// ppr_finish: the same; writes each lane's best k of x^ and their evidence to the query's row of the answers.
//   `goes_on`: iterations are added to earlier ones.
//   Unit: a lane; a block. Block: 256. Shared memory: 28744 bytes. Registers: <= 96 (occupancy 25 %).
//   Bytes: as ppr_try; 20 k written.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS, 3) ppr_scan(const RankArguments a) {
    __shared__ ScanShared shared;
    scan(a, &shared);
}

extern "C" __global__ void __launch_bounds__(SELECT_THREADS, 2) ppr_try(const TryArguments a) {
    __shared__ RankShared shared;
    const int lane = static_cast<int>(blockIdx.x);
    if (!takes_part(a.rank.turn, lane)) return;
    const RankedLane ranked = rank(a.rank, lane, &shared);
    if (threadIdx.x == 0) end_try(a, lane, ranked.shortfall);
}

extern "C" __global__ void __launch_bounds__(SELECT_THREADS, 2) ppr_finish(const FinishArguments a) {
    __shared__ RankShared shared;
    const int lane = static_cast<int>(blockIdx.x);
    if (!takes_part(a.rank.turn, lane)) return;
    const RankedLane ranked = rank(a.rank, lane, &shared);
    const int64_t row = a.rank.turn.rows[lane], k = a.rank.list.k, held = ranked.found < k ? ranked.found : k;
    const DeviceList list(a.rank, lane, list_of(a.rank, lane, &shared));
    write_hits(a.answers, row, list, held, ranked.error, a.bound[lane]);
    if (threadIdx.x == 0) write_evidence(a, lane, row, held, ranked.shortfall);
}

HOPFUSE_KERNEL_TYPE(ppr_scan, ScanKernel);
HOPFUSE_KERNEL_TYPE(ppr_try, TryKernel);
HOPFUSE_KERNEL_TYPE(ppr_finish, FinishKernel);
