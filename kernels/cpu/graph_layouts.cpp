#include "graph_layouts.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "hopfuse/ppr_sum.h"
#include "threads.h"

namespace hopfuse {

namespace {

constexpr int64_t ROWS_AT_A_TIME = 1 << 12, ENTRIES_AT_A_TIME = 1 << 15;

// Calls body(begin, end) for parts of 0 .. count - 1, of `part` each.
template <class Body>
void each_part(int64_t count, int64_t part, const Execution& execution, const Body& body) {
    const ChunkBody run = [](const void* context, int64_t begin, int64_t end, int) {
        (*static_cast<const Body*>(context))(begin, end);
    };
    run_chunks(count, part, execution, run, &body);
}

// The same, part after part.
template <class Body>
void each_part_in_turn(int64_t count, int64_t part, const Execution& execution, const Body& body) {
    each_part(count, part, on_threads(execution, 1), body);
}

template <class T>
Array<T> like(const T* given, int64_t size) {
    return given == nullptr ? Array<T>() : Array<T>(size);
}

template <class T>
void copy_entry(Array<T>& to, int64_t at, const T* from, int64_t entry) {
    if (from != nullptr) to[at] = from[entry];
}

// Rows in another order are not side by side in memory: their entries are asked for so many rows ahead.
constexpr int64_t ROWS_AHEAD = 8;

void prefetch_row(const RowsView& rows, int64_t row) {
    const int64_t first = rows.indptr[row];
    __builtin_prefetch(rows.indices + first);
    if (rows.edge_type != nullptr) __builtin_prefetch(rows.edge_type + first);
    if (rows.weight != nullptr) __builtin_prefetch(rows.weight + first);
}

// Copies the entries of a row, unless there are none. Most rows are so short that a call would take longer.
template <class T>
void copy_entries(T* into, const T* from, int64_t first, int64_t to, int64_t count) {
    if (from == nullptr) return;
    for (int64_t e = 0; e < count; ++e) into[to + e] = from[first + e];
}

int64_t whole(int64_t units, int64_t of) { return (units + of - 1) / of * of; }
int64_t segments_of(int64_t entries) { return (entries + PPR_SEGMENT - 1) / PPR_SEGMENT; }

// Writes where each row lies.
void place_rows(RowOrder& order, const Execution& execution) {
    each_part(order.internal.size(), ROWS_AT_A_TIME, execution, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) order.place[order.internal[row]] = static_cast<int32_t>(row);
    });
}

}  // namespace

RowsView view_of(const GraphArrays& graph) {
    return {graph.num_nodes, graph.indptr, graph.indices, graph.weight, graph.edge_type};
}

RowsView view_of(const StoredRows& rows) {
    return {rows.indptr.size() - 1, rows.indptr.data(), rows.indices.data(), rows.weight.data(), rows.edge_type.data()};
}

// ---- Orders of rows ----------------------------------------------------------------------------------------

// A counting sort; the few rows beyond its counters are sorted by comparisons.
RowOrder order_by_length(const RowsView& rows, const Execution& execution) {
    RowOrder order{Array<int32_t>(rows.num_rows), Array<int32_t>(rows.num_rows)};
    const auto length = [&](int64_t row) { return rows.indptr[row + 1] - rows.indptr[row]; };
    int64_t counted = 0;
    for (int64_t row = 0; row < rows.num_rows; ++row) counted = std::max(counted, length(row));
    counted = std::min(counted + 1, int64_t{1} << 16);
    const auto shortness = [&](int64_t row) { return counted - std::min(length(row), counted); };
    std::vector<int64_t> next(size_t(counted + 2), 0);
    each_part_in_turn(rows.num_rows, ROWS_AT_A_TIME, execution, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) ++next[size_t(shortness(row) + 1)];
    });
    for (size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
    const int64_t beyond = next[1];
    each_part_in_turn(rows.num_rows, ROWS_AT_A_TIME, execution, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
            order.internal[next[size_t(shortness(row))]++] = static_cast<int32_t>(row);
    });
    std::stable_sort(order.internal.data(), order.internal.data() + beyond,
                     [&](int32_t a, int32_t b) { return length(a) > length(b); });
    place_rows(order, execution);
    return order;
}

