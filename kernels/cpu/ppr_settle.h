// Handles lists that the certificate of x^ does not prove: by local bounds around nodes, one step of iterative refinement,
// and blocks with fewer lanes for the few lists that need them. Included once per instruction set.
#pragma once

#include "ppr_answers.h"
#include "ppr_local.h"
#include "ppr_refine.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// The stages of a query: stop when proven (top-k only), otherwise by tol, whose result is final. The second stage starts
// from the beginning, so its result does not depend on the batch.
enum Stage { stage_proven, stage_tol, stage_done };

inline int fewest_lanes(int count) {
    return count > 16 ? 32 : count > PPR_FEW_LANES ? 16 : count > 4 ? 8 : count > 1 ? 4 : 1;
}

// The progress of a lane's query.
struct Course {
    int64_t passes;   // so far, including the certifying one
    bool falls_back;  // it stopped by proof, above tol: if unproven, the query walks again, by tol
    int64_t look;     // the pass of a refinement after which to look next, or 0
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
            write[lane] = lists.is_proven(lane) || !course[lane].falls_back;
            stage[b] = write[lane] ? stage_done : stage_tol;
            out.evidence.iterations[b] += course[lane].passes;
        });
        if (!write.any()) return;
        write_evidence<L>(block, write.has, certificate, out.evidence);
        if (out.scores != nullptr) write_scores<L>(block, write.has, out.scores);
        if (out.top != nullptr) write_topk<L>(block, write.has, certificate, lists, *out.top);
    }

    // Whether max_iter allows a lane this many more passes.
    bool allows(int lane, int64_t more) const {
        const int64_t most = block.queries.max_iter;
        return most == 0 || course[lane].passes + more <= most;
    }

    bool may_look(int lane, int steps) const {
        return ppr_may_step(steps, lists.shortfall[lane], out.top->prove_order) && allows(lane, 1);
    }

    // The pass of a refinement after which to look next, or 0. Passes of earlier looks are already counted.
    int64_t next_look(int lane) const {
        const int64_t done = course[lane].look;
        const int64_t next = ppr_next_look(block.damping[lane], done, lists.shortfall[lane]);
        const bool may = !course[lane].falls_back && ppr_may_correct(block.longest_row[lane]);
        return may && next > 0 && allows(lane, next - done + (done == 0 ? 1 : 0)) ? next : 0;
    }
};

// Tries to prove the lanes in `looking` by local bounds, step by step. Lanes that are proven or may not be refined are finished
// and no longer open. False: no memory.
template <int L>
bool look_around(Certified<L>& c, Lanes<L>& open, Lanes<L> looking) {
    PprBlock<L>& block = c.block;
    Lanes<L> finished;
    LocalBounds<L> bounds = begin_local<L>(block, c.certificate.per_degree);
    c.lists.local = bounds.local;
    while (looking.any()) {
        const size_t state = size_t(block.graph.num_nodes) * L;
        float* to = bounds.steps == 0 ? block.next : block.work.template reserve<float>(slot_remainder, state);
        if (!step_local<L>(block, *c.out.top, bounds, to)) return false;
        looking.each([&](int lane) {
            c.lists.error[lane] = ppr_local_error(bounds.beyond[lane], block.slack[lane]);
            c.course[lane].passes += 1;
        });
        c.lists.prove(block, *c.out.top, looking.has);
        for (int lane = 0; lane < L; ++lane) {
            const bool ends = looking[lane] && (c.lists.is_proven(lane) || !c.may_look(lane, bounds.steps));
            finished[lane] = ends && (c.lists.is_proven(lane) || c.next_look(lane) == 0);
            open[lane] = open[lane] && !finished[lane];
            looking[lane] = looking[lane] && !ends;
        }
        c.finish(finished);
    }
    c.lists.local = nullptr;
    return true;
}

// Ends a look at refined lanes. Those that are proven or gain no more are finished and no longer open; the others get a
// later look.
template <int L>
void end_look(Certified<L>& c, Lanes<L>& open, const Lanes<L>& lanes) {
    Lanes<L> finished;
    for (int lane = 0; lane < L; ++lane) {
        Course& course = c.course[lane];
        const int64_t next = lanes[lane] && !c.lists.is_proven(lane) ? c.next_look(lane) : 0;
        finished[lane] = lanes[lane] && next == 0;
        open[lane] = open[lane] && !finished[lane];
        if (next > 0) course.passes += next - course.look - 1, course.look = next;
    }
    c.finish(finished);
}

