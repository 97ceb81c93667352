// ppr_f32 for one instruction set: divides queries among blocks of lanes. Contract: hopfuse/ppr.h.
#include "kernels.h"
#include "ppr_solve.h"
#include "threads.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

namespace {

// Solves queries in blocks, one after another.
Status solve_in_turn(const PprGraph& graph, const PprQueries& queries, const Outputs& out, Workspace& work,
                     const int64_t* query, int64_t count, Stage* stage) {
    const PprGraph& few = graph.by_length == nullptr ? graph : *graph.by_length;
    while (count > 0) {
        const int taken = ppr_block_queries(count);
        Status status;
        switch (ppr_block_lanes(taken)) {
            case 32: status = solve_block<32>(graph, queries, out, work, query, taken, stage); break;
            case 16: status = solve_block<16>(graph, queries, out, work, query, taken, stage); break;
            case 8: status = solve_block<8>(few, queries, out, work, query, taken, stage); break;
            case 4: status = solve_block<4>(few, queries, out, work, query, taken, stage); break;
            default: status = solve_block<1>(few, queries, out, work, query, taken, stage);
        }
        if (status != Status::ok) return status;
        query += taken, count -= taken;
    }
    return Status::ok;
}

// The same with its own workspace.
Status solve_apart(const PprGraph& graph, const PprQueries& queries, const Outputs& out, const int64_t* query,
                   int64_t count, Stage* stage) {
    const WorkspaceLease work;
    if (!work) return Status::out_of_memory;
    return solve_in_turn(graph, queries, out, *work, query, count, stage);
}

// Solves queries in blocks that walk at the same time, if that is worth it. If too few are left, their block shares all
// threads.
Status solve_group(const PprGraph& graph, const PprQueries& queries, const Outputs& out, const int64_t* query,
                   int64_t count, Stage* stage) {
    const int64_t at_once = ppr_blocks_at_once(graph.num_nodes, graph.num_stored, count, queries.execution.threads);
    if (at_once == 1) return solve_apart(graph, queries, out, query, count, stage);
    const PprDivision parts = ppr_divide(count, at_once);
    const int64_t* const rest = query + PPR_MOST_LANES * parts.wide;
    PprQueries single = queries;
    single.execution.threads = 1;
    Vec<Status> status(size_t(parts.wide + parts.shares), Status::ok);
    parallel_for(parts.wide + parts.shares, 1, on_threads(queries.execution, static_cast<int32_t>(at_once)),
                 [&](int64_t part, int) {
                     const int64_t share = part - parts.wide;
                     const int64_t begin = share < 0 ? 0 : ppr_share_begin(parts, share);
                     const int64_t end = share < 0 ? PPR_MOST_LANES : ppr_share_begin(parts, share + 1);
                     const int64_t* const own = share < 0 ? query + PPR_MOST_LANES * part : rest + begin;
                     status[size_t(part)] = solve_apart(graph, single, out, own, end - begin, stage);
                 });
    for (const Status one : status)
        if (one != Status::ok) return one;
    return parts.shares > 0 ? Status::ok : solve_apart(graph, queries, out, rest, parts.rest, stage);
}

Status run(const PprGraph& graph, const PprQueries& queries, const Outputs& out) {
    const bool proof = out.top != nullptr && out.top->stop_when_proven && out.top->k > 0;
    const Stage first = proof ? stage_proven : stage_tol;
    Vec<Stage> stage(size_t(queries.batch), first);
    Vec<int64_t> group;
    for (int64_t b = 0; b < queries.batch; ++b) out.evidence.iterations[b] = 0;
    for (int now = first; now < stage_done; ++now) {
        group.clear();
        for (int64_t b = 0; b < queries.batch; ++b)
            if (stage[size_t(b)] == now) group.push_back(b);
        const Status status = solve_group(graph, queries, out, group.data(), int64_t(group.size()), stage.data());
        if (status != Status::ok) return status;
    }
    return Status::ok;
}

}  // namespace

Status ppr_f32(const PprGraph& graph, const PprQueries& queries, float* scores, const PprTopk* top,
               const PprEvidence& evidence) {
    if (queries.execution.threads < 1 || !(queries.tol > 0.0)) return Status::bad_argument;
    return status_of([&] { return run(graph, queries, Outputs{scores, top, evidence}); });
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