RowOrder order_by_length(const RowsView& rows, int64_t window, const Execution& execution) {
    RowOrder order{Array<int32_t>(rows.num_rows), Array<int32_t>(rows.num_rows)};
    const int64_t windows = (rows.num_rows + window - 1) / window;
    each_part(windows, 1 + ROWS_AT_A_TIME / window, execution, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin * window; row < std::min(end * window, rows.num_rows); ++row)
            order.internal[row] = static_cast<int32_t>(row);
        for (int64_t first = begin * window; first < std::min(end * window, rows.num_rows); first += window) {
            const int64_t last = std::min(first + window, rows.num_rows);
            std::sort(order.internal.data() + first, order.internal.data() + last, [&](int32_t a, int32_t b) {
                const int64_t of_a = rows.indptr[a + 1] - rows.indptr[a], of_b = rows.indptr[b + 1] - rows.indptr[b];
                return of_a > of_b || (of_a == of_b && a < b);
            });
        }
    });
    place_rows(order, execution);
    return order;
}

StoredRows in_order(const RowsView& rows, const RowOrder& order, const Execution& execution) {
    const int64_t entries = rows.num_stored();
    StoredRows stored{Array<int64_t>(rows.num_rows + 1), Array<int32_t>(entries), like(rows.weight, entries),
                      like(rows.edge_type, entries)};
    stored.indptr[0] = 0;
    for (int64_t row = 0; row < rows.num_rows; ++row) {
        const int64_t node = order.internal[row];
        stored.indptr[row + 1] = stored.indptr[row] + rows.indptr[node + 1] - rows.indptr[node];
    }
    const int32_t* const place = order.place.data();
    each_part(rows.num_rows, ROWS_AT_A_TIME, execution, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            if (row + ROWS_AHEAD < end) prefetch_row(rows, order.internal[row + ROWS_AHEAD]);
            const int64_t first = rows.indptr[order.internal[row]], to = stored.indptr[row];
            const int64_t count = stored.indptr[row + 1] - to;
            const int32_t* const from = rows.indices + first;
            int32_t* const into = stored.indices.data() + to;
            for (int64_t e = 0; e < count; ++e) into[e] = place[from[e]];
            copy_entries(stored.weight.data(), rows.weight, first, to, count);
            copy_entries(stored.edge_type.data(), rows.edge_type, first, to, count);
        }
    });
    return stored;
}

template <class T>
Array<T> in_order(const T* table, int32_t width, const RowOrder& order, const Execution& execution) {
    const int64_t rows = order.internal.size();
    Array<T> stored = like(table, rows * width);
    if (table == nullptr) return stored;
    each_part(rows, ROWS_AT_A_TIME, execution, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
            copy_entries(stored.data(), table, int64_t{order.internal[row]} * width, row * width, width);
    });
    return stored;
}

template Array<double> in_order(const double*, int32_t, const RowOrder&, const Execution&);
template Array<int32_t> in_order(const int32_t*, int32_t, const RowOrder&, const Execution&);

Array<int32_t> rows_of(const int32_t* internal_of, const RowOrder& order, const Execution& execution) {
    Array<int32_t> row(order.place.size());
    each_part(row.size(), ROWS_AT_A_TIME, execution, [&](int64_t begin, int64_t end) {
        for (int64_t id = begin; id < end; ++id) row[id] = order.place[internal_of[id]];
    });
    return row;
}

StoredRows outgoing_rows(const RowsView& rows, const Execution& execution) {
    const int64_t entries = rows.num_stored();
    StoredRows out{Array<int64_t>(rows.num_rows + 1), Array<int32_t>(entries), like(rows.weight, entries),
                   like(rows.edge_type, entries)};
    std::fill_n(out.indptr.data(), out.indptr.size(), int64_t{0});
    each_part_in_turn(entries, ENTRIES_AT_A_TIME, execution, [&](int64_t begin, int64_t end) {
        for (int64_t e = begin; e < end; ++e) ++out.indptr[rows.indices[e] + 1];
    });
    for (int64_t row = 0; row < rows.num_rows; ++row) out.indptr[row + 1] += out.indptr[row];
    Array<int64_t> next(rows.num_rows);
    std::copy_n(out.indptr.data(), rows.num_rows, next.data());
    each_part_in_turn(rows.num_rows, ROWS_AT_A_TIME, execution, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
            for (int64_t e = rows.indptr[row]; e < rows.indptr[row + 1]; ++e) {
                const int64_t to = next[rows.indices[e]]++;
                out.indices[to] = static_cast<int32_t>(row);
                copy_entry(out.weight, to, rows.weight, e);
                copy_entry(out.edge_type, to, rows.edge_type, e);
            }
    });
    return out;
}

// ---- Degrees -----------------------------------------------------------------------------------------------

