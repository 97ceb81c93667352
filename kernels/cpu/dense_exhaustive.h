// Scores every allowed row in register blocks, for small corpora, large k, short id lists and arrays without codes. Included
// once per instruction set.
#pragma once

#include <algorithm>
#include <limits>
#include <new>
#include <type_traits>

#include "dense_panels.h"
#include "dense_search.h"
#include "threads.h"
#include "vec.h"
#include "workspace.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// Panels of BLOCK_ROWS rows that are packed together. With more panels queries are read less often; with fewer the sums of
// long vectors stay in a nearer cache.
constexpr int MOST_PANELS = 16;
// Distance in bytes from a row that is read to the row that is prefetched.
constexpr int64_t AHEAD = 16384;

inline int64_t panels_at_once(const QueryPanels& queries) {
    constexpr int64_t bytes = 256 << 10, least = 4;
    if (queries.steps <= PIECE_STEPS) return MOST_PANELS;
    const int64_t fit = bytes / (queries.count * BLOCK_ROWS * 64);
    return fit < least ? least : fit > MOST_PANELS ? MOST_PANELS : fit;
}

// A thread's buffers: a piece of some rows, the sums that are kept between pieces, and each query's best rows so far.
struct BlockRoom {
    float* packed;   // (panels, BLOCK_ROWS, steps of a piece, 16)
    float* squares;  // (panels, BLOCK_ROWS, 16) and padding for reads past the end
    float* sums;     // (panels, queries, BLOCK_ROWS, 16) and the same padding
    float* least;    // (queries,) and the same padding; lower scores are not among the best
    TopkBuffer* best;
    bool is_sound;
    const float* rows[MOST_PANELS * BLOCK_ROWS];  // the piece of each row: packed, or in place
};

// The buffers of all threads, in a workspace.
class BlockRooms {
public:
    BlockRooms(const QueryPanels& queries, int64_t k, int64_t rows, int threads)
        : queries_(queries.count), best_(TopkBuffer::room(k, rows)), threads_(threads), rooms_(size_t(threads)) {
        if (!lease_) throw std::bad_alloc();
        const int64_t packed = MOST_PANELS * BLOCK_ROWS * PIECE_STEPS * 16,
                      squares = (MOST_PANELS * BLOCK_ROWS + 3) * 16;
        const int64_t rested = queries.steps <= PIECE_STEPS ? BLOCK_QUERIES : queries_ * panels_at_once(queries);
        const int64_t sums = (rested * BLOCK_ROWS + 3) * 16, least = queries_ + BLOCK_QUERIES;
        const int64_t floats = (packed + squares + sums + least + 15) / 16 * 16;
        float* next = take<float>(0, floats);
        ranked_ = take<Ranked>(1, queries_ * best_);
        TopkBuffer* best = take<TopkBuffer>(2, queries_);
        for (BlockRoom& room : rooms_) {
            const int64_t thread = &room - rooms_.data();
            room = {next, next + packed, next + packed + squares, next + packed + squares + sums, best, true, {}};
            for (int64_t i = packed; i < floats - least; ++i) next[i] = 0.0f;
            for (int64_t i = 0; i < least; ++i) room.least[i] = -std::numeric_limits<float>::infinity();
            for (int64_t j = 0; j < queries_; ++j)
                best[j] = TopkBuffer(ranked_ + (j * threads_ + thread) * best_, k, rows, room.least[0]);
            next += floats, best += queries_;
        }
    }

    BlockRoom& operator[](int thread) { return rooms_[size_t(thread)]; }

    // Puts a query's best rows of all threads one after another, starting at `first`; returns how many there are.
    int64_t gather(int64_t query, Ranked** first) {
        Ranked* all = ranked_ + query * threads_ * best_;
        int64_t total = 0;
        for (const BlockRoom& room : rooms_) {
            const Ranked* mine = ranked_ + (query * threads_ + (&room - rooms_.data())) * best_;
            for (int64_t i = 0; i < room.best[query].size(); ++i) all[total++] = mine[i];
        }
        *first = all;
        return total;
    }

    bool is_sound() const {
        for (const BlockRoom& room : rooms_)
            if (!room.is_sound) return false;
        return true;
    }

private:
    template <class T>
    T* take(int slot, int64_t each) {
        T* memory = lease_->template reserve<T>(slot, size_t(each * threads_));
        if (memory == nullptr && each > 0) throw std::bad_alloc();
        return memory;
    }

    WorkspaceLease lease_;
    int64_t queries_, best_;
    int threads_;
    Vec<BlockRoom> rooms_;
    Ranked* ranked_;
};

template <class Row>
class BlockPass {
public:
    BlockPass(const Search& search, const QueryPanels& panels, const RowList& rows)
        : search_(search), panels_(panels), rows_(rows), at_once_(panels_at_once(panels)) {}

    int64_t parts() const { return (rows_.count + at_once_ * BLOCK_ROWS - 1) / (at_once_ * BLOCK_ROWS); }

