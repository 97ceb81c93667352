#include "inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <utility>
#include <vector>

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

// Copies the entries with weight; says whether the internal nodes of every row ascend.
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

// The sum of squares, NaN or infinite where an entry is: several sums side by side, so that none waits for the one before.
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

}  // namespace

Status read_restarts(const GivenRestarts& given, const RestartRows& rows, RestartFinding& found) {
    found = check_entries(given);
    if (found.fault != RestartFault::none) return Status::ok;
    try {
        if (!copy_rows(given, rows)) sort_rows(given.batch, rows);
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory;
    }
    found = check_rows(given, rows);
    return Status::ok;
}

VectorFinding first_unscorable(const float* vectors, int64_t count, int64_t dim, bool needs_length) {
    constexpr double largest = 0.5 * double{std::numeric_limits<float>::max()};
    constexpr double smallest = std::numeric_limits<float>::min();
    VectorFinding found;
    for (int64_t row = 0; row < count; ++row) {
        const double norm = squared_norm(vectors + row * dim, dim);
        if (!(norm <= largest)) return {VectorFault::too_large, row};
        const bool is_first = needs_length && norm < smallest && found.fault == VectorFault::none;
        if (is_first) found = {VectorFault::too_small, row};
    }
    return found;
}

}  // namespace hopfuse