EntryCounts count_entries(const GraphArrays& graph, const Execution& execution) {
    std::vector<int64_t> out;
    if (graph.directed) {
        out.resize(size_t(graph.num_nodes), 0);
        each_part_in_turn(graph.num_stored, ENTRIES_AT_A_TIME, execution, [&](int64_t begin, int64_t end) {
            for (int64_t e = begin; e < end; ++e) ++out[size_t(graph.indices[e])];
        });
    }
    EntryCounts counts{0, 0};
    each_part_in_turn(graph.num_nodes, ENTRIES_AT_A_TIME, execution, [&](int64_t begin, int64_t end) {
        for (int64_t node = begin; node < end; ++node) {
            int64_t most = graph.indptr[node + 1] - graph.indptr[node];
            if (graph.directed) most = std::max(most, out[size_t(node)]);
            counts.longest_row = std::max(counts.longest_row, most);
            counts.joined_nodes += most > 0 ? 1 : 0;
        }
    });
    return counts;
}

namespace {

// The sum of all degrees, which does not depend on their order.
double volume_of(const double* degree, int64_t nodes) {
    constexpr int chains = 8;  // of additions, side by side
    double largest[chains] = {}, sum[chains] = {};
    int64_t terms = 0;
    for (int64_t node = 0; node < nodes; ++node) terms += degree[node] != 0.0 ? 1 : 0;
    if (terms == 0) return 0.0;
    const int64_t whole = nodes - nodes % chains;
    for (int64_t node = 0; node < whole; node += chains)
        for (int i = 0; i < chains; ++i) largest[i] = std::max(largest[i], degree[node + i]);
    for (int64_t node = whole; node < nodes; ++node) largest[0] = std::max(largest[0], degree[node]);
    const double anchor = ppr_volume_anchor(*std::max_element(largest, largest + chains), static_cast<double>(terms));
    for (int64_t node = 0; node < whole; node += chains)
        for (int i = 0; i < chains; ++i) sum[i] += to_grain(degree[node + i], anchor);
    for (int64_t node = whole; node < nodes; ++node) sum[0] += to_grain(degree[node], anchor);
    double all = 0.0;
    for (const double one : sum) all += one;
    return all;
}

}  // namespace

Array<double> total_degrees(const NodeDegrees& nodes, const Execution& execution) {
    Array<double> made(nodes.num_nodes);
    const int32_t types = nodes.num_types;
    each_part(nodes.num_nodes, ROWS_AT_A_TIME, execution, [&, to = made.data()](int64_t begin, int64_t end) {
        for (int64_t node = begin; node < end; ++node) {
            double sum = 0.0;
            for (int32_t type = 0; type < types; ++type) sum += nodes.degree[node * types + type];
            to[node] = sum;
        }
    });
    return made;
}

DegreeTables degree_tables(const NodeDegrees& nodes, bool per_type, const Execution& execution) {
    const int64_t count = per_type ? nodes.num_nodes * nodes.num_types : nodes.num_nodes;
    DegreeTables made;
    made.scale64 = Array<double>(count), made.scale32 = Array<float>(count);
    double* const scale64 = made.scale64.data();
    float* const scale32 = made.scale32.data();
    if (per_type) {
        each_part(count, ENTRIES_AT_A_TIME, execution, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                scale64[i] = nodes.degree[i] > 0.0 ? 1.0 / nodes.degree[i] : 0.0;
                scale32[i] = static_cast<float>(scale64[i]);
            }
        });
        return made;
    }
    made.unscale64 = total_degrees(nodes, execution), made.unscale32 = Array<float>(count);
    made.volume = volume_of(made.unscale64.data(), count);
    double* const unscale64 = made.unscale64.data();
    float* const unscale32 = made.unscale32.data();
    each_part(count, ROWS_AT_A_TIME, execution, [&](int64_t begin, int64_t end) {
        for (int64_t node = begin; node < end; ++node) {
            const bool is_joined = unscale64[node] > 0.0;
            const double sum = is_joined ? unscale64[node] : 1.0, inverse = 1.0 / sum;
            scale64[node] = is_joined ? inverse : 0.0;
            scale32[node] = static_cast<float>(inverse);
            unscale64[node] = sum;
            unscale32[node] = static_cast<float>(sum);
        }
    });
    return made;
}

namespace {

// Shares of entries begin .. end - 1, whose source is that of source(e).
template <class Source>
void share_entries(Array<float>& share, int64_t begin, int64_t end, const Source& source, const uint8_t* edge_type,
                   const float* scale32, int32_t num_types) {
    for (int64_t e = begin; e < end; ++e)
        share[e] = scale32[int64_t{source(e)} * num_types + (edge_type == nullptr ? 0 : edge_type[e])];
}

}  // namespace

