// Handles lists that the certificate of x^ does not prove: by one step of iterative refinement, local bounds around nodes,
// and blocks with fewer lanes for the few lists that need more. Included once per instruction set.
#pragma once

#include <algorithm>
#include <limits>

#include "hopfuse/ppr_settle.h"
#include "ppr_answers.h"
#include "ppr_local.h"
#include "ppr_refine.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// The stages of a query: stop when proven (top-k only), otherwise by tol, whose result is final. The second stage starts
// from the beginning, so its result does not depend on the batch.
enum Stage { stage_proven, stage_tol, stage_done };

// The progress of a lane's query.
struct Course : PprProgress {
    bool is_early;  // the walk stopped by proof; if the list is unproven and above tol, the query walks again, by tol
};

// A block whose x^ is certified and ranked.
template <int L>
struct Certified {
    PprBlock<L>& block;
    const Outputs& out;
    Stage* stage;  // (B,) receives the next stage of each query
    PprCertificate<L> certificate;
    RankedLists<L> lists;
    Course course[L];
    float* spare = nullptr;  // (N, L) for refined scores

    // Writes the answers of some lanes, or marks them to fall back.
    void finish(const Lanes<L>& lanes) {
        Lanes<L> write;
        lanes.each([&](int lane) {
            const int64_t b = block.query[lane];
            const bool is_met = certificate.bound[lane] <= block.queries.tol;
            write[lane] = lists.is_proven(lane) || !course[lane].is_early || is_met;
            stage[b] = write[lane] ? stage_done : stage_tol;
            out.evidence.iterations[b] += course[lane].passes;
        });
        if (!write.any()) return;
        write_evidence<L>(block, write.has, certificate, out.evidence);
        if (out.scores != nullptr) write_scores<L>(block, write.has, out.scores);
        if (out.top != nullptr) write_topk<L>(block, write.has, certificate, lists, *out.top);
    }

    // Plans a lane's next look, if more passes may prove its list.
    bool plan_look(int lane) {
        return ppr_plan_look(course[lane], block.damping[lane], lists.shortfall[lane], out.top->prove_order,
                             block.longest_row[lane], block.queries.max_iter) > 0;
    }
};

// Ends a look at refined lanes: those that are proven or gain no more are finished and no longer open.
template <int L>
void end_look(Certified<L>& c, Lanes<L>& open, const Lanes<L>& lanes) {
    Lanes<L> finished;
    lanes.each([&](int lane) {
        finished[lane] = c.lists.is_proven(lane) || !c.plan_look(lane);
        open[lane] = !finished[lane];
    });
    c.finish(finished);
}

// Refines the open lanes up to their looks, ranks their lists again and tries to prove them, also by local bounds. Lanes that
// stay open keep x^. False: no memory.
template <int L>
bool refine_lists(Certified<L>& c, Lanes<L>& open) {
    PprBlock<L>& block = c.block;
    int64_t look[L];
    Lanes<L> looking, others;
    for (int lane = 0; lane < L; ++lane) look[lane] = c.course[lane].look;
    const size_t state = size_t(block.graph.num_nodes) * L;
    if (c.spare == nullptr) c.spare = block.work.template reserve<float>(slot_remainder, state);
    if (c.spare == nullptr) return false;
    const PprCertificate<L> before = c.certificate;
    LocalBounds<L> bounds = refine<L>(block, open, look, c.certificate, c.spare);
    if (bounds.local == nullptr) return false;
    open.each([&](int lane) { c.lists.error[lane] = ppr_refined_error(c.certificate.per_degree[lane]); });
    std::swap(block.result, c.spare);
    if (!c.lists.rank(block, *c.out.top, open.has)) return false;
    open.each([&](int lane) {
        const double shortfall = c.lists.shortfall[lane];
        looking[lane] = !c.lists.is_proven(lane) && ppr_may_look_around(shortfall) &&
                        ppr_allows(c.course[lane], block.queries.max_iter, 1);
        others[lane] = !looking[lane];
    });
    end_look<L>(c, open, others);
    if (looking.any()) {
        if (!look_around<L>(block, bounds)) return false;
        looking.each([&](int lane) {
            c.lists.error[lane] = ppr_refined_error(bounds.bound[lane]);
            c.course[lane].passes += 1;
        });
        c.lists.local = bounds.local;
        c.lists.prove(block, *c.out.top, looking.has);
        end_look<L>(c, open, looking);
        c.lists.local = nullptr;
    }
    std::swap(block.result, c.spare);
    c.certificate = before;
    return true;
}

template <int L>
Status settle_apart(Certified<L>& c, const Lanes<L>& open);

// Whether lanes are worth a block of their own, at most `share` of this one.
template <int L>
bool are_few(const Lanes<L>& lanes, int share) {
    return ppr_block_lanes(lanes.count()) * share <= L;
}

// The lanes whose looks are so much later than those of others that they are better continued in a block of their own: a pass
// of few lanes takes a quarter of the time, and moving lanes as long as a pass.
template <int L>
Lanes<L> later_lanes(const Certified<L>& c, const Lanes<L>& open) {
    int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
    open.each([&](int lane) {
        first = std::min(first, c.course[lane].look);
        last = std::max(last, c.course[lane].look);
    });
    Lanes<L> later;
    if (4 * (last - first) <= last + 4) return later;
    open.each([&](int lane) { later[lane] = c.course[lane].look > first; });
    return are_few<L>(later, 4) ? later : Lanes<L>();
}

