// ppr_push_f64 for one instruction set: queries in parallel, each on one thread. Contract: hopfuse/ppr_push.h.
#include <cmath>
#include <limits>
#include <memory>

#include "kernels.h"
#include "ppr_push_memory.h"
#include "ppr_push_proof.h"
#include "ppr_push_walk.h"
#include "threads.h"
#include "vec.h"
#include "workspace.h"

namespace hopfuse::HOPFUSE_ISA_NS {

namespace {

// Whether a proof is expected to need more entries than the budget has, from how far it is now.
bool is_hopeless(const PushWalk& walk, const PushProof& proof, int64_t budget) {
    const double known = std::sqrt(proof.shortfall), unknown = proof.is_tied ? PPR_PUSH_TIE : PPR_PUSH_UNKNOWN;
    const double factor = proof.shortfall < infinite64() ? known : unknown;
    const bool is_late = double(walk.entries) > PPR_PUSH_TRIAL * double(budget);
    return is_late && factor * double(walk.entries) > double(budget);
}

// Whether a query is walked at all: with `gives_up`, not if the rows of its seeds take too much of the budget.
bool is_walked(const PprGraph& graph, const PprQueries& queries, int64_t query, int64_t budget, bool gives_up) {
    int64_t volume = 0;
    for (int64_t i = queries.restart_indptr[query]; gives_up && i < queries.restart_indptr[query + 1]; ++i)
        volume += graph.indptr[queries.restart_node[i] + 1] - graph.indptr[queries.restart_node[i]];
    return budget > 0 && double(volume) <= PPR_PUSH_SEEDS * double(budget);
}

void search(PushWalk& walk, PushProof& proof, int64_t budget, bool gives_up) {
    walk.start();
    double threshold = walk.rho * PPR_PUSH_STEP;
    for (;;) {
        const bool goes_on = walk.is_defined && walk.drain(threshold, budget);
        if (!walk.is_defined) return;
        proof.attempt();
        if (proof.shortfall < 1.0 || !goes_on || !walk.is_defined || walk.is_spent()) return;
        if (gives_up && is_hopeless(walk, proof, budget)) return;
        threshold = ppr_push_threshold(walk.rho, proof.shortfall);
        if (!(threshold > 0.0)) return;
    }
}

void write_list(const PushWalk& walk, PushProof& proof, const PprTopk& top) {
    const int64_t count = proof.finish();
    for (int64_t i = 0; i < top.width; ++i) {
        const int64_t at = walk.query * top.width + i;
        top.ids[at] = -1, top.scores[at] = -std::numeric_limits<float>::infinity(), top.score_bounds[at] = 0.0f;
        if (i >= count) continue;
        const Contender& hit = walk.memory.contenders[size_t(i)];
        const double score = hit.score(), rounded = PPR_ROUNDED * score + PPR_LEAST;
        top.ids[at] = hit.id, top.scores[at] = static_cast<float>(score);
        top.score_bounds[at] = round_above(0.5 * hit.width + walk.rounding() + rounded);
    }
    top.counts[walk.query] = count;
    top.proven[walk.query] = proof.shortfall < 1.0 ? 1 : 0;
}

void write_evidence(const PushWalk& walk, double tol, const PprEvidence& evidence, const PprPushEvidence& counts) {
    const int64_t b = walk.query;
    const double open = walk.scale * walk.damping * walk.left();
    evidence.iterations[b] = 0;
    evidence.residual[b] = (1.0 - walk.damping) * open;
    evidence.bound[b] = (open + walk.rounding()) * (1.0 + 4.0 * PPR_UNIT);
    evidence.converged[b] = evidence.bound[b] <= tol ? 1 : 0;
    counts.rounds[b] = walk.rounds, counts.rows[b] = walk.rows, counts.entries[b] = walk.entries;
}

struct Worker {
    WorkspaceLease work;
    PushMemory memory;
};

}  // namespace

Status ppr_push_f64(const PprGraph& graph, const PprQueries& queries, const PprPush& push, const PprTopk& top,
                    const PprEvidence& evidence, const PprPushEvidence& counts) {
    const int32_t most = queries.execution.threads;
    if (most < 1 || !(queries.tol > 0.0) || top.k < 1) return Status::bad_argument;
    return status_of([&] {
        const int32_t threads = queries.batch < most ? static_cast<int32_t>(queries.batch) : most;
        const std::unique_ptr<Worker[]> workers(new Worker[size_t(threads < 1 ? 1 : threads)]);
        parallel_for(queries.batch, 1, on_threads(queries.execution, threads < 1 ? 1 : threads),
                     [&](int64_t query, int thread) {
                         Worker& worker = workers[size_t(thread)];
                         if (!worker.work ||
                             !worker.memory.reserve(*worker.work, graph.num_nodes, queries.node_weight != nullptr))
                             throw std::bad_alloc();
                         PushWalk walk(graph, queries, push.candidates, query, worker.memory);
                         PushProof proof(walk, top, push.budget[query]);
                         const int64_t budget = push.budget[query];
                         if (is_walked(graph, queries, query, budget, push.gives_up))
                             search(walk, proof, budget, push.gives_up);
                         write_list(walk, proof, top);
                         write_evidence(walk, queries.tol, evidence, counts);
                     });
        return Status::ok;
    });
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