Array<float> entry_shares(const RowsView& rows, const float* scale32, int32_t num_types, const Execution& execution) {
    Array<float> share(rows.num_stored());
    each_part(share.size(), ENTRIES_AT_A_TIME, execution, [&](int64_t begin, int64_t end) {
        share_entries(
            share, begin, end, [&](int64_t e) { return rows.indices[e]; }, rows.edge_type, scale32, num_types);
    });
    return share;
}

// ---- Slices ------------------------------------------------------------------------------------------------

PprSlices Slices::view() const {
    PprSlices s{};
    s.num_units = indptr.size() - 1, s.segment_units = segment.size(), s.long_rows = long_rows;
    s.indptr = indptr.data(), s.segment = segment.data(), s.row_segments = row_segments.data();
    s.narrow = narrow.data(), s.wide = wide.data(), s.weight = weight.data(), s.edge_type = edge_type.data();
    return s;
}

int64_t Slices::bytes() const {
    return indptr.bytes() + segment.bytes() + row_segments.bytes() + narrow.bytes() + wide.bytes() + weight.bytes() +
           edge_type.bytes();
}

namespace {

// A unit's first entry and their number.
struct Unit {
    int64_t begin, size;
};

// The segments of long rows, in row order.
std::vector<Unit> segments_in(const RowsView& rows, int64_t long_rows, Array<int32_t>& row_segments) {
    std::vector<Unit> segments;
    row_segments[0] = 0;
    for (int64_t row = 0; row < long_rows; ++row) {
        for (int64_t at = rows.indptr[row]; at < rows.indptr[row + 1]; at += PPR_SEGMENT)
            segments.push_back({at, std::min<int64_t>(PPR_SEGMENT, rows.indptr[row + 1] - at)});
        row_segments[row + 1] = static_cast<int32_t>(segments.size());
    }
    return segments;
}

// Appends the segments to the units, longest first, with padding; writes each one's number.
void take_segments(const std::vector<Unit>& segments, Array<int32_t>& number, std::vector<Unit>& units) {
    size_t next[PPR_SEGMENT + 2] = {};
    for (const Unit& segment : segments) ++next[PPR_SEGMENT - segment.size + 1];
    for (int i = 1; i <= PPR_SEGMENT + 1; ++i) next[i] += next[i - 1];
    units.resize(size_t(number.size()), Unit{0, 0});
    std::fill_n(number.data(), number.size(), static_cast<int32_t>(segments.size()));
    for (size_t i = 0; i < segments.size(); ++i) {
        const size_t at = next[PPR_SEGMENT - segments[i].size]++;
        units[at] = segments[i], number[int64_t(at)] = static_cast<int32_t>(i);
    }
}

// Writes values of the entries of slices begin .. end - 1 in the order of PprSlices, unless there are none.
struct SliceWriter {
    const Unit* units;
    const int64_t* indptr;
    int64_t begin, end;

    template <class From, class To>
    void operator()(const From* from, To* into) const {
        if (from == nullptr || into == nullptr) return;
        for (int64_t slice = begin; slice < end; ++slice) {
            const Unit* const own = units + slice * PPR_SLICE;
            const int64_t shortest = own[PPR_SLICE - 1].size;
            const From* row[PPR_SLICE];
            for (int i = 0; i < PPR_SLICE; ++i) row[i] = from + own[i].begin;
            To* to = into + indptr[slice * PPR_SLICE];
            for (int64_t j = 0; j < shortest; ++j, to += PPR_SLICE)
                for (int i = 0; i < PPR_SLICE; ++i) to[i] = static_cast<To>(row[i][j]);
            for (int i = 0; i < PPR_SLICE; ++i)
                for (int64_t j = shortest; j < own[i].size; ++j) *to++ = static_cast<To>(row[i][j]);
        }
    }
};

}  // namespace

