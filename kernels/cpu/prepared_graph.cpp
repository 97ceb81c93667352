#include "prepared_graph.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>

#include "hopfuse/ppr_plan.h"
#include "threads.h"

#include <unistd.h>

namespace hopfuse {

namespace {

constexpr int64_t WINDOW = 256;  // rows sorted by length at a time for many lanes: their state fits a core's L1 cache
constexpr auto poll_time = std::chrono::microseconds(100);  // at which a waiting caller looks at its stop flag

// The lanes of the blocks, of which `at_once` walk at the same time.
std::vector<int> lanes_of(int64_t queries, int32_t at_once) {
    const PprDivision parts = ppr_divide(queries, at_once);
    std::vector<int> lanes(size_t(parts.wide), PPR_MOST_LANES);
    const int64_t shares = parts.shares > 0 ? parts.shares : 1;
    for (int64_t share = 0; share < shares; ++share)
        for (int64_t left = ppr_share_begin(parts, share + 1) - ppr_share_begin(parts, share); left > 0;) {
            const int taken = ppr_block_queries(left);
            lanes.push_back(ppr_block_lanes(taken));
            left -= taken;
        }
    return lanes;
}

}  // namespace

std::vector<int> ppr_lanes(int64_t nodes, int64_t stored, int64_t queries, int32_t threads) {
    return lanes_of(queries, ppr_blocks_at_once(nodes, stored, queries, threads));
}

// The right to make tables. The constructor waits for it; throws Stopped if the call is to stop. In a forked child, the turn of
// a thread that it lacks is over.
class PreparedGraph::Turn {
public:
    Turn(PreparedGraph& graph, const Execution& execution) : turn_(graph.turn_) {
        const int64_t mine = getpid();
        for (;;) {
            int64_t holder = 0;
            if (turn_.compare_exchange_strong(holder, mine, std::memory_order_acquire)) return;
            if (holder != mine && turn_.compare_exchange_strong(holder, mine, std::memory_order_acquire)) return;
            check_stop(execution);
            std::this_thread::sleep_for(poll_time);
        }
    }
    ~Turn() { turn_.store(0, std::memory_order_release); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

private:
    std::atomic<int64_t>& turn_;
};

PreparedGraph::PreparedGraph(const GraphArrays& arrays, const Sizes& sizes) : arrays_(arrays), sizes_(sizes) {}

template <class Make>
Status PreparedGraph::in_turn(const Execution& execution, const Make& make) {
    return status_of([&] {
        const Turn turn(*this, execution);
        make();
        return Status::ok;
    });
}

Status PreparedGraph::view(const PprQueries& queries, bool regroups, const PprGraph*& found, PprCourse& course) {
    const int32_t threads = queries.execution.threads;
    const int64_t nodes = arrays_.num_nodes, stored = arrays_.num_stored;
    const int32_t at_once = ppr_blocks_at_once(nodes, stored, queries.batch, threads);
    const bool is_large = nodes > sizes_.cached_nodes;
    bool few = regroups, many = false;
    const Status status = status_of([&] {
        const std::vector<int> lanes = lanes_of(queries.batch, at_once);
        const auto [least, most] = std::minmax_element(lanes.begin(), lanes.end());
        if (least == lanes.end()) return Status::ok;
        few = few || *least <= (is_large ? PPR_TILE_LANES : PPR_FEW_LANES);
        many = !is_large && *most > PPR_FEW_LANES;
        course = {at_once > 1 ? at_once : ppr_threads(nodes, stored, *most, threads), *most};
        return Status::ok;
    });
    if (status != Status::ok) return status;
    const bool with_out = arrays_.directed && (queries.allow != nullptr || queries.node_weight != nullptr);
    std::atomic<const PprGraph*>& made = for_batch_[queries.per_type][with_out][few][many];
    found = made.load(std::memory_order_acquire);
    if (found != nullptr) return Status::ok;
    return in_turn(queries.execution, [&] {
        found = &make_for_batch(queries.per_type, with_out, few, many, queries.execution);
        made.store(found, std::memory_order_release);
    });
}

Status PreparedGraph::view(Layout layout, bool per_type, bool with_out, const Execution& execution,
                           const PprGraph*& found) {
    return in_turn(execution, [&] { found = &make_in_layout(layout, per_type, with_out, execution); });
}

Status PreparedGraph::push_view(bool typed, const Execution& execution, const PprGraph*& found) {
    std::atomic<const PprGraph*>& made = for_push_[typed];
    found = made.load(std::memory_order_acquire);
    if (found != nullptr) return Status::ok;
    return in_turn(execution, [&] {
        found = &make_for_push(typed, execution);
        made.store(found, std::memory_order_release);
    });
}

Status PreparedGraph::tiles(bool per_type, const Execution& execution, const PprTiles*& found) {
    return in_turn(execution, [&] { found = make_tiles(per_type, execution); });
}

Status PreparedGraph::counts(const Execution& execution, EntryCounts& found) {
    return in_turn(execution, [&] { found = make_counts(execution); });
}

Status PreparedGraph::degrees(bool per_type, const Execution& execution, const DegreeTables*& found) {
    return in_turn(execution, [&] { found = &make_degrees(Layout::given, per_type, execution); });
}

Status PreparedGraph::outgoing(const Execution& execution, const StoredRows*& found) {
    return in_turn(execution, [&] { found = &make_out(Layout::given, execution); });
}

// ---- What the thread makes whose turn it is ----------------------------------------------------------------

template <class T>
T& PreparedGraph::keep(std::unique_ptr<T>& kept, T&& made, int64_t bytes) {
    kept = std::make_unique<T>(std::move(made));
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    return *kept;
}

const PprGraph& PreparedGraph::make_for_batch(bool per_type, bool with_out, bool few, bool many,
                                              const Execution& execution) {
    std::unique_ptr<PprGraph>& kept = kept_for_batch_[per_type][with_out][few][many];
    if (kept != nullptr) return *kept;
    const bool is_large = arrays_.num_nodes > sizes_.cached_nodes;
    if (few && !many && !is_large)  // all blocks read rows by length
        return keep(kept, PprGraph(make_in_layout(Layout::by_length, per_type, with_out, execution)), 0);
    PprGraph view = make_in_layout(many ? Layout::by_window : Layout::given, per_type, with_out, execution);
    if (few && is_large) view.tiles = make_tiles(per_type, execution);
    if (few && view.tiles == nullptr)
        view.by_length = &make_in_layout(Layout::by_length, per_type, with_out, execution);
    return keep(kept, std::move(view), 0);
}

const PprGraph& PreparedGraph::make_in_layout(Layout layout, bool per_type, bool with_out, const Execution& execution) {
    std::unique_ptr<PprGraph>& kept = in_layout_[int(layout)][per_type][with_out];
    if (kept != nullptr) return *kept;
    PprGraph g{};
    g.num_nodes = arrays_.num_nodes, g.num_stored = arrays_.num_stored;
    g.num_types = arrays_.num_types, g.directed = arrays_.directed;
    const RowsView stored = rows_in(layout, execution);
    g.indptr = stored.indptr, g.indices = stored.indices;
    g.weight = stored.weight, g.edge_type = stored.edge_type;
    if (layout == Layout::given) {
        g.degree = arrays_.degree, g.node_of = arrays_.node_of, g.row_of = arrays_.row_of;
    } else {
        const Rows& rows = make_rows(layout, execution);
        g.degree = rows.degree.data(), g.node_of = rows.node_of.data(), g.row_of = rows.row_of.data();
        g.place = rows.order.place.data(), g.internal = rows.order.internal.data();
    }
    const DegreeTables& degrees = make_degrees(layout, per_type, execution);
    g.scale64 = degrees.scale64.data(), g.scale32 = degrees.scale32.data();
    g.unscale64 = degrees.unscale64.data(), g.unscale32 = degrees.unscale32.data();
    g.volume = degrees.volume;
    if (per_type) g.share32 = make_shares(layout, execution).data();
    const EntryCounts& counts = make_counts(execution);
    g.longest_row = counts.longest_row, g.joined_nodes = counts.joined_nodes;
    if (layout == Layout::by_length) g.slices = &make_slices(per_type, execution);
    if (with_out) {
        const StoredRows& out = make_out(layout, execution);
        g.out_indptr = out.indptr.data(), g.out_indices = out.indices.data();
        g.out_weight = out.weight.data(), g.out_edge_type = out.edge_type.data();
    }
    return keep(kept, std::move(g), 0);
}

const PprGraph& PreparedGraph::make_for_push(bool typed, const Execution& execution) {
    std::unique_ptr<PprGraph>& kept = kept_for_push_[typed];
    if (kept != nullptr) return *kept;
    PprGraph g{};
    g.num_nodes = arrays_.num_nodes, g.num_stored = arrays_.num_stored;
    g.num_types = typed ? arrays_.num_types : 1;
    g.indptr = arrays_.indptr, g.indices = arrays_.indices;
    g.weight = arrays_.weight, g.edge_type = arrays_.edge_type;
    g.degree = arrays_.degree, g.node_of = arrays_.node_of;
    if (!typed && arrays_.num_types != 1) {
        if (total_degree_ == nullptr) {
            Array<double> made = total_degrees({arrays_.num_nodes, arrays_.num_types, arrays_.degree}, execution);
            const int64_t bytes = made.bytes();
            keep(total_degree_, std::move(made), bytes);
        }
        g.degree = total_degree_->data();
    }
    return keep(kept, std::move(g), 0);
}

const EntryCounts& PreparedGraph::make_counts(const Execution& execution) {
    return counts_ != nullptr ? *counts_ : keep(counts_, count_entries(arrays_, execution), 0);
}

RowsView PreparedGraph::rows_in(Layout layout, const Execution& execution) {
    return layout == Layout::given ? view_of(arrays_) : view_of(make_rows(layout, execution).rows);
}

const PreparedGraph::Rows& PreparedGraph::make_rows(Layout layout, const Execution& execution) {
    std::unique_ptr<Rows>& kept = rows_[int(layout)];
    if (kept != nullptr) return *kept;
    const RowsView given = view_of(arrays_);
    Rows made;
    made.order =
        layout == Layout::by_length ? order_by_length(given, execution) : order_by_length(given, WINDOW, execution);
    made.rows = in_order(given, made.order, execution);
    made.degree = in_order(arrays_.degree, arrays_.num_types, made.order, execution);
    made.node_of = in_order(arrays_.node_of, 1, made.order, execution);
    made.row_of = rows_of(arrays_.row_of, made.order, execution);
    const int64_t bytes =
        made.order.bytes() + made.rows.bytes() + made.degree.bytes() + made.node_of.bytes() + made.row_of.bytes();
    return keep(kept, std::move(made), bytes);
}

const DegreeTables& PreparedGraph::make_degrees(Layout layout, bool per_type, const Execution& execution) {
    std::unique_ptr<DegreeTables>& kept = degrees_[int(layout)][per_type];
    if (kept != nullptr) return *kept;
    const double* const degree = layout == Layout::given ? arrays_.degree : make_rows(layout, execution).degree.data();
    DegreeTables made = degree_tables({arrays_.num_nodes, arrays_.num_types, degree}, per_type, execution);
    const int64_t bytes = made.bytes();
    return keep(kept, std::move(made), bytes);
}

const Array<float>& PreparedGraph::make_shares(Layout layout, const Execution& execution) {
    std::unique_ptr<Array<float>>& kept = shares_[int(layout)];
    if (kept != nullptr) return *kept;
    const DegreeTables& degrees = make_degrees(layout, true, execution);
    Array<float> made = entry_shares(rows_in(layout, execution), degrees.scale32.data(), arrays_.num_types, execution);
    const int64_t bytes = made.bytes();
    return keep(kept, std::move(made), bytes);
}

const StoredRows& PreparedGraph::make_out(Layout layout, const Execution& execution) {
    std::unique_ptr<StoredRows>& kept = out_[int(layout)];
    if (kept != nullptr) return *kept;
    StoredRows made = layout == Layout::given ? outgoing_rows(view_of(arrays_), execution)
                                              : in_order(view_of(make_out(Layout::given, execution)),
                                                         make_rows(layout, execution).order, execution);
    const int64_t bytes = made.bytes();
    return keep(kept, std::move(made), bytes);
}

// The view with shares, if `per_type`, which are made when it is first read.
template <class Entries, class View>
const View& PreparedGraph::with_shares(Reordered<Entries, View>& made, Layout layout, bool per_type,
                                       const Execution& execution) {
    if (per_type && made.share32.data() == nullptr) {
        const DegreeTables& degrees = make_degrees(layout, true, execution);
        made.share32 = entry_shares(made.entries, degrees.scale32.data(), arrays_.num_types, execution);
        bytes_.fetch_add(made.share32.bytes(), std::memory_order_relaxed);
        made.view[1] = made.view[0], made.view[1].share32 = made.share32.data();
    }
    return made.view[per_type];
}

const PprSlices& PreparedGraph::make_slices(bool per_type, const Execution& execution) {
    if (slices_ == nullptr) {
        Reordered<Slices, PprSlices> made{slices_of(rows_in(Layout::by_length, execution), execution), {}, {}};
        made.view[0] = made.entries.view();
        const int64_t bytes = made.entries.bytes();
        keep(slices_, std::move(made), bytes);
    }
    return with_shares(*slices_, Layout::by_length, per_type, execution);
}

const PprTiles* PreparedGraph::make_tiles(bool per_type, const Execution& execution) {
    if (cannot_tile_) return nullptr;
    if (tiles_ == nullptr) {
        std::optional<Tiles> tiles = tiles_of(view_of(arrays_), sizes_.tile, execution);
        cannot_tile_ = !tiles.has_value();
        if (cannot_tile_) return nullptr;
        Reordered<Tiles, PprTiles> made{std::move(*tiles), {}, {}};
        made.view[0] = made.entries.view();
        const int64_t bytes = made.entries.bytes();
        keep(tiles_, std::move(made), bytes);
    }
    return &with_shares(*tiles_, Layout::given, per_type, execution);
}

}  // namespace hopfuse
