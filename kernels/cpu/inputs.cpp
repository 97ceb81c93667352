#include "inputs.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "hopfuse/node_weights.h"
#include "threads.h"

namespace hopfuse {

namespace {

RestartFinding check_entries(const GivenRestarts& given) {
    const int64_t entries = given.indptr[given.batch];
    for (int64_t e = 0; e < entries; ++e)
        if (given.node[e] < -1 || given.node[e] >= given.num_nodes) return {RestartFault::outside, e};
    for (int64_t e = 0; e < entries; ++e)
        if (given.node[e] >= 0 && !(given.weight[e] >= 0.0 && std::isfinite(given.weight[e])))
            return {RestartFault::bad_weight, e};
    return {};
}

// Copies the entries with a weight above 0; returns whether the internal nodes of every row ascend.
bool copy_rows(const GivenRestarts& given, const RestartRows& rows) {
    bool ascends = true;
    int64_t end = 0;
    for (int64_t row = 0; row < given.batch; ++row) {
        rows.indptr[row] = end;
        for (int64_t e = given.indptr[row]; e < given.indptr[row + 1]; ++e) {
            if (given.node[e] < 0 || given.weight[e] == 0.0) continue;
            rows.node[end] = given.internal_of[given.node[e]];
            rows.weight[end] = given.weight[e];
            ascends = ascends && (end == rows.indptr[row] || rows.node[end - 1] < rows.node[end]);
            ++end;
        }
    }
    rows.indptr[given.batch] = end;
    return ascends;
}

void sort_rows(int64_t batch, const RestartRows& rows) {
    std::vector<std::pair<int32_t, double>> entries;
    for (int64_t row = 0; row < batch; ++row) {
        const int64_t begin = rows.indptr[row], end = rows.indptr[row + 1];
        entries.clear();
        for (int64_t e = begin; e < end; ++e) entries.emplace_back(rows.node[e], rows.weight[e]);
        std::sort(entries.begin(), entries.end());
        for (int64_t e = begin; e < end; ++e) {
            rows.node[e] = entries[size_t(e - begin)].first;
            rows.weight[e] = entries[size_t(e - begin)].second;
        }
    }
}

RestartFinding check_rows(const GivenRestarts& given, const RestartRows& rows) {
    for (int64_t row = 0; row < given.batch && !given.may_be_empty; ++row)
        if (rows.indptr[row] == rows.indptr[row + 1]) return {RestartFault::empty_row, row};
    for (int64_t row = 0; row < given.batch; ++row) {
        double sum = 0.0;
        for (int64_t e = rows.indptr[row]; e < rows.indptr[row + 1]; ++e) sum += rows.weight[e];
        if (std::isinf(sum)) return {RestartFault::sum_beyond, row};
    }
    return {};
}

// Whether a node has entries and the query allows it.
struct Reachable {
    const GivenNodeWeights& given;
    const uint8_t* allow;  // (N,) or null

