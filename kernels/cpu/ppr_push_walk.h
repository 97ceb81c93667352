// The pushes of one query: hopfuse/ppr_push.h, ORDER OF OPERATIONS. Included once per instruction set.
#pragma once

#include <algorithm>
#include <cmath>

#include "hopfuse/ppr_push.h"
#include "ppr_push_memory.h"
#include "threads.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// A query with the state of its walk.
class PushWalk {
public:
    const PprGraph& graph;
    const PprQueries& queries;
    const PprCandidates& candidates;
    const int64_t query;
    const double damping;
    const double* const eta;  // (T,) or null
    PushMemory& memory;

    double scale = 1.0;  // 1 / (1 - d S)
    double rho = 0.0;    // at least max r / deg
    int64_t rounds = 0, rows = 0, entries = 0;
    bool is_defined = true;  // no node with edges has weight 0, and no D is too small
    bool is_guided = false;  // a node with edges has a weight other than 1

    PushWalk(const PprGraph& g, const PprQueries& q, const PprCandidates& c, int64_t number, PushMemory& m)
        : graph(g), queries(q), candidates(c), query(number), damping(q.damping[number]),
          eta(q.eta == nullptr ? nullptr : q.eta + number * g.num_types), memory(m) {
        memory.clear();
        if (q.node_weight != nullptr) read_guide();
        const int64_t begin = q.restart_indptr[number], end = q.restart_indptr[number + 1];
        double total = 0.0, lost = 0.0;
        for (int64_t i = begin; i < end; ++i) total += q.restart_value[i];
        for (int64_t i = begin; i < end; ++i) {
            const int32_t node = q.restart_node[i];
            const double share = std::max(q.restart_value[i] / total, PPR_LEAST_SHARE), deg = degree(node);
            if (deg == 0.0) {
                memory.apart.push_back({node, share});
                lost += share;
                continue;
            }
            memory.residual[node] = share;
            reach(node);
            walks_ += share;
        }
        seeds_ = end - begin;
        scale = 1.0 / (1.0 - damping * lost);
    }

    // Finds rho of the seeds.
    void start() {
        for (const int32_t node : memory.reached) {
            if (is_guided) entries += row_length(node), read(node);
            rho = std::max(rho, memory.residual[node] / least_degree(node));
        }
    }

    // deg_v; with node weights an upper bound of it, until the row is read.
    double degree(int64_t node) const {
        if (is_guided && is_read(node)) return double(memory.guide[node]) * -memory.known[node];
        const double whole = ppr_push_degree(graph.degree + node * graph.num_types, graph.num_types, eta);
        return is_guided ? double(memory.guide[node]) * whole : whole;
    }
    // deg_v; with node weights a lower bound of it, until the row is read.
    double least_degree(int64_t node) const {
        return is_guided ? double(memory.guide[node]) * std::fabs(memory.known[node]) : degree(node);
    }
    bool is_read(int64_t node) const { return memory.known[node] < 0.0; }

    // The weight of an entry, without that of its node.
    double entry_weight(int64_t e) const {
        const double w = graph.weight == nullptr ? 1.0 : double(graph.weight[e]);
        return eta == nullptr ? w : w * eta[graph.edge_type == nullptr ? 0 : graph.edge_type[e]];
    }

    // Computes D of a node from its row, with node weights; its entries are counted by the caller.
    void read(int64_t node) {
        if (is_read(node)) return;
        double sum = 0.0;
        for (int64_t e = graph.indptr[node]; e < graph.indptr[node + 1]; ++e)
            sum += entry_weight(e) * double(memory.guide[graph.indices[e]]);
        is_defined = is_defined && sum > PPR_PUSH_LEAST_SUM;
        memory.known[node] = -sum;
        longest_row_ = std::max(longest_row_, row_length(node));
    }
    int64_t row_length(int64_t node) const { return graph.indptr[node + 1] - graph.indptr[node]; }
    bool is_candidate(int64_t node) const {
        return candidates.bits == nullptr || ((candidates.bits[node >> 6] >> (node & 63)) & 1u) != 0;
    }
    // The candidates that can have a score: those with edges, and seeds without.
    int64_t possible_hits() const {
        int64_t count = candidates.count;
        for (const Seed& seed : memory.apart) count += is_candidate(seed.node) ? 1 : 0;
        return count;
    }
    // Whether no other node than those that have been reached can be.
    bool is_closed() const { return pushed_ == memory.reached.size || damping == 0.0; }

    // Whether no residual is left but what rounding may hide.
    bool is_spent() const { return damping == 0.0 || walks_ - (1.0 - damping) * taken_ <= rounding() / scale; }

