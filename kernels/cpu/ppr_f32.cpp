// ppr_f32 for one instruction set: the solver's course for blocks of lanes. Contract: hopfuse/ppr.h.
#include <cmath>
#include <limits>
#include <new>
#include <vector>

#include "kernels.h"
#include "ppr_block.h"
#include "ppr_certify.h"
#include "ppr_pass.h"
#include "ppr_setup.h"
#include "ppr_topk.h"

namespace hopfuse::HOPFUSE_ISA_NS {

namespace {

// A query's course: stop when proven (top-k only), else by tol, where the result stands. The second stage starts
// afresh, so what it gives does not depend on the batch.
enum Stage { stage_proven, stage_tol, stage_done };

struct Query {
    int64_t index;
};

struct Outputs {
    float* scores;       // (B, N) or null
    const PprTopk* top;  // or null
    PprEvidence evidence;
};

// Copies some lanes of one state to another.
template <int L>
void copy_lanes(const PprBlock<L>& block, const bool* lanes, const float* from, float* to) {
    int chosen[L], count = 0;
    for (int lane = 0; lane < L; ++lane)
        if (lanes[lane]) chosen[count++] = lane;
#pragma omp parallel for schedule(static) num_threads(block.queries.threads)
    for (int64_t row = 0; row < block.graph.num_nodes; ++row)
        for (int i = 0; i < count; ++i) to[row * L + chosen[i]] = from[row * L + chosen[i]];
}

// Takes the stopping lanes of `from` into `result`. Where no lane goes on, the lanes captured before are copied
// the other way if they are fewer, and the buffers change places.
template <int L>
void capture(PprBlock<L>& block, const bool* stop, const bool* active, float*& from) {
    bool before[L];
    int stopping = 0, captured = 0, going = 0;
    for (int lane = 0; lane < L; ++lane) {
        before[lane] = block.query[lane] >= 0 && !active[lane];
        stopping += stop[lane] ? 1 : 0;
        captured += before[lane] ? 1 : 0;
        going += active[lane] && !stop[lane] ? 1 : 0;
    }
    if (stopping == 0) return;
    if (going > 0 || captured >= stopping) return copy_lanes<L>(block, stop, from, block.result);
    if (captured > 0) copy_lanes<L>(block, before, block.result, from);
    float* swap = from;
    from = block.result, block.result = swap;
}

// Stops lanes whose hits look proven by the float32 residual (the certificate has the last word), and says
// when to look again: after as many passes as shrink the error by what is lacking, by the lane's own rate.
template <int L>
bool try_proof(const PprBlock<L>& block, const PprTopk& top, int64_t pass, const bool* tried, const float* largest,
               Ranked* selected, bool* stop, int64_t* next_try) {
    NodeError error[L];
    int64_t found[L];
    double shortfall[L];
    for (int lane = 0; lane < L; ++lane) error[lane] = forecast_error(largest[lane], block.damping[lane]);
    const Ranking<L> ranking{block.current, false};
    if (!select_best<L>(block, top, ranking, tried, top.k + 1, selected, found)) return false;
    measure_proof<L>(block, top, ranking, tried, error, selected, found, shortfall);
    for (int lane = 0; lane < L; ++lane) {
        if (!tried[lane]) continue;
        if (shortfall[lane] < 1.0) {
            stop[lane] = true;
            continue;
        }
        next_try[lane] = next_proof(pass, shortfall[lane], ppr_error_decay(block.chebyshev, block.damping[lane]));
    }
    return true;
}

// Passes until every lane's iterate is captured in `result`.
template <int L>
bool walk(PprBlock<L>& block, Stage stage, const PprTopk* top, int64_t* passes, bool* by_proof) {
    const PprQueries& q = block.queries;
    float damping[L], omega[L], theta[L], shrink[L];
    double omega64[L];
    int64_t limit[L], measured_from[L], first_measured = 0, next_try[L];
    bool active[L];
    int left = 0;
    for (int lane = 0; lane < L; ++lane) {
        active[lane] = block.query[lane] >= 0;
        passes[lane] = 0;
        by_proof[lane] = false;
        next_try[lane] = PPR_NEVER;
        const double d = block.damping[lane];
        damping[lane] = static_cast<float>(d);
        omega64[lane] = 1.0 / (1.0 - 0.5 * d * d);
        theta[lane] = ppr_theta(d, q.tol);
        shrink[lane] = ppr_shrink(block.chebyshev, d);
        limit[lane] = measured_from[lane] = 1;
        if (!active[lane]) continue;
        limit[lane] = pass_limit<L>(block, lane);
        if (q.max_iter > 0 && q.max_iter < limit[lane]) limit[lane] = q.max_iter;
        if (stage == stage_proven && keeps_mass<L>(block, lane)) next_try[lane] = PPR_FIRST_TRY;
        measured_from[lane] = ppr_measured_from(limit[lane]);
        const int64_t start = measured_from[lane] < next_try[lane] ? measured_from[lane] : next_try[lane];
        first_measured = left == 0 || start < first_measured ? start : first_measured;
        ++left;
    }
    std::vector<Ranked> selected(stage == stage_proven ? size_t(L) * size_t(top->k + 1) : 0);
    for (block.pass = 1; left > 0; ++block.pass) {
        const int64_t pass = block.pass;
        for (int lane = 0; lane < L; ++lane) omega[lane] = static_cast<float>(omega64[lane]);
        const bool measure = pass >= first_measured;
        ppr_pass<L>(block, damping, omega, measure);
        float residual[L] = {}, largest[L] = {};
        if (measure) {
            sum_tiles<L, F<L>>(block.tile32, block.num_tiles, 0, residual);
            max_tiles<L, F<L>>(block.tile32, block.num_tiles, 1, largest);
        }
        bool stop[L] = {};
        for (int lane = 0; lane < L; ++lane) {
            const bool small = pass >= measured_from[lane] && residual[lane] * shrink[lane] <= theta[lane];
            stop[lane] = active[lane] && (small || pass >= limit[lane]);
        }
        if (stage == stage_proven) {
            bool tried[L], proven[L] = {};
            bool any = false;
            for (int lane = 0; lane < L; ++lane) {
                tried[lane] = active[lane] && !stop[lane] && pass >= next_try[lane];
                any = any || tried[lane];
            }
            if (any && !try_proof<L>(block, *top, pass, tried, largest, selected.data(), proven, next_try))
                return false;
            capture<L>(block, proven, active, block.current);  // what was proven is the iterate that was measured
            for (int lane = 0; lane < L; ++lane)
                if (proven[lane]) by_proof[lane] = true, active[lane] = false, passes[lane] = pass, --left;
        }
        capture<L>(block, stop, active, block.next);
        for (int lane = 0; lane < L; ++lane) {
            if (stop[lane]) active[lane] = false, passes[lane] = pass, --left;
            const double d = block.damping[lane];
            omega64[lane] = 1.0 / (1.0 - 0.25 * d * d * omega64[lane]);
        }
        float* swap = block.current;
        block.current = block.next, block.next = swap;
    }
    return true;
}

// Scores of the caller's nodes begin .. end - 1.
template <int L>
void write_nodes(const PprBlock<L>& block, const bool* write, int64_t begin, int64_t end, float* scores) {
    const int64_t n = block.graph.num_nodes;
    const int32_t* row_of = block.graph.row_of;
    int64_t v = begin;
    if constexpr (L >= 16) {  // by squares of 16 nodes and 16 lanes; lanes that are not written go to a spare row
        for (; v + 16 <= end; v += 16)
            for (int first = 0; first < L; first += 16) {
                float spare[16];
                const float* from[16];
                float* to[16];
                for (int i = 0; i < 16; ++i) {
                    const int lane = first + i;
                    from[i] = block.result + int64_t{row_of[v + i]} * L + first;
                    to[i] = write[lane] ? scores + block.query[lane] * n + v : spare;
                }
                transpose_16(from, to);
            }
    }
    for (; v < end; ++v)
        for (int lane = 0; lane < L; ++lane)
            if (write[lane]) scores[block.query[lane] * n + v] = block.result[int64_t{row_of[v]} * L + lane];
}

// Rows of `scores` from the block's lanes, in the caller's node order.
template <int L>
void write_scores(const PprBlock<L>& block, const bool* write, float* scores) {
#pragma omp parallel for schedule(static) num_threads(block.queries.threads)
    for (int64_t tile = 0; tile < block.num_tiles; ++tile)
        write_nodes<L>(block, write, block.tile_begin(tile), block.tile_end(tile), scores);
}

template <int L>
void write_topk(const PprBlock<L>& block, const bool* write, const PprCertificate<L>& certificate, const bool* proven,
                const Ranked* selected, const int64_t* found, const PprTopk& top) {
    for (int lane = 0; lane < L; ++lane) {
        if (!write[lane]) continue;
        const int64_t b = block.query[lane], count = found[lane] < top.k ? found[lane] : top.k;
        const RankedList<L> list{block, selected + lane * (top.k + 1), lane};
        for (int64_t i = 0; i < top.width; ++i) {
            const int64_t at = b * top.width + i;
            if (i >= count) {
                top.ids[at] = -1, top.scores[at] = -std::numeric_limits<float>::infinity();
                top.score_bounds[at] = 0.0f;
                continue;
            }
            const Ranked& hit = selected[lane * (top.k + 1) + i];
            double bound = certificate.bound[lane];
            if (std::isfinite(certificate.per_degree[lane])) {
                const double local = node_error(NodeError{certificate.per_degree[lane], 0.0}, list.degree(i));
                bound = local < bound ? local : bound;
            }
            top.ids[at] = hit.id, top.scores[at] = hit.score;
            top.score_bounds[at] = std::nextafter(static_cast<float>(bound), std::numeric_limits<float>::infinity());
        }
        top.counts[b] = count;
        top.proven[b] = proven[lane] ? 1 : 0;
    }
}

// Solves the block's queries; stage[b] moves on for those that need another attempt.
template <int L>
Status solve(const PprGraph& graph, const PprQueries& queries, const Outputs& out, Workspace& work, const Query* query,
             int count, Stage* stage) {
    PprBlock<L> block(graph, queries, work);
    for (int lane = 0; lane < L; ++lane) {
        block.query[lane] = lane < count ? query[lane].index : -1;
        block.damping[lane] = lane < count ? queries.damping[query[lane].index] : 0.0;
    }
    if (!setup_block<L>(block)) return Status::out_of_memory;
    const Stage now = stage[query[0].index];
    int64_t passes[L];
    double lost[L];
    bool by_proof[L];
    if (!walk<L>(block, now, out.top, passes, by_proof)) return Status::out_of_memory;
    normalise<L>(block, by_proof, lost);
    PprCertificate<L> certificate = certify<L>(block, lost, nullptr);
    bool open[L];
    for (int lane = 0; lane < L; ++lane) {
        const bool exhausted = queries.max_iter > 0 && passes[lane] >= queries.max_iter;
        open[lane] = lane < count && !by_proof[lane] && !exhausted && certificate.bound[lane] > queries.tol;
        passes[lane] += 1;
    }
    polish<L>(block, open, lost, certificate, passes);

    bool proven[L] = {}, used[L], write[L];
    double shortfall[L];
    int64_t found[L] = {};
    std::vector<Ranked> selected;
    for (int lane = 0; lane < L; ++lane) used[lane] = lane < count;
    if (out.top != nullptr) {
        selected.resize(size_t(L) * size_t(out.top->k + 1));
        NodeError error[L];
        for (int lane = 0; lane < L; ++lane)
            error[lane] = std::isfinite(certificate.per_degree[lane]) ? NodeError{certificate.per_degree[lane], 0.0}
                                                                      : NodeError{0.0, certificate.bound[lane]};
        const Ranking<L> ranking{block.result, true};
        if (!select_best<L>(block, *out.top, ranking, used, out.top->k + 1, selected.data(), found))
            return Status::out_of_memory;
        measure_proof<L>(block, *out.top, ranking, used, error, selected.data(), found, shortfall);
        for (int lane = 0; lane < L; ++lane) proven[lane] = shortfall[lane] < 1.0;
    }
    for (int lane = 0; lane < L; ++lane) {
        write[lane] = false;
        if (!used[lane]) continue;
        const int64_t b = query[lane].index;
        const bool converged = certificate.bound[lane] <= queries.tol;
        const bool stands = converged || now == stage_tol || proven[lane] || !by_proof[lane];
        out.evidence.iterations[b] += passes[lane];
        stage[b] = stands ? stage_done : stage_tol;
        if (!stands) continue;
        write[lane] = true;
        out.evidence.residual[b] = certificate.residual[lane];
        out.evidence.bound[b] = certificate.bound[lane];
        out.evidence.converged[b] = converged ? 1 : 0;
    }
    if (out.scores != nullptr) write_scores<L>(block, write, out.scores);
    if (out.top != nullptr) write_topk<L>(block, write, certificate, proven, selected.data(), found, *out.top);
    return Status::ok;
}

template <int L>
Status solve_with(const PprGraph& graph, PprQueries queries, const Outputs& out, Workspace& work, const Query* query,
                  int count, Stage* stage) {
    queries.threads = ppr_threads(graph.num_nodes, graph.num_stored, L, queries.threads);
    return solve<L>(graph, queries, out, work, query, count, stage);
}

Status solve_group(const PprGraph& graph, const PprQueries& queries, const Outputs& out, Workspace& work,
                   const Query* query, int64_t count, Stage* stage) {
    const PprGraph& few = graph.by_length == nullptr ? graph : *graph.by_length;
    while (count > 0) {
        const int taken = count >= 32 ? 32 : count > 16 ? 16 : static_cast<int>(count);
        Status status;
        if (taken > 16) {
            status = solve_with<32>(graph, queries, out, work, query, taken, stage);
        } else if (taken > PPR_FEW_LANES) {
            status = solve_with<16>(graph, queries, out, work, query, taken, stage);
        } else if (taken > 4) {
            status = solve_with<8>(few, queries, out, work, query, taken, stage);
        } else if (taken > 1) {
            status = solve_with<4>(few, queries, out, work, query, taken, stage);
        } else {
            status = solve_with<1>(few, queries, out, work, query, taken, stage);
        }
        if (status != Status::ok) return status;
        query += taken, count -= taken;
    }
    return Status::ok;
}

Status run(const PprGraph& graph, const PprQueries& queries, const Outputs& out, Workspace& work) {
    const bool proof = out.top != nullptr && out.top->stop_when_proven && out.top->k > 0;
    const Stage first = proof ? stage_proven : stage_tol;
    std::vector<Stage> stage(size_t(queries.batch), first);
    std::vector<Query> group;
    for (int64_t b = 0; b < queries.batch; ++b) out.evidence.iterations[b] = 0;
    for (int now = first; now < stage_done; ++now) {
        group.clear();
        for (int64_t b = 0; b < queries.batch; ++b)
            if (stage[size_t(b)] == now) group.push_back({b});
        const Status status = solve_group(graph, queries, out, work, group.data(), int64_t(group.size()), stage.data());
        if (status != Status::ok) return status;
    }
    return Status::ok;
}

}  // namespace

Status ppr_f32(const PprGraph& graph, const PprQueries& queries, float* scores, const PprTopk* top,
               const PprEvidence& evidence) {
    if (queries.threads < 1 || !(queries.tol > 0.0)) return Status::bad_argument;
    const WorkspaceLease work;
    if (!work) return Status::out_of_memory;
    try {
        return run(graph, queries, Outputs{scores, top, evidence}, *work);
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory;
    }
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
