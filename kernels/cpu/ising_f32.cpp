// ising_f32 for one instruction set: threads over queries. Contract: hopfuse/ising.h.
#include "hopfuse/ising.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels.h"
#include "threads.h"
#include "topk.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

namespace {

// A candidate and one of its neighbours.
struct Incidence {
    int32_t node, candidate;
    double weight;
};

struct ByNode {
    bool operator()(const Incidence& a, const Incidence& b) const {
        return a.node < b.node || (a.node == b.node && a.candidate < b.candidate);
    }
};

constexpr size_t ISING_ROOM = size_t{1} << 30;  // bytes for all threads together, if more than one runs

// A thread's buffers for one query, allocated before the loop.
struct Scratch {
    Vec<Incidence> incidences;
    Vec<double> shared;   // S, row after row
    Vec<float> coupling;  // A
    Vec<float> h, m, next;
    Vec<Ranked> ranked;

    Scratch(size_t entries, size_t width)
        : incidences(entries), shared(width * width), coupling(width * width), h(width), m(width), next(width),
          ranked(width) {}
};

struct Row {
    int64_t begin, end;
};

Row row_of(const IsingGraph& graph, int64_t id) {
    const int32_t node = graph.internal_of[id];
    return {graph.indptr[node], graph.indptr[node + 1]};
}

// The largest number of stored entries that the candidates of a query have.
int64_t most_entries(const IsingArgs& args) {
    int64_t most = 0;
    for (int64_t b = 0; b < args.batch; ++b) {
        int64_t total = 0;
        for (int64_t i = 0; i < args.counts[b]; ++i) {
            const Row row = row_of(args.graph, args.ids[b * args.width + i]);
            total += row.end - row.begin;
        }
        most = std::max(most, total);
    }
    return most;
}

// Computes S, neighbour by neighbour in ascending order, so that each entry is summed in the order of the contract.
void share_neighbours(const IsingGraph& graph, const int64_t* ids, int64_t n, Scratch& scratch) {
    Incidence* const first = scratch.incidences.data();
    Incidence* last = first;
    for (int64_t i = 0; i < n; ++i) {
        const Row row = row_of(graph, ids[i]);
        for (int64_t e = row.begin; e < row.end;) {
            const int32_t node = column_at(graph.entries, e);
            *last++ = {node, int32_t(i), neighbour_weight(graph, e, row.end)};
        }
    }
    std::sort(first, last, ByNode{});
    std::fill_n(scratch.shared.begin(), n * n, 0.0);
    for (const Incidence *begin = first, *end; begin < last; begin = end) {
        for (end = begin + 1; end < last && end->node == begin->node;) ++end;
        for (const Incidence* a = begin; a < end; ++a)
            for (const Incidence* b = a + 1; b < end; ++b) {
                double& entry = scratch.shared[size_t(a->candidate * n + b->candidate)];
                entry = entry + a->weight * b->weight;
                scratch.shared[size_t(b->candidate * n + a->candidate)] = entry;
            }
    }
}

void rerank_query(const IsingArgs& args, int64_t b, Scratch& scratch) {
    const IsingModel& model = args.model;
    const int64_t n = args.counts[b];
    const int64_t* const ids = args.ids + b * args.width;
    const Alone team;
    float* const h = scratch.h.data();
    float *m = scratch.m.data(), *next = scratch.next.data();
    float* const coupling = scratch.coupling.data();
    double* const shared = scratch.shared.data();
    if (n > 0) ising_field(team, args.scores + b * args.width, n, h);
    share_neighbours(args.graph, ids, n, scratch);
    for (int64_t i = 0; i < n; ++i) {
        double* const raw = shared + i * n;
        ising_row(team, n, raw, coupling + i * n, [=](int64_t j) { return raw[j]; });
        m[i] = ising_start(model, h[i]);
    }
    for (int32_t step = 0; step < model.steps; ++step) {
        check_stop(args.execution);
        for (int64_t i = 0; i < n; ++i)
            next[i] = ising_step(model, h[i], m[i], ising_mean(team, n, coupling + i * n, m));
        std::swap(m, next);
    }
    for (int64_t i = 0; i < n; ++i) scratch.ranked[size_t(i)] = {ising_score(model, h[i], m[i]), ids[i]};
    const int64_t count = rank_best(scratch.ranked.data(), n, args.k);
    for (int64_t i = 0; i < args.k; ++i) {
        const Ranked* const hit = i < count ? &scratch.ranked[size_t(i)] : nullptr;
        args.out_ids[b * args.k + i] = hit != nullptr ? hit->id : -1;
        args.out_scores[b * args.k + i] = hit != nullptr ? hit->score : -std::numeric_limits<float>::infinity();
    }
    args.out_counts[b] = count;
}

Status rerank(const IsingArgs& args) {
    const size_t entries = size_t(most_entries(args)), width = size_t(std::max<int64_t>(args.width, 1));
    const size_t fit = ISING_ROOM / (entries * sizeof(Incidence) + width * width * (sizeof(double) + sizeof(float)));
    const int threads = size_t(args.execution.threads) <= fit ? args.execution.threads : fit > 1 ? int(fit) : 1;
    Vec<Scratch> scratch;  // each constructed in place: a copy would lose its reserved capacity
    scratch.reserve(size_t(threads));
    while (scratch.size() < size_t(threads)) scratch.emplace_back(entries, width);
    parallel_for(args.batch, 4, on_threads(args.execution, threads),
                 [&](int64_t b, int thread) { rerank_query(args, b, scratch[size_t(thread)]); });
    return Status::ok;
}

}  // namespace

Status ising_f32(const IsingArgs& args) {
    if (args.width > ISING_CANDIDATES || args.execution.threads < 1) return Status::bad_argument;
    return status_of([&] { return rerank(args); });
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
