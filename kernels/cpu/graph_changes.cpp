#include "graph_changes.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "threads.h"

namespace hopfuse {

namespace {

constexpr int64_t ROWS_AT_A_TIME = 1 << 16;  // rows that are copied between two looks at the stop flag

template <class T>
void copy_run(T* to, const T* from, int64_t count) {
    if (count > 0) std::memcpy(to, from, size_t(count) * sizeof(T));
}

// Writes rows one after another.
class Continuation {
public:
    Continuation(const GraphArrays& before, const int32_t* node, const ChangedEntries& changed, const RowsAfter& after)
        : before_(before), node_(node), changed_(changed), after_(after),
          loses_nodes_(std::any_of(node, node + before.num_nodes, [](int32_t at) { return at < 0; })) {}

    int64_t write(const Execution& execution) {
        for (int64_t row = 0; row < before_.num_nodes;) {
            if (node_[row] < 0) {
                for (int64_t e = before_.indptr[row]; e < before_.indptr[row + 1]; ++e) leave_out(row, e);
                ++row;
                continue;
            }
            write_new_rows(node_[row]);
            if (node_[row] == next_changed_row()) {
                merge_row(row);
                ++row;
                continue;
            }
            const int64_t end = end_of_run(row);
            copy_rows(row, end);
            row = end;
            check_stop(execution);
        }
        write_new_rows(after_.num_nodes);
        after_.indptr[after_.num_nodes] = to_;
        sum_degrees();
        return to_;
    }

private:
    const GraphArrays& before_;
    const int32_t* const node_;
    const ChangedEntries& changed_;
    const RowsAfter& after_;
    const bool loses_nodes_;
    int64_t to_ = 0, row_ = 0, change_ = 0;  // the next entry and row to write, and the next change

    int64_t next_changed_row() const { return change_ < changed_.count ? changed_.row[change_] : after_.num_nodes; }

    int32_t type_of(int64_t entry) const { return before_.edge_type == nullptr ? 0 : before_.edge_type[entry]; }

    // Whether an entry counts as an edge; node numbers before and after the change have the same order.
    bool is_counted(int64_t row, int64_t source) const { return before_.directed || row >= source; }

    void leave_out(int64_t row, int64_t entry) const {
        if (is_counted(row, before_.indices[entry])) --after_.edges[type_of(entry)];
    }

    void put(int32_t source, int32_t type, float weight) {
        after_.indices[to_] = source;
        if (after_.edge_type != nullptr) after_.edge_type[to_] = static_cast<uint8_t>(type);
        if (after_.weight != nullptr) after_.weight[to_] = weight;
        ++to_;
    }

    void put_change() {
        const int64_t i = change_++;
        if (changed_.weight[i] == 0.0f) return;
        put(changed_.source[i], changed_.type[i], changed_.weight[i]);
        if (is_counted(changed_.row[i], changed_.source[i])) ++after_.edges[changed_.type[i]];
    }

    void put_entry(int64_t entry) {
        put(node_[before_.indices[entry]], type_of(entry), before_.weight == nullptr ? 1.0f : before_.weight[entry]);
    }

    void begin_row(const double* degree) {
        double* const own = after_.degree + row_ * before_.num_types;
        for (int32_t t = 0; t < before_.num_types; ++t) own[t] = degree == nullptr ? 0.0 : degree[t];
        after_.indptr[row_++] = to_;
    }

    void write_new_rows(int64_t end) {
        while (row_ < end) {
            begin_row(nullptr);
            while (next_changed_row() == row_ - 1) put_change();
        }
    }

    // A row with changed entries.
    void merge_row(int64_t row) {
        begin_row(before_.degree + row * before_.num_types);
        const int64_t end = before_.indptr[row + 1], here = row_ - 1;
        for (int64_t e = before_.indptr[row]; e < end;) {
            const int32_t source = node_[before_.indices[e]], type = type_of(e);
            if (source < 0) {
                leave_out(row, e++);
                continue;
            }
            const bool has_change = change_ < changed_.count && changed_.row[change_] == here;
            const int64_t gap = has_change ? int64_t{changed_.source[change_]} - source : 1;
            const int32_t order = gap != 0 ? (gap < 0 ? -1 : 1) : int32_t{changed_.type[change_]} - type;
            if (order > 0) {
                put_entry(e++);
                continue;
            }
            if (order == 0) leave_out(row, e++);
            put_change();
        }
        while (change_ < changed_.count && changed_.row[change_] == here) put_change();
    }

    // The end of the rows from `row` on that stay side by side and have no changed entries.
    int64_t end_of_run(int64_t row) const {
        const int64_t by = node_[row] - row, limit = next_changed_row() - by;
        const int64_t most = std::min({before_.num_nodes, limit, row + ROWS_AT_A_TIME});
        int64_t end = row + 1;
        while (end < most && node_[end] - end == by) ++end;
        return end;
    }

    void copy_rows(int64_t first, int64_t end) {
        copy_run(after_.degree + row_ * before_.num_types, before_.degree + first * before_.num_types,
                 (end - first) * before_.num_types);
        if (loses_nodes_) {
            for (int64_t row = first; row < end; ++row) copy_row_without_lost(row);
            return;
        }
        const int64_t from = before_.indptr[first], count = before_.indptr[end] - from, by = to_ - from;
        int64_t* const indptr = after_.indptr + row_;
        for (int64_t row = first; row < end; ++row) indptr[row - first] = before_.indptr[row] + by;
        const int32_t* const sources = before_.indices + from;
        int32_t* const to = after_.indices + to_;
        for (int64_t e = 0; e < count; ++e) to[e] = node_[sources[e]];
        if (after_.edge_type != nullptr) copy_run(after_.edge_type + to_, before_.edge_type + from, count);
        if (after_.weight != nullptr) {
            if (before_.weight == nullptr) std::fill_n(after_.weight + to_, count, 1.0f);
            else copy_run(after_.weight + to_, before_.weight + from, count);
        }
        to_ += count, row_ += end - first;
    }