    // How many parts a thread takes at once: what it prefetches beyond them, another thread reads.
    int64_t chunk(int threads) const {
        constexpr int64_t bytes = 128 * AHEAD;
        const int64_t near = bytes / (at_once_ * BLOCK_ROWS * row_bytes<Row>(search_.corpus.vectors));
        return std::max<int64_t>(1, std::min(near, parts() / (8 * threads)));
    }

    void run(int64_t part, BlockRoom& room) const {
        const int64_t begin = part * at_once_ * BLOCK_ROWS;
        const int64_t end = std::min(begin + at_once_ * BLOCK_ROWS, rows_.count);
        constexpr int64_t near = 24 << 10;  // bytes of queries that fit a first-level cache beside a row
        if (panels_.count <= ROW_QUERIES && panels_.count * panels_.steps * 64 <= near)
            return run_rows(begin, end, room);
        run_blocks(begin, end, room);
    }

private:
    // For few queries: each row is read once, in place.
    void run_rows(int64_t begin, int64_t end, BlockRoom& room) const {
        const DenseVectors& v = search_.corpus.vectors;
        const int count = static_cast<int>(panels_.count);
        const PackedQueries queries{panels_.piece(0, 0)};
        const int64_t soon = 1 + AHEAD / row_bytes<Row>(v);
        for (int64_t i = begin; i < end; ++i) {
            row_sums<Row, true>(count, row_of<Row>(v, rows_.at(i)), queries, v.dim,
                                rows_.ids == nullptr ? AHEAD : ahead(i, soon), room.sums);
            if (!(add_tree(F<16>::load(room.sums + count * 16)) <= DENSE_SOUND)) room.is_sound = false;
            take(0, i, i + 1, room.sums, room);
        }
    }

    // The bytes from a row to the one `rows` places later in the list.
    int64_t ahead(int64_t i, int64_t rows) const {
        return row_bytes<Row>(search_.corpus.vectors) * (rows_.at(std::min(i + rows, rows_.count - 1)) - rows_.at(i));
    }

    void run_blocks(int64_t begin, int64_t end, BlockRoom& room) const {
        const int64_t panels = (end - begin + BLOCK_ROWS - 1) / BLOCK_ROWS;
        const int32_t steps = panels_.steps, pieces = piece_count(steps);
        for (int32_t piece = 0; piece < pieces; ++piece) {
            const auto at = [&](int64_t part) { return static_cast<int32_t>(steps * part / pieces); };
            const int32_t step = at(piece), stop = at(piece + 1);
            for (int64_t group = 0; group < panels_.groups(); ++group)
                for (int64_t panel = 0; panel < panels; ++panel) {
                    if (group == 0) read_panel(begin + panel * BLOCK_ROWS, end, panel, step, stop, room);
                    float* sums = room.sums + resting_place(panel, group);
                    block_sums<BLOCK_QUERIES>(panels_.size(group), room.rows + panel * BLOCK_ROWS,
                                              panels_.piece(group, step), stop - step, step == 0, sums);
                    if (stop == steps) take(group, begin + panel * BLOCK_ROWS, end, sums, room);
                }
        }
    }

    int64_t resting_place(int64_t panel, int64_t group) const {
        if (panels_.steps <= PIECE_STEPS) return 0;
        return (panel * panels_.count + panels_.first(group)) * BLOCK_ROWS * 16;
    }

    // Whether rows are read in place. Long rows that are read for several groups are not: their distance is often a power
    // of two, so they would compete for the same few sets of a cache.
    bool is_read_in_place() const {
        const bool is_wide = std::is_same_v<Row, Float32Row> && search_.corpus.vectors.dim % 16 == 0;
        return is_wide && (panels_.steps <= PIECE_STEPS || panels_.groups() == 1);
    }

    // The last row is repeated to fill a panel.
    void read_panel(int64_t first, int64_t end, int64_t panel, int32_t step, int32_t stop, BlockRoom& room) const {
        const DenseVectors& v = search_.corpus.vectors;
        for (int64_t r = 0; r < BLOCK_ROWS; ++r) {
            const int64_t i = std::min(first + r, end - 1), place = panel * BLOCK_ROWS + r;
            const typename Row::Element* x = row_of<Row>(v, rows_.at(i));
            float* out = is_read_in_place() ? nullptr : room.packed + place * (stop - step) * 16;
            read_steps<Row>(x, v.dim, step, stop, 16, ahead(i, BLOCK_ROWS), out, room.squares + place * 16);
            room.rows[place] = out == nullptr ? reinterpret_cast<const float*>(x) + step * 16 : out;
        }
        if (stop == panels_.steps) check(panel, room);
    }

    void check(int64_t panel, BlockRoom& room) const {
        const F<4> squares = add_trees(room.squares + panel * BLOCK_ROWS * 16);
        constexpr uint32_t all = (1u << BLOCK_ROWS) - 1;
        if ((F<4>::ge(F<4>::all(DENSE_SOUND), squares) & all) != all) room.is_sound = false;
    }