    // An upper bound of ||r||_1.
    double left() const { return std::max(walks_ - (1.0 - damping) * taken_, 0.0) + rounding() / scale; }

    // An upper bound of the walk's rounding errors in any score.
    double rounding() const { return scale * ppr_push_rounding(contributions_, rows, seeds_, longest_row_, damping); }

    // Counts the entries of rows that the proof reads.
    void count_look(int64_t volume, int64_t longest_row) {
        entries += volume;
        longest_row_ = std::max(longest_row_, longest_row);
    }

    // Fetches a node's state ahead of its use.
    void prefetch(int64_t node) const {
        __builtin_prefetch(memory.residual + node, 1);
        __builtin_prefetch(memory.estimate + node);
        __builtin_prefetch(graph.degree + node * graph.num_types);
    }

    // Pushes until no node has more than `threshold` of residual for its degree. False: the budget does not suffice.
    bool drain(double threshold, int64_t budget) {
        NodeList<int32_t>& front = memory.front;
        front.clear();
        for (int64_t i = 0; i < memory.reached.size; ++i) {
            if (i + AHEAD < memory.reached.size) prefetch(memory.reached[i + AHEAD]);
            const int32_t node = memory.reached[i];
            front[front.size] = node;
            front.size += memory.residual[node] > threshold * least_degree(node) ? 1 : 0;
        }
        while (front.size > 0) {
            int64_t volume = 0;
            for (const int32_t node : front) volume += row_length(node) * (is_guided && !is_read(node) ? 2 : 1);
            if (entries + volume > budget) {
                rho = largest_residual();
                return false;
            }
            check_stop(queries.execution);
            memory.bits.sort(front);
            take();
            if (!is_defined) return false;
            if (is_guided) push_guided(threshold);
            else push(threshold);
            ++rounds, rows += front.size, entries += volume, contributions_ += volume;
            std::swap(front, memory.next);
        }
        rho = threshold * (1.0 + (is_guided ? double(8 + rows) : 4.0) * PPR_UNIT);
        return true;
    }

private:
    enum class Weights { one, given, typed };

    static constexpr int64_t AHEAD = 12;  // how many nodes or entries ahead their state is fetched

    double walks_ = 0.0, taken_ = 0.0;  // the share of the seeds with edges, and all residual that was taken
    int64_t contributions_ = 0, pushed_ = 0, longest_row_ = 0, seeds_ = 0;

    void reach(int32_t node) {
        memory.reached.push(node);
        if (is_candidate(node)) memory.hits.push(node);
    }

    void read_guide() {
        std::fill_n(memory.guide, graph.num_nodes, queries.other_weight[query]);
        const float* const weights = queries.node_weight + query * queries.num_weighted;
        for (int64_t j = 0; j < queries.num_weighted; ++j) memory.guide[queries.weighted_node[j]] = weights[j];
        for (int64_t node = 0; node < graph.num_nodes; ++node) {
            const bool has_edges = row_length(node) > 0;
            is_guided = is_guided || (has_edges && memory.guide[node] != 1.0f);
            is_defined = is_defined && !(has_edges && memory.guide[node] == 0.0f);
        }
    }

    double largest_residual() const {
        double largest = 0.0;
        for (const int32_t node : memory.reached)
            largest = std::max(largest, memory.residual[node] / least_degree(node));
        return largest * (1.0 + (is_guided ? double(8 + rows) : 4.0) * PPR_UNIT);
    }

    // Takes the residual of the front.
    void take() {
        const NodeList<int32_t>& front = memory.front;
        for (int64_t i = 0; i < front.size; ++i) {
            if (i + AHEAD < front.size) {
                prefetch(front[i + AHEAD]);
                __builtin_prefetch(graph.indptr + front[i + AHEAD]);
            }
            const int32_t node = front[i];
            double& x = memory.estimate[node];
            const double taken = memory.residual[node];
            const bool was_zero = x == 0.0;
            pushed_ += was_zero ? 1 : 0;
            x = x + (1.0 - damping) * taken;
            taken_ += taken;
            memory.residual[node] = TAKEN;
            if (is_guided) {
                read(node);
                memory.gain[i] = was_zero && x > 0.0 ? memory.guide[node] : 0.0f;
            }
            memory.factor[i] = damping * taken / (is_guided ? -memory.known[node] : degree(node));
            longest_row_ = std::max(longest_row_, row_length(node));
        }
    }

