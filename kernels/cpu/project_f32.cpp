// project_f32 for one instruction set: 16 queries side by side, threads over rows. Contract: hopfuse/project.h.
#include "hopfuse/project.h"

#include <limits>

#include "hopfuse/query_status.h"
#include "kernels.h"
#include "simd.h"
#include "threads.h"
#include "topk.h"
#include "workspace.h"

namespace hopfuse::HOPFUSE_ISA_NS {

namespace {

constexpr int LANES = 16;
constexpr int TILE = 16;  // rows whose scores are computed before they are used
// Fewer queries than this are faster one by one than side by side. The limit is low if 16 lanes fit one register.
#if defined(HOPFUSE_ISA_AVX512)
constexpr int64_t FEW = 4;
#else
constexpr int64_t FEW = 8;
#endif

enum ProjectSlot { slot_state, slot_wrong, slot_best, slot_merged, slot_sizes };

// Queries first .. first + count of a call; state[column][lane] has their scores, with zeros in lanes beyond `count`.
template <int L>
struct Block {
    const ProjectArgs& args;
    int64_t first, count;
    const float* state;
    int32_t parts;  // of the rows; each part is processed by one thread
    float* wrong;   // (parts, L): NaN if a part has a result that is not finite, else 0
};

// The first row of a part. All parts have about the same number of entries and rows.
int64_t part_begin(const ProjectRows& rows, int64_t part, int64_t parts) {
    if (part == parts) return rows.rows;
    const int64_t before = (rows.indptr[rows.rows] + rows.rows) / parts * part;
    int64_t low = 0, high = rows.rows;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (rows.indptr[middle] + middle < before) low = middle + 1;
        else high = middle;
    }
    return low;
}

template <int L>
HF_INLINE F<L> row_scores(const ProjectRows& rows, const float* state, int64_t row) {
    F<L> sum = F<L>::zero();
    const int64_t begin = rows.indptr[row], end = rows.indptr[row + 1];
    if (rows.weight == nullptr)
        for (int64_t at = begin; at < end; ++at)
            sum = F<L>::add(sum, F<L>::load(state + int64_t{rows.indices[at]} * L));
    else
        for (int64_t at = begin; at < end; ++at)
            sum = F<L>::fma(F<L>::all(rows.weight[at]), F<L>::load(state + int64_t{rows.indices[at]} * L), sum);
    return rows.scale == nullptr ? sum : F<L>::mul(sum, F<L>::all(rows.scale[row]));
}

// Passes a part's scores to take(first row, rows, scores[row][lane]), tile by tile.
template <int L, class Take>
void project_part(const Block<L>& block, int64_t part, Take take) {
    const ProjectRows& rows = block.args.incidence;
    const int64_t begin = part_begin(rows, part, block.parts), end = part_begin(rows, part + 1, block.parts);
    F<L> wrong = F<L>::zero();
    float tile[TILE][L];
    constexpr int64_t rows_at_once = 256 * TILE;
    for (int64_t first = begin; first < end; first += TILE) {
        if ((first - begin) % rows_at_once == 0) check_stop(block.args.execution);
        const int count = static_cast<int>(end - first < TILE ? end - first : TILE);
        for (int i = 0; i < count; ++i) {
            const F<L> scores = row_scores<L>(rows, block.state, first + i);
            wrong = F<L>::add(wrong, F<L>::sub(scores, scores));
            F<L>::store(tile[i], scores);
        }
        take(first, count, tile);
    }
    F<L>::store(block.wrong + part * L, wrong);
}

template <int L>
void write_tile(const Block<L>& block, float* out, int64_t row, int count, const float (&tile)[TILE][L]) {
    const int64_t stride = block.args.incidence.rows;
    float* const first = out + block.first * stride + row;
    if constexpr (L == LANES) {
        if (count == TILE) {
            const float* from[TILE];
            float* to[LANES];
            float unused[TILE];
            for (int i = 0; i < TILE; ++i) from[i] = tile[i];
            for (int lane = 0; lane < L; ++lane) to[lane] = lane < block.count ? first + lane * stride : unused;
            transpose_16(from, to);
            return;
        }
    }
    for (int lane = 0; lane < block.count; ++lane)
        for (int i = 0; i < count; ++i) first[lane * stride + i] = tile[i][lane];
}

template <int L>
void write_scores(const Block<L>& block, float* out) {
    parallel_for(block.parts, 1, block.args.execution, [&](int64_t part, int) {
        project_part<L>(block, part, [&](int64_t row, int count, const float (&tile)[TILE][L]) {
            write_tile<L>(block, out, row, count, tile);
        });
    });
}

// The place of the best of a part and lane, at most as many as the part has rows.
template <int L>
struct Lists {
    const Block<L>& block;
    int64_t k;
    Ranked *best, *merged;
    int64_t* sizes;  // (parts, L)