// Settles the open lanes, whose bound per node holds and whose looks are planned. A lane's result does not depend on other
// lanes; only the block in which it is computed does.
template <int L>
Status settle(Certified<L>& c, Lanes<L> open, bool may_part) {
    Lanes<L> apart;
    while (open.any() && !(may_part && are_few<L>(open, 2))) {
        const Lanes<L> later = may_part ? later_lanes<L>(c, open) : Lanes<L>();
        later.each([&](int lane) { apart[lane] = true, open[lane] = false; });
        if (!later.any() && !refine_lists<L>(c, open)) return Status::out_of_memory;
    }
    open.each([&](int lane) { apart[lane] = true; });
    return apart.any() ? settle_apart<L>(c, apart) : Status::ok;
}

// What moves with a query to a block of fewer lanes, apart from its states.
struct Moved {
    int64_t query;
    Course course;
    double residual, bound, per_degree, shortfall;
    NodeError error;
    int64_t found;
    const Ranked* selected;
};

// Settles `count` queries in a separate block, from its states: x^, and the correction that certify filled in.
template <int L>
Status settle_moved(const PprGraph& graph, PprQueries queries, const Outputs& out, Workspace& work, Stage* stage,
                    const Moved* moved, int count, float* x, float* rho) {
    queries.execution.threads = ppr_threads(graph.num_nodes, graph.num_stored, L, queries.execution.threads);
    PprBlock<L> block(graph, queries, work);
    int64_t query[L];
    for (int lane = 0; lane < count; ++lane) query[lane] = moved[lane].query;
    block.take(query, count);
    if (!setup_block<L>(block)) return Status::out_of_memory;
    block.result = x, block.correction = rho;
    Certified<L> c{block, out, stage, {}, RankedLists<L>(out.top), {}};
    Lanes<L> open;
    for (int lane = 0; lane < count; ++lane) {
        const Moved& own = moved[lane];
        open[lane] = true;
        c.course[lane] = own.course;
        c.certificate.residual[lane] = own.residual;
        c.certificate.bound[lane] = own.bound, c.certificate.per_degree[lane] = own.per_degree;
        c.lists.shortfall[lane] = own.shortfall, c.lists.error[lane] = own.error, c.lists.found[lane] = own.found;
        std::copy_n(own.selected, own.found, c.lists.selected.begin() + lane * (out.top->k + 1));
    }
    return settle<L>(c, open, false);
}

// Copies some lanes of x^ and of the correction to states of `width` lanes with the rows of `stored`; their other lanes become
// 0.
template <int L>
void move_lanes(const PprBlock<L>& block, const int* lanes, int count, const PprGraph& stored, int width, float* x,
                float* correction) {
    const auto move = [&](const float* from, float* to) {
        for (int i = 0; i < count; ++i) to[i] = from[lanes[i]];
        std::fill(to + count, to + width, 0.0f);
    };
    parallel_for(block.graph.num_nodes, block.queries.execution, [&](int64_t row, int) {
        const int64_t moved = row_of_node(stored, node_of_row(block.graph, row)) * width;
        for (int line = 0; line < L; line += 16) {
            prefetch_beyond(block.result + row * L + line, 16 * L * int64_t{sizeof(float)});
            prefetch_beyond(block.correction + row * L + line, 16 * L * int64_t{sizeof(float)});
        }
        move(block.result + row * L, x + moved);
        move(block.correction + row * L, correction + moved);
    });
}

// Moves the open lanes of a block to blocks with fewer lanes. The block's content is not used afterwards.
template <int L>
Status settle_apart(Certified<L>& c, const Lanes<L>& open) {
    constexpr int narrower = L == 4 ? 1 : L / 2;
    const PprBlock<L>& block = c.block;
    const PprGraph& graph = block.graph;
    const PprGraph& few = graph.by_length == nullptr ? graph : *graph.by_length;
    int lanes[L], count = 0;
    Moved moved[L];
    open.each([&](int lane) {
        moved[count] = {block.query[lane],
                        c.course[lane],
                        c.certificate.residual[lane],
                        c.certificate.bound[lane],
                        c.certificate.per_degree[lane],
                        c.lists.shortfall[lane],
                        c.lists.error[lane],
                        c.lists.found[lane],
                        c.lists.selected.data() + lane * (c.out.top->k + 1)};
        lanes[count++] = lane;
    });
    // Calls call(first, some, width, size) for each new block, where size is that of a state.
    const auto each_block = [&](const auto& call) {
        for (int first = 0; first < count; first += narrower) {
            const int some = std::min(count - first, narrower), width = ppr_block_lanes(some);
            call(first, some, width, graph.num_nodes * width);
        }
    };
    int64_t room = 0;
    each_block([&](int, int, int, int64_t size) { room += 2 * size; });
    float* const states = block.work.template reserve<float>(slot_moved, size_t(room));
    if (states == nullptr) return Status::out_of_memory;
    float* at = states;  // all states are moved first, because the new blocks use the memory of this one
    each_block([&](int first, int some, int width, int64_t size) {
        const PprGraph& stored = width > PPR_FEW_LANES ? graph : few;
        move_lanes<L>(block, lanes + first, some, stored, width, at, at + size);
        at += 2 * size;
    });
    at = states;
    Status status = Status::ok;
    each_block([&](int first, int some, int width, int64_t size) {
        if (status != Status::ok) return;
        const auto in = [&](const PprGraph& stored, auto lanes_there) {
            return settle_moved<lanes_there()>(stored, block.queries, c.out, block.work, c.stage, moved + first, some,
                                               at, at + size);
        };
        switch (width) {
            case 16: status = in(graph, std::integral_constant<int, 16>()); break;
            case 8: status = in(few, std::integral_constant<int, 8>()); break;
            case 4: status = in(few, std::integral_constant<int, 4>()); break;
            default: status = in(few, std::integral_constant<int, 1>());
        }
        at += 2 * size;
    });
    return status;
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