    // push with node weights. A node's share of D is known from the pushes that have reached it.
    void push_guided(double threshold) {
        int32_t first = static_cast<int32_t>(graph.num_nodes), last = -1;
        memory.fresh.clear(), memory.next.clear();
        for (int64_t i = 0; i < memory.front.size; ++i) {
            const double factor = memory.factor[i], gain = double(memory.gain[i]);
            const int64_t begin = graph.indptr[memory.front[i]], end = graph.indptr[memory.front[i] + 1];
            for (int64_t e = begin; e < end; ++e) {
                if (e + AHEAD < end) prefetch(graph.indices[e + AHEAD]);
                const int32_t to = graph.indices[e];
                const double w = entry_weight(e), share = factor * (w * double(memory.guide[to]));
                if (!(share > 0.0)) continue;  // damping is 0, the product underflows, or 0 reaches nothing
                double& residual = memory.residual[to];
                if (!is_reached(residual)) memory.fresh.push(to);
                residual = residual + share;
                if (!is_read(to)) memory.known[to] += w * gain;
                memory.bits.mark(to);
                first = std::min(first, to), last = std::max(last, to);
            }
        }
        if (last >= 0) {
            memory.bits.drain(first, last, [&](int32_t node) {
                if (memory.residual[node] > threshold * least_degree(node)) memory.next.push(node);
            });
        }
        for (const int32_t node : memory.fresh) reach(node);
    }

    void push(double threshold) {
        if (eta != nullptr) push_weighted<Weights::typed>(threshold);
        else if (graph.weight != nullptr) push_weighted<Weights::given>(threshold);
        else push_weighted<Weights::one>(threshold);
    }

    template <Weights weights>
    void push_weighted(double threshold) {
        if (2 * graph.num_nodes > PPR_CACHED_NODES) push_rows<weights, true>(threshold);
        else push_rows<weights, false>(threshold);
    }

    // Pushes what was taken; sets the next front. `far`: the state does not fit a core's cache, so it is fetched ahead.
    template <Weights weights, bool far>
    void push_rows(double threshold) {
        // Locals, because the compiler cannot tell that no store changes what a member refers to.
        const int32_t* const front = memory.front.data;
        const double* const factors = memory.factor.data;
        double* const residual = memory.residual;
        const double* const degrees = graph.degree;
        const int64_t* const indptr = graph.indptr;
        const int32_t* const indices = graph.indices;
        const float* const weight = graph.weight;
        const uint8_t* const types = graph.edge_type;
        const double* const type_weight = eta;
        const int64_t count = memory.front.size, num_types = graph.num_types;
        int32_t* next = memory.next.data;
        int32_t* fresh = memory.fresh.data;
        const auto fetch = [=](int32_t node) {
            __builtin_prefetch(residual + node, 1);
            __builtin_prefetch(degrees + (weights == Weights::typed ? node * num_types : node));
        };
        for (int64_t i = 0; i < count; ++i) {
            const double factor = factors[i];
            if (!(factor > 0.0)) continue;  // damping is 0, or the product underflows
            const int64_t begin = indptr[front[i]], end = indptr[front[i] + 1];
            if constexpr (far) {
                constexpr int64_t pointers = 12, rows_ahead = 5, entries_ahead = 2;
                if (i + pointers < count) __builtin_prefetch(indptr + front[i + pointers]);
                if (i + rows_ahead < count) {
                    const int64_t soon = indptr[front[i + rows_ahead]];
                    __builtin_prefetch(indices + soon);
                    if (weights != Weights::one && weight != nullptr) __builtin_prefetch(weight + soon);
                }
                if (i + entries_ahead < count) {
                    const int64_t soon = indptr[front[i + entries_ahead]], last = indptr[front[i + entries_ahead] + 1];
                    for (int64_t e = soon; e < std::min(soon + AHEAD, last); ++e) fetch(indices[e]);
                }
            }
            for (int64_t e = begin; e < end; ++e) {
                const int32_t to = indices[e];
                double share = factor;
                if constexpr (weights == Weights::given) share = factor * double(weight[e]);
                if constexpr (weights == Weights::typed) {
                    const double w = weight == nullptr ? 1.0 : double(weight[e]);
                    share = factor * (w * type_weight[types == nullptr ? 0 : types[e]]);
                }
                if (weights != Weights::one && !(share > 0.0)) continue;  // 0 reaches nothing
                if (far && e + AHEAD < end) fetch(indices[e + AHEAD]);
                const double before = residual[to], after = before + share;
                const double most = threshold * (weights == Weights::typed ? degree(to) : degrees[to]);
                residual[to] = after;
                *next = to;
                next += int(after > most) & int(!(before > most));
                *fresh = to;
                fresh += int(!is_reached(before));
            }
        }
        memory.next.size = next - memory.next.data;
        for (const int32_t* node = memory.fresh.data; node < fresh; ++node) reach(*node);
    }
};

}  // namespace hopfuse::HOPFUSE_ISA_NS
