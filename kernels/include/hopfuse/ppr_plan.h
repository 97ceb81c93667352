// The pass limits of a query's walk: hopfuse/ppr.h, STOP. Shared by host and device.
#pragma once

#include "hopfuse/integers.h"
#include "hopfuse/ppr.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

constexpr int64_t PPR_MOST_PASSES = 100000;
constexpr float PPR_LEAST_ACCELERATED = 9.5367431640625e-7f;  // 2^-20

// The factor by which a pass shrinks the error; infinity if damping is 0.
HOPFUSE_FN double ppr_pass_rate(bool symmetric, double damping) {
    return symmetric ? (1.0 + sqrt(1.0 - damping * damping)) / damping : 1.0 / damping;
}

// The natural logarithm of that factor.
HOPFUSE_FN double ppr_error_decay(bool symmetric, double damping) {
    return hf_log(static_cast<float>(ppr_pass_rate(symmetric, damping)));
}

// Whether Chebyshev's recurrence is used with a symmetric operator, from the smallest node weight of a node that walks. If
// degrees a D differ by many orders of magnitude, its error grows in the L1 norm, with float32 rounding, before it shrinks;
// that of power iteration never grows.
HOPFUSE_FN bool ppr_accelerates(float least_weight) { return least_weight >= PPR_LEAST_ACCELERATED; }

// The number of passes after which the theory guarantees tol; norm is ||s||_{D^-1}, volume the sum of degrees (both are
// used only for a symmetric operator).
HOPFUSE_FN int64_t ppr_pass_limit(bool symmetric, double damping, double tol, double volume, double norm) {
    constexpr int64_t most = PPR_MOST_PASSES;
    if (damping == 0.0) return 1;
    const double decay = ppr_error_decay(symmetric, damping);
    if (!(decay > 0.0)) return most;
    const double start = symmetric ? 4.0 * sqrt(volume) * norm / tol : 2.0 / tol;
    // A reduction by more than 1e38 needs no more passes, because float32 has reached its limit before.
    const float reach = start < 1e38 ? static_cast<float>(start) : 1e38f;
    const double passes = reach > 1.0f ? hf_log(reach) / decay : 0.0;
    return passes >= static_cast<double>(most - 2) ? most : static_cast<int64_t>(passes) + 2;
}

// The first pass whose residual is measured.
HOPFUSE_FN int64_t ppr_measured_from(int64_t limit) { return limit - limit / 4; }

// The factor by which a pass is expected to shrink the residual.
HOPFUSE_FN float ppr_shrink(bool symmetric, double damping) {
    return static_cast<float>(1.0 / ppr_pass_rate(symmetric, damping));
}

// The residual at which a walk ends.
HOPFUSE_FN float ppr_theta(double damping, double tol) {
    const double theta = 0.5 * (1.0 - damping) * tol;
    return theta < 1e38 ? static_cast<float>(theta) : 1e38f;  // no residual exceeds this
}

// The number of passes over the residual of x^ that shrink its error by a factor of `gain`: hopfuse/ppr.h, REFINEMENT.
HOPFUSE_FN int64_t ppr_refining_passes(double damping, double gain) {
    if (damping == 0.0) return 1;
    const double passes = static_cast<double>(hf_log(static_cast<float>(gain))) / ppr_error_decay(true, damping);
    return passes < static_cast<double>(PPR_MOST_PASSES - 1) ? static_cast<int64_t>(passes) + 1 : PPR_MOST_PASSES;
}

// The passes of a refinement, including the measured one, after which its iterate is next examined, for a list whose errors
// are still `shortfall` times too large; `done` are those of the previous examination (0: none). In few steps, so that lanes
// of a block are examined together. 0: no further pass helps.
HOPFUSE_FN int64_t ppr_next_check_pass(double damping, int64_t done, double shortfall, bool order) {
    constexpr double step = 7.0, most = 1e5;
    const int64_t last = 1 + ppr_refining_passes(damping, most);
    if (done >= last || (done > 0 && !(shortfall < most))) return 0;
    if (done == 0 && shortfall < (order ? 8.0 : 64.0)) return 1;  // few sets need more
    const int64_t passes = ppr_refining_passes(damping, step);
    if (done == 0) return 1 + (passes > 2 ? passes : 2);
    const int64_t next = shortfall < step ? done + passes : last;
    return next < last - 2 ? next : last;  // an examination costs more than two passes
}

// The number of threads worth using for a block of lanes on a CPU: a barrier costs as much as many entries. Results do not
// depend on it.
HOPFUSE_FN int32_t ppr_threads(int64_t nodes, int64_t stored, int lanes, int32_t most) {
    constexpr int64_t grain = 1 << 16;
    const int64_t worth = 1 + (nodes + stored) * (lanes > 8 ? lanes / 8 : 1) / grain;
    return worth < most ? static_cast<int32_t>(worth) : most;
}

// Whether queries are worth dividing among threads, one block for each: a block of two queries costs as much as one of four,
// and blocks of 16 on a thread each as much as a block of 32 on two threads.
HOPFUSE_FN bool ppr_are_shared(int64_t queries, int64_t threads) {
    return threads > 1 && (queries == threads || (queries > 2 * threads && queries != 16 * threads));
}

// The number of blocks of lanes that a CPU walks at the same time, each on one thread; 1: each block on all threads. Threads
// with a state of their own do not wait for each other's writes. On a large graph the states of several blocks would compete
// for the cache. Results do not depend on it.
HOPFUSE_FN int32_t ppr_blocks_at_once(int64_t nodes, int64_t stored, int64_t queries, int32_t most) {
    const int lanes = queries < 1 << 20 ? static_cast<int>(queries) : 1 << 20;
    const int32_t threads = ppr_threads(nodes, stored, lanes, most);
    return nodes <= PPR_CACHED_NODES && ppr_are_shared(queries, threads) ? threads : 1;
}

constexpr int PPR_MOST_LANES = 32;  // the most queries that walk together in a block

// The queries that the next block takes of those that walk in turn.
HOPFUSE_FN int ppr_block_queries(int64_t left) {
    constexpr int half = PPR_MOST_LANES / 2;
    return left >= PPR_MOST_LANES ? PPR_MOST_LANES : left > half ? half : static_cast<int>(left);
}

// The fewest lanes of a block of so many queries.
HOPFUSE_FN int ppr_block_lanes(int queries) {
    return queries > 16 ? PPR_MOST_LANES : queries > PPR_FEW_LANES ? 16 : queries > 4 ? 8 : queries > 1 ? 4 : 1;
}

// A batch, divided among blocks that walk at the same time: `wide` blocks of PPR_MOST_LANES queries while there is one for each
// thread, then equal shares of the rest. With 0 shares, the rest walks in turn.
struct PprDivision {
    int64_t wide, rest, shares;
};

HOPFUSE_FN PprDivision ppr_divide(int64_t queries, int64_t at_once) {
    const int64_t wide = queries / (PPR_MOST_LANES * at_once) * at_once, rest = queries - PPR_MOST_LANES * wide;
    return {wide, rest, ppr_are_shared(rest, at_once) ? at_once : 0};
}

// The first query of a share of the rest, counted within the rest.
HOPFUSE_FN int64_t ppr_share_begin(const PprDivision& parts, int64_t share) {
    return parts.shares > 0 ? parts.rest * share / parts.shares : share > 0 ? parts.rest : 0;
}

}  // namespace hopfuse