Slices slices_of(const RowsView& rows, const Execution& execution) {
    const int64_t entries = rows.num_stored();
    Slices made;
    int64_t longer = 0;  // rows of more than a segment
    while (longer < rows.num_rows && rows.indptr[longer + 1] - rows.indptr[longer] > PPR_SEGMENT) ++longer;
    made.long_rows = std::min(whole(longer, PPR_SLICE), rows.num_rows);
    made.row_segments = Array<int32_t>(made.long_rows + 1);
    const std::vector<Unit> segments = segments_in(rows, made.long_rows, made.row_segments);
    made.segment = Array<int32_t>(whole(static_cast<int64_t>(segments.size()), PPR_SLICE));
    std::vector<Unit> units;
    units.reserve(size_t(made.segment.size() + whole(rows.num_rows - made.long_rows, PPR_SLICE)));
    take_segments(segments, made.segment, units);
    for (int64_t row = made.long_rows; row < rows.num_rows; ++row)
        units.push_back({rows.indptr[row], rows.indptr[row + 1] - rows.indptr[row]});
    units.resize(units.capacity(), Unit{0, 0});
    made.indptr = Array<int64_t>(static_cast<int64_t>(units.size()) + 1);
    made.indptr[0] = 0;
    for (size_t i = 0; i < units.size(); ++i) made.indptr[int64_t(i) + 1] = made.indptr[int64_t(i)] + units[i].size;

    if (rows.num_rows <= int64_t{1} << 16) made.narrow = Array<uint16_t>(entries);
    else made.wide = Array<int32_t>(entries);
    made.weight = like(rows.weight, entries), made.edge_type = like(rows.edge_type, entries);
    each_part(static_cast<int64_t>(units.size()) / PPR_SLICE, ROWS_AT_A_TIME / PPR_SLICE, execution,
              [&](int64_t begin, int64_t end) {
                  const SliceWriter write{units.data(), made.indptr.data(), begin, end};
                  write(rows.indices, made.narrow.data());
                  write(rows.indices, made.wide.data());
                  write(rows.weight, made.weight.data());
                  write(rows.edge_type, made.edge_type.data());
              });
    return made;
}

Array<float> entry_shares(const Slices& slices, const float* scale32, int32_t num_types, const Execution& execution) {
    Array<float> share(slices.indptr[slices.indptr.size() - 1]);
    each_part(share.size(), ENTRIES_AT_A_TIME, execution, [&](int64_t begin, int64_t end) {
        const auto source = [&](int64_t e) {
            return slices.wide.data() == nullptr ? int32_t{slices.narrow[e]} : slices.wide[e];
        };
        share_entries(share, begin, end, source, slices.edge_type.data(), scale32, num_types);
    });
    return share;
}

// ---- Tiles -------------------------------------------------------------------------------------------------

PprTiles Tiles::view() const {
    PprTiles t{};
    t.num_blocks = block_row.size() - 1;
    t.num_strips = (num_rows + strip - 1) / strip, t.strip = strip, t.most_units = most_units;
    t.block_row = block_row.data(), t.begin = begin.data();
    t.unit = unit.data(), t.source = source.data(), t.weight = weight.data(), t.edge_type = edge_type.data();
    return t;
}

int64_t Tiles::bytes() const {
    return block_row.bytes() + begin.bytes() + unit.bytes() + source.bytes() + weight.bytes() + edge_type.bytes();
}

namespace {

// The first row of each block and the end; each block takes as many groups of PPR_TILE rows as fit. Nothing if one does not.
std::optional<std::vector<int64_t>> block_rows(const RowsView& rows, int64_t most_units, int64_t& most) {
    std::vector<int64_t> first{0};
    int64_t units = 0;
    most = 0;
    for (int64_t row = 0; row < rows.num_rows; row += PPR_TILE) {
        int64_t more = 0;
        for (int64_t i = row; i < std::min(row + PPR_TILE, rows.num_rows); ++i)
            more += segments_of(rows.indptr[i + 1] - rows.indptr[i]);
        if (more > most_units) return std::nullopt;
        if (units + more > most_units) first.push_back(row), units = 0;
        units += more;
        most = std::max(most, units);
    }
    if (rows.num_rows > 0) first.push_back(rows.num_rows);
    return first;
}

// The entries of a block, sorted by strip and source. An item is the source within its strip, the unit within the block, and
// the entry within the block.
class BlockSort {
public:
    BlockSort(const RowsView& rows, int64_t strip, int64_t begin, int64_t end)
        : rows_(rows), strip_(strip), begin_(begin), end_(end), first_(rows.indptr[begin]) {}