    int64_t most(int64_t part) const {
        const ProjectRows& rows = block.args.incidence;
        return part_begin(rows, part + 1, block.parts) - part_begin(rows, part, block.parts);
    }
    int64_t room(int64_t parts) const {
        int64_t total = 0;
        for (int64_t part = 0; part < parts; ++part) total += TopkBuffer::room(k, most(part));
        return total;
    }
    Ranked* of(int64_t part, int lane) const { return best + room(part) * L + lane * TopkBuffer::room(k, most(part)); }
};

template <int L>
void keep_tile(TopkBuffer (&best)[L], float (&threshold)[L], int64_t row, int count, const float (&tile)[TILE][L]) {
    for (int i = 0; i < count; ++i) {
        const uint32_t above = F<L>::ge(F<L>::load(tile[i]), F<L>::load(threshold));
        for (uint32_t left = above; left != 0; left &= left - 1) {
            const int lane = __builtin_ctz(left);
            best[lane].push(tile[i][lane], row + i);
            threshold[lane] = best[lane].threshold();
        }
    }
}

template <int L>
void keep_part(const Lists<L>& lists, int64_t part) {
    const Block<L>& block = lists.block;
    TopkBuffer best[L];
    float threshold[L];
    for (int lane = 0; lane < L; ++lane) {
        threshold[lane] = std::numeric_limits<float>::denorm_min();
        best[lane] = TopkBuffer(lists.of(part, lane), lists.k, lists.most(part), threshold[lane]);
    }
    project_part<L>(block, part, [&](int64_t row, int count, const float (&tile)[TILE][L]) {
        keep_tile<L>(best, threshold, row, count, tile);
    });
    for (int lane = 0; lane < L; ++lane) {
        best[lane].shrink();
        lists.sizes[part * L + lane] = best[lane].size();
    }
}

template <int L>
void write_hits(const Lists<L>& lists, int lane, const ProjectHits& hits) {
    const Block<L>& block = lists.block;
    Ranked* const all = lists.merged + lists.room(block.parts) * lane;
    int64_t total = 0;
    for (int64_t part = 0; part < block.parts; ++part)
        for (int64_t i = 0; i < lists.sizes[part * L + lane]; ++i) all[total++] = lists.of(part, lane)[i];
    const int64_t query = block.first + lane, found = rank_best(all, total, lists.k);
    for (int64_t i = 0; i < hits.width; ++i) {
        hits.ids[query * hits.width + i] = i < found ? all[i].id : -1;
        hits.scores[query * hits.width + i] = i < found ? all[i].score : -std::numeric_limits<float>::infinity();
    }
    hits.counts[query] = found;
}

template <int L>
bool keep_best(const Block<L>& block, Workspace& work, const ProjectHits& hits) {
    const int64_t rows = block.args.incidence.rows;
    Lists<L> lists{block, hits.width < rows ? hits.width : rows, nullptr, nullptr, nullptr};
    const size_t room = size_t(lists.room(block.parts)) * L;
    lists.best = work.reserve<Ranked>(slot_best, room);
    lists.merged = work.reserve<Ranked>(slot_merged, room);
    lists.sizes = work.reserve<int64_t>(slot_sizes, size_t(block.parts) * L);
    if (lists.best == nullptr || lists.merged == nullptr || lists.sizes == nullptr) return false;
    parallel_for(block.parts, 1, block.args.execution, [&](int64_t part, int) { keep_part<L>(lists, part); });
    parallel_for(block.count, 1, block.args.execution,
                 [&](int64_t lane, int) { write_hits<L>(lists, static_cast<int>(lane), hits); });
    return true;
}

// Transposes the scores of `count` queries to state[column][lane].
void put_side_by_side(const ProjectArgs& args, int64_t first, int64_t count, float* state) {
    const int64_t columns = args.incidence.columns, whole = columns / TILE;
    const float zeros[TILE] = {};
    parallel_for(whole, args.execution, [&](int64_t tile, int) {
        const float* from[LANES];
        float* to[TILE];
        for (int lane = 0; lane < LANES; ++lane)
            from[lane] = lane < count ? args.scores + (first + lane) * columns + tile * TILE : zeros;
        for (int i = 0; i < TILE; ++i) to[i] = state + (tile * TILE + i) * LANES;
        transpose_16(from, to);
    });
    for (int64_t column = whole * TILE; column < columns; ++column)
        for (int lane = 0; lane < LANES; ++lane)
            state[column * LANES + lane] = lane < count ? args.scores[(first + lane) * columns + column] : 0.0f;
}

template <int L>
bool run_block(const ProjectArgs& args, int64_t first, int64_t count, Workspace& work, float* out,
               const ProjectHits* hits) {
    Block<L> block{args, first, count, args.scores + first * args.incidence.columns, args.execution.threads, nullptr};
    block.wrong = work.reserve<float>(slot_wrong, size_t(block.parts) * L);
    if (block.wrong == nullptr) return false;
    if constexpr (L > 1) {
        float* const state = work.reserve<float>(slot_state, size_t(args.incidence.columns) * L);
        if (state == nullptr) return false;
        put_side_by_side(args, first, count, state);
        block.state = state;
    }
    if (hits == nullptr) write_scores<L>(block, out);
    else if (!keep_best<L>(block, work, *hits)) return false;
    for (int64_t lane = 0; lane < count; ++lane) {
        bool finite = true;
        for (int64_t part = 0; part < block.parts; ++part) finite = finite && block.wrong[part * L + lane] == 0.0f;
        args.status[first + lane] = finite ? status_complete : status_sum_beyond;
    }
    return true;
}

}  // namespace

Status project_f32(const ProjectArgs& args, float* out, const ProjectHits* hits) {
    if (args.execution.threads < 1 || (out == nullptr) == (hits == nullptr)) return Status::bad_argument;
    if (hits != nullptr && hits->width < 1) return Status::bad_argument;
    const WorkspaceLease work;
    if (!work) return Status::out_of_memory;
    return status_of([&] {
        for (int64_t first = 0; first < args.batch;) {
            const int64_t left = args.batch - first, count = left < FEW ? 1 : left < LANES ? left : LANES;
            const bool done = count == 1 ? run_block<1>(args, first, count, *work, out, hits)
                                         : run_block<LANES>(args, first, count, *work, out, hits);
            if (!done) return Status::out_of_memory;
            first += count;
        }
        return Status::ok;
    });
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