// Refines the open lanes up to their looks, ranks their lists again and tries to prove them by one step of local bounds.
// Lanes that stay open keep x^. False: no memory.
template <int L>
bool refine_lists(Certified<L>& c, Lanes<L>& open) {
    PprBlock<L>& block = c.block;
    int64_t look[L];
    Lanes<L> looking, others;
    for (int lane = 0; lane < L; ++lane) {
        look[lane] = c.course[lane].look;
        if (open[lane]) c.course[lane].passes += 1;
    }
    const size_t state = size_t(block.graph.num_nodes) * L;
    if (c.spare == nullptr) c.spare = block.work.template reserve<float>(slot_remainder, state);
    if (c.spare == nullptr) return false;
    const PprCertificate<L> before = c.certificate;
    LocalBounds<L> bounds = refine<L>(block, open, look, c.certificate, c.spare);
    if (bounds.local == nullptr) return false;
    for (int lane = 0; lane < L; ++lane)
        if (open[lane]) c.lists.error[lane] = ppr_refined_error(c.certificate.per_degree[lane]);
    std::swap(block.result, c.spare);
    if (!c.lists.rank(block, *c.out.top, open.has)) return false;
    for (int lane = 0; lane < L; ++lane) {
        looking[lane] = open[lane] && !c.lists.is_proven(lane) && c.may_look(lane, 0);
        others[lane] = open[lane] && !looking[lane];
    }
    end_look<L>(c, open, others);
    if (looking.any()) {
        if (!step_local<L>(block, *c.out.top, bounds, block.current)) return false;
        for (int lane = 0; lane < L; ++lane) {
            if (!looking[lane]) continue;
            c.lists.error[lane] = ppr_refined_error(bounds.rest[lane] + bounds.beyond[lane]);
            c.course[lane].passes += 1;
        }
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

// Settles the open lanes, whose bound per node holds. A lane's result does not depend on other lanes; only the block in
// which it is computed does.
template <int L>
Status settle(Certified<L>& c, Lanes<L>& open, bool may_part) {
    const auto are_few = [&](const Lanes<L>& lanes) { return may_part && fewest_lanes(lanes.count()) < L; };
    Lanes<L> apart, looking, finished;
    for (int lane = 0; lane < L; ++lane) looking[lane] = open[lane] && c.course[lane].look == 0 && c.may_look(lane, 0);
    if (are_few(looking)) apart = looking;
    else if (looking.any() && !look_around<L>(c, open, looking)) return Status::out_of_memory;
    for (int lane = 0; lane < L; ++lane) {
        Course& course = c.course[lane];
        open[lane] = open[lane] && !apart[lane];
        if (!open[lane] || course.look > 0) continue;
        course.look = c.next_look(lane);
        course.passes += course.look;
        finished[lane] = course.look == 0;
        open[lane] = !finished[lane];
    }
    c.finish(finished);
    while (open.any() && !are_few(open))
        if (!refine_lists<L>(c, open)) return Status::out_of_memory;
    for (int lane = 0; lane < L; ++lane) apart[lane] = apart[lane] || open[lane];
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
    queries.threads = ppr_threads(graph.num_nodes, graph.num_stored, L, queries.threads);
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

// Copies some lanes of a state to a state of `width` lanes with the rows of `stored`; its other lanes become 0.
template <int L>
void move_lanes(const PprBlock<L>& block, const float* from, const int* lanes, int count, const PprGraph& stored,
                int width, float* to) {
    parallel_for(block.graph.num_nodes, block.queries.threads, [&](int64_t row, int) {
        float* const moved = to + row_of_node(stored, node_of_row(block.graph, row)) * width;
        for (int i = 0; i < count; ++i) moved[i] = from[row * L + lanes[i]];
        std::fill(moved + count, moved + width, 0.0f);
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
            const int some = std::min(count - first, narrower), width = fewest_lanes(some);
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
        move_lanes<L>(block, block.result, lanes + first, some, stored, width, at);
        move_lanes<L>(block, block.correction, lanes + first, some, stored, width, at + size);
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