    void copy_row_without_lost(int64_t row) {
        after_.indptr[row_++] = to_;
        for (int64_t e = before_.indptr[row]; e < before_.indptr[row + 1]; ++e) {
            if (node_[before_.indices[e]] < 0) leave_out(row, e);
            else put_entry(e);
        }
    }

    // Sums the degrees of nodes with an entry that came, changed or went.
    void sum_degrees() {
        std::vector<uint8_t> changes(size_t(after_.num_nodes), 0);
        for (int64_t i = 0; i < changed_.count; ++i) changes[size_t(changed_.source[i])] = 1;
        for (int64_t row = 0; loses_nodes_ && row < before_.num_nodes; ++row) {
            if (node_[row] >= 0) continue;
            for (int64_t e = before_.indptr[row]; e < before_.indptr[row + 1]; ++e)
                if (node_[before_.indices[e]] >= 0) changes[size_t(node_[before_.indices[e]])] = 1;
        }
        const int32_t types = before_.num_types;
        const auto add = [&](int64_t to, int64_t e) {
            after_.degree[to * types + (after_.edge_type == nullptr ? 0 : after_.edge_type[e])] +=
                after_.weight == nullptr ? 1.0 : double{after_.weight[e]};
        };
        bool any = false;
        for (int64_t node = 0; node < after_.num_nodes; ++node) {
            if (changes[size_t(node)] == 0) continue;
            any = true;
            std::fill_n(after_.degree + node * types, types, 0.0);
            if (before_.directed) continue;
            // A row has the node's own edges, in the order in which they are stored in all rows.
            for (int64_t e = after_.indptr[node]; e < after_.indptr[node + 1]; ++e) add(node, e);
        }
        if (!before_.directed || !any) return;
        for (int64_t e = 0; e < to_; ++e)
            if (changes[size_t(after_.indices[e])] != 0) add(after_.indices[e], e);
    }
};

}  // namespace

Status continue_rows(const GraphArrays& before, const int32_t* node, const ChangedEntries& changed,
                     const RowsAfter& after, const Execution& execution, int64_t& stored) {
    return status_of([&] {
        stored = Continuation(before, node, changed, after).write(execution);
        return Status::ok;
    });
}

template <class Code>
Status find_pairs(const EdgeEnds<Code>& statements, const int32_t* number, int64_t size, bool directed,
                  const int64_t* pairs, int64_t num_pairs, int64_t* found, int64_t& count) {
    count = 0;
    for (int64_t i = 0; i < statements.count; ++i) {
        int64_t a = number[statements.ends[2 * i] - statements.lowest];
        int64_t b = number[statements.ends[2 * i + 1] - statements.lowest];
        if (a < 0 || b < 0) continue;
        if (!directed && a > b) std::swap(a, b);
        const int64_t key = a * size + b;
        const int64_t* const at = std::lower_bound(pairs, pairs + num_pairs, key);
        if (at == pairs + num_pairs || *at != key) continue;
        found[count++] = i;
    }
    return Status::ok;
}

template <class Code>
Status find_gone(const EdgeEnds<Code>& statements, const Code* passages, const uint8_t* end_gone,
                 const uint8_t* passage_gone, int64_t* found, int64_t& count) {
    count = 0;
    for (int64_t i = 0; i < statements.count; ++i) {
        found[count] = i;
        count += (end_gone[statements.ends[2 * i] - statements.lowest] |
                  end_gone[statements.ends[2 * i + 1] - statements.lowest] | passage_gone[passages[i] + 2]) != 0;
    }
    return Status::ok;
}

template Status find_pairs(const EdgeEnds<int32_t>&, const int32_t*, int64_t, bool, const int64_t*, int64_t, int64_t*,
                           int64_t&);
template Status find_pairs(const EdgeEnds<int64_t>&, const int32_t*, int64_t, bool, const int64_t*, int64_t, int64_t*,
                           int64_t&);
template Status find_gone(const EdgeEnds<int32_t>&, const int32_t*, const uint8_t*, const uint8_t*, int64_t*, int64_t&);
template Status find_gone(const EdgeEnds<int64_t>&, const int64_t*, const uint8_t*, const uint8_t*, int64_t*, int64_t&);

Status joined_below(const RowsView& graph, int64_t rows, int64_t* indptr, int32_t* indices, int64_t* often,
                    int64_t& pairs) {
    std::fill_n(often, graph.num_rows, int64_t{0});
    int64_t to = 0;
    for (int64_t row = 0; row < rows; ++row) {
        indptr[row] = to;
        int32_t last = -1;
        for (int64_t e = graph.indptr[row]; e < graph.indptr[row + 1]; ++e) {
            const int32_t source = graph.indices[e];
            const bool is_new = source >= rows && source != last;
            indices[to] = last = source;
            to += is_new, often[source] += is_new;
        }
    }
    indptr[rows] = pairs = to;
    return Status::ok;
}

}  // namespace hopfuse