    // Writes the first entry of each strip, and the entries of the block.
    void write(Tiles& tiles, int64_t* strip_begin) {
        const int64_t entries = rows_.indptr[end_] - first_, strips = (tiles.num_rows + strip_ - 1) / strip_;
        Array<uint64_t> items(entries), spare(entries);
        std::vector<int64_t> next(size_t(strips) + 1, 0);
        for (int64_t e = 0; e < entries; ++e) ++next[size_t(rows_.indices[first_ + e] / strip_) + 1];
        for (size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
        for (int64_t i = 0; i < strips; ++i) strip_begin[i] = first_ + next[size_t(i)];
        each_entry([&](int64_t e, uint64_t unit) {
            const int32_t source = rows_.indices[first_ + e];
            const auto column = source / strip_;
            items[next[size_t(column)]++] = uint64_t(source - column * strip_) << 48 | unit << 32 | uint64_t(e);
        });
        for (int64_t i = 0; i < strips; ++i) {  // next[i] is now where strip i ends
            const int64_t from = i == 0 ? 0 : next[size_t(i) - 1], to = next[size_t(i)];
            sort_by_byte(items.data() + from, spare.data() + from, to - from, 48);
            sort_by_byte(spare.data() + from, items.data() + from, to - from, 56);
        }
        for (int64_t i = 0; i < entries; ++i) {
            const uint64_t item = items[i];
            const int64_t entry = first_ + int64_t(item & 0xffffffffu);
            tiles.source[first_ + i] = static_cast<uint16_t>(item >> 48);
            tiles.unit[first_ + i] = static_cast<uint16_t>(item >> 32);
            copy_entry(tiles.weight, first_ + i, rows_.weight, entry);
            copy_entry(tiles.edge_type, first_ + i, rows_.edge_type, entry);
        }
    }

private:
    const RowsView& rows_;
    const int64_t strip_, begin_, end_, first_;

    // Calls call(entry, unit), both within the block.
    template <class CallBack>
    void each_entry(const CallBack& call) const {
        uint64_t unit = 0;
        for (int64_t row = begin_; row < end_; ++row) {
            const int64_t from = rows_.indptr[row] - first_, to = rows_.indptr[row + 1] - first_;
            for (int64_t e = from; e < to; ++e) call(e, unit + uint64_t(e - from) / PPR_SEGMENT);
            unit += uint64_t(segments_of(to - from));
        }
    }

    // A stable counting sort.
    static void sort_by_byte(const uint64_t* from, uint64_t* to, int64_t count, int shift) {
        int64_t next[257] = {};
        for (int64_t i = 0; i < count; ++i) ++next[(from[i] >> shift & 0xff) + 1];
        for (int i = 1; i < 257; ++i) next[i] += next[i - 1];
        for (int64_t i = 0; i < count; ++i) to[next[from[i] >> shift & 0xff]++] = from[i];
    }
};

}  // namespace

std::optional<Tiles> tiles_of(const RowsView& rows, const TileSizes& sizes, const Execution& execution) {
    Tiles made;
    made.num_rows = rows.num_rows, made.strip = sizes.strip;
    const std::optional<std::vector<int64_t>> first = block_rows(rows, sizes.units, made.most_units);
    if (!first.has_value()) return std::nullopt;
    const int64_t blocks = static_cast<int64_t>(first->size()) - 1, entries = rows.num_stored();
    const int64_t strips = (rows.num_rows + sizes.strip - 1) / sizes.strip;
    made.block_row = Array<int64_t>(blocks + 1);
    std::copy(first->begin(), first->end(), made.block_row.data());
    made.begin = Array<int64_t>(blocks * strips + 1);
    made.unit = Array<uint16_t>(entries), made.source = Array<uint16_t>(entries);
    made.weight = like(rows.weight, entries), made.edge_type = like(rows.edge_type, entries);
    each_part(blocks, 1, execution, [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block)
            BlockSort(rows, sizes.strip, made.block_row[block], made.block_row[block + 1])
                .write(made, made.begin.data() + block * strips);
    });
    made.begin[blocks * strips] = entries;
    return made;
}

Array<float> entry_shares(const Tiles& tiles, const float* scale32, int32_t num_types, const Execution& execution) {
    Array<float> share(tiles.source.size());
    const int64_t strips = (tiles.num_rows + tiles.strip - 1) / tiles.strip;
    each_part(tiles.begin.size() - 1, 1, execution, [&](int64_t begin, int64_t end) {
        for (int64_t tile = begin; tile < end; ++tile) {
            const int64_t before = tile % strips * tiles.strip;
            const auto source = [&](int64_t e) { return before + tiles.source[e]; };
            share_entries(share, tiles.begin[tile], tiles.begin[tile + 1], source, tiles.edge_type.data(), scale32,
                          num_types);
        }
    });
    return share;
}

}  // namespace hopfuse