    bool operator()(int64_t node) const {
        return given.has_entries[node] != 0 && (allow == nullptr || allow[node] != 0);
    }
    bool any_other() const {
        for (int64_t node = 0; node < given.num_nodes; ++node)
            if (given.is_weighted[node] == 0 && (*this)(node)) return true;
        return false;
    }
};

template <class T>
bool is_weight(T weight) {
    return (weight >= T(0)) & (weight <= std::numeric_limits<T>::max());
}

// The largest weight. Several independent maxima avoid one long chain.
template <class T>
T largest_of(const T* own, int64_t columns) {
    constexpr int lanes = 16;
    T largest[lanes] = {};
    int64_t j = 0;
    for (; j + lanes <= columns; j += lanes)
        for (int i = 0; i < lanes; ++i) largest[i] = own[j + i] > largest[i] ? own[j + i] : largest[i];
    for (; j < columns; ++j) largest[0] = std::max(largest[0], own[j]);
    return *std::max_element(largest, largest + lanes);
}

// The largest weight of a node that is reachable, 0 if there is none; `most` is the largest of all.
template <class T>
T largest_reachable(const T* own, const GivenNodeWeights& given, const Reachable& reachable, T most) {
    const T* const at = std::find(own, own + given.columns, most);
    if (at == own + given.columns || reachable(given.node[at - own])) return most;
    T largest = T(0);
    for (int64_t j = 0; j < given.columns; ++j)
        if (own[j] > largest && reachable(given.node[j])) largest = own[j];
    return largest;
}

template <class T>
NodeWeightFinding read_weights(const GivenNodeWeights& given, const T* all, float* weight, float* other_weight) {
    for (int64_t row = 0; row < given.batch; ++row) {
        const int64_t first = given.allow_shared ? 0 : row * given.num_nodes;
        const Reachable reachable{given, given.allow == nullptr ? nullptr : given.allow + first};
        const T* const own = all + row * given.columns;
        int64_t bad = 0;
        for (int64_t j = 0; j < given.columns; ++j) bad += is_weight(own[j]) ? 0 : 1;
        for (int64_t j = 0; j < given.columns && bad > 0; ++j)
            if (!is_weight(own[j])) return {NodeWeightFault::bad_weight, row, j};
        const T largest_of_all = largest_of<T>(own, given.columns);
        T largest = largest_reachable<T>(own, given, reachable, largest_of_all);
        if (largest < T(1) && reachable.any_other()) largest = T(1);
        if (given.columns > 0 && largest_of_all == T(0)) return {NodeWeightFault::all_zero, row, 0};
        const NodeWeightScale scale = node_weight_scale(weight_that_scales(largest, largest_of_all));
        for (int64_t j = 0; j < given.columns; ++j) weight[row * given.columns + j] = read_node_weight(scale, own[j]);
        other_weight[row] = read_node_weight(scale, T(1));
    }
    return {};
}

// The sum of squares, NaN or infinite if an entry is. Several independent sums avoid one long chain of additions.
double squared_norm(const float* vector, int64_t dim) {
    constexpr int lanes = 8;
    double sum[lanes] = {};
    int64_t i = 0;
    for (; i + lanes <= dim; i += lanes)
        for (int lane = 0; lane < lanes; ++lane) {
            const double entry = vector[i + lane];
            sum[lane] += entry * entry;
        }
    double total = 0.0;
    for (; i < dim; ++i) total += double{vector[i]} * double{vector[i]};
    for (double part : sum) total += part;
    return total;
}

// The same in float32, roughly: for fewer than 2^31 nonnegative terms, rounding makes the sum at most twice too large or six
// times too small.
float rough_norm(const float* vector, int64_t dim) {
    constexpr int lanes = 16;
    float sum[lanes] = {};
    int64_t i = 0;
    for (; i + lanes <= dim; i += lanes)
        for (int lane = 0; lane < lanes; ++lane) sum[lane] += vector[i + lane] * vector[i + lane];
    float total = 0.0f;
    for (; i < dim; ++i) total += vector[i] * vector[i];
    for (float part : sum) total += part;
    return total;
}

constexpr double largest_norm = 0.5 * double{std::numeric_limits<float>::max()};
constexpr double smallest_norm = std::numeric_limits<float>::min();
// A rough norm between these is certainly within the limits; 2^31 squares that round to 0 add up to 1.5e-36.
constexpr float surely_small = 2e37f, surely_large = 1e-35f;

// The first vectors with a fault that threads have found.
struct VectorCheck {
    const float* vectors;
    int64_t dim;
    bool needs_length;
    mutable std::atomic<int64_t> first_large, first_small;

    void run(int64_t begin, int64_t end) const {
        for (int64_t row = begin; row < end && row < first_large.load(std::memory_order_relaxed); ++row) {
            const float* vector = vectors + row * dim;
            const float rough = rough_norm(vector, dim);
            if (rough <= surely_small && (rough >= surely_large || !needs_length)) continue;
            const double norm = squared_norm(vector, dim);
            if (!(norm <= largest_norm)) lower(first_large, row);
            else if (norm < smallest_norm) lower(first_small, row);
        }
    }

    static void lower(std::atomic<int64_t>& first, int64_t row) {
        int64_t seen = first.load(std::memory_order_relaxed);
        while (row < seen && !first.compare_exchange_weak(seen, row, std::memory_order_relaxed)) {
        }
    }
};

}  // namespace

Status read_restarts(const GivenRestarts& given, const RestartRows& rows, RestartFinding& found) {
    found = check_entries(given);
    if (found.fault != RestartFault::none) return Status::ok;
    return status_of([&] {
        if (!copy_rows(given, rows)) sort_rows(given.batch, rows);
        found = check_rows(given, rows);
        return Status::ok;
    });
}

Status read_node_weights(const GivenNodeWeights& given, float* weight, float* other_weight, NodeWeightFinding& found) {
    return status_of([&] {
        found = given.single != nullptr ? read_weights(given, given.single, weight, other_weight)
                                        : read_weights(given, given.wide, weight, other_weight);
        return Status::ok;
    });
}

Status first_unscorable(const float* vectors, int64_t count, int64_t dim, bool needs_length, const Execution& execution,
                        VectorFinding& found) {
    constexpr int64_t values = 1 << 16;  // per chunk: enough work for another thread
    VectorCheck check{vectors, dim, needs_length, {count}, {count}};
    const ChunkBody body = [](const void* context, int64_t begin, int64_t end, int) {
        static_cast<const VectorCheck*>(context)->run(begin, end);
    };
    return status_of([&] {
        run_chunks(count, 1 + values / (dim + 1), execution, body, &check);
        found = {};
        if (check.first_large < count) found = {VectorFault::too_large, check.first_large};
        else if (needs_length && check.first_small < count) found = {VectorFault::too_small, check.first_small};
        return Status::ok;
    });
}

}  // namespace hopfuse