    // Computes the scores of a panel with a group and keeps those that may be among a query's best.
    void take(int64_t group, int64_t row, int64_t end, const float* sums, const BlockRoom& room) const {
        const int size = panels_.size(group);
        const int64_t first = panels_.first(group);
        float scores[BLOCK_QUERIES] = {};
        for (int r = 0; r < BLOCK_ROWS && row + r < end; ++r, sums += size * 16) {
            const int64_t id = rows_.at(row + r);
            for (int j = 0; j < size; j += 4) F<4>::store(scores + j, add_trees(sums + j * 16));
            if (search_.corpus.vectors.cosine)
                for (int j = 0; j < size; ++j) scores[j] = search_.score(scores[j], panels_.norms[first + j], id);
            uint32_t hits =
                F<BLOCK_QUERIES>::ge(F<BLOCK_QUERIES>::load(scores), F<BLOCK_QUERIES>::load(room.least + first));
            for (hits &= (1u << size) - 1; hits != 0; hits &= hits - 1) {
                const int j = __builtin_ctz(hits);
                const uint8_t* mask = search_.mask(panels_.queries[first + j]);
                if (mask != nullptr && mask[id] == 0) continue;
                room.best[first + j].push(scores[j], id);
                room.least[first + j] = room.best[first + j].threshold();
            }
        }
    }

    const Search& search_;
    const QueryPanels& panels_;
    const RowList& rows_;
    const int64_t at_once_;
};

// The best rows of a list for some queries. Each query may use all rows of the list that its mask allows.
template <class Row>
bool score_list(const Search& search, const int64_t* queries, int64_t count, const RowList& rows,
                const Execution& execution) {
    const int32_t steps = step_count(search.corpus.vectors.dim);
    WorkspaceLease lease;
    float* packed = lease ? lease->reserve<float>(0, size_t(count) * size_t(steps) * 16) : nullptr;
    float* norms = lease ? lease->reserve<float>(1, size_t(count)) : nullptr;
    if (packed == nullptr || norms == nullptr) throw std::bad_alloc();
    const QueryPanels panels{queries, count, steps, packed, norms};
    parallel_for(panels.groups(), 1, execution,
                 [&](int64_t group, int) { panels.pack(search.queries.data, search.corpus.vectors.dim, group); });
    BlockRooms rooms(panels, search.queries.k, rows.count, execution.threads);
    const BlockPass<Row> pass(search, panels, rows);
    parallel_for(pass.parts(), pass.chunk(execution.threads), execution,
                 [&](int64_t part, int thread) { pass.run(part, rooms[thread]); });
    parallel_for(count, 1, execution, [&](int64_t j, int) {
        Ranked* best;
        const int64_t found = rooms.gather(j, &best);
        search.write(queries[j], best, rank_best(best, found, search.queries.k), rows.count);
    });
    return rooms.is_sound();
}

// The number of queries that read the rows together: as many as the buffers of their best rows allow.
inline int64_t queries_at_once(const Search& search, int64_t rows) {
    constexpr int64_t bytes = 1 << 26, most = 512;
    const int64_t fit =
        bytes /
        (int64_t(sizeof(Ranked)) * search.queries.execution.threads * TopkBuffer::room(search.queries.k, rows) + 1);
    return fit < 1 ? 1 : fit > most ? most : fit;
}

template <class Row>
bool score_list_in_turns(const Search& search, const Vec<int64_t>& chosen, const RowList& rows) {
    const int64_t batch = int64_t(chosen.size()), step = queries_at_once(search, rows.count);
    bool is_sound = true;
    for (int64_t i = 0; i < batch; i += step) {
        const int64_t count = i + step < batch ? step : batch - i;
        is_sound &= score_list<Row>(search, &chosen[size_t(i)], count, rows, search.queries.execution);
    }
    return is_sound;
}

// Searches each query's own list. With fewer queries than threads, threads divide the rows of a list.
template <class Row>
void score_own_lists(const Search& search, const Vec<int64_t>& chosen) {
    const int64_t batch = int64_t(chosen.size());
    const Execution &all = search.queries.execution, one = on_threads(all, 1);
    const bool has_many = batch >= all.threads;
    parallel_for(batch, 1, has_many ? all : one, [&](int64_t i, int) {
        const int64_t query = chosen[size_t(i)];
        score_list<Row>(search, &query, 1, {search.list(query), search.list_length(query)}, has_many ? one : all);
    });
}

// Scores every allowed row, for small corpora, large k, short id lists and arrays without codes.
template <class Row>
void score_all(const Search& search, const Vec<int64_t>& chosen) {
    const int64_t n = search.corpus.vectors.count;
    if (search.has_list() && !search.queries.allow_shared) return score_own_lists<Row>(search, chosen);
    RowList rows{nullptr, n};
    WorkspaceLease lease;
    if (search.has_list()) rows = {search.list(0), search.list_length(0)};
    if (search.queries.allow_mask != nullptr && search.queries.allow_shared) {
        int64_t* ids = lease ? lease->reserve<int64_t>(0, size_t(n)) : nullptr;
        if (ids == nullptr) throw std::bad_alloc();
        rows = {ids, 0};
        for (int64_t row = 0; row < n; ++row)
            if (search.queries.allow_mask[row] != 0) ids[rows.count++] = row;
    }
    if (!score_list_in_turns<Row>(search, chosen, rows)) search.mark_unsound();
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
