// From captured iterates to returned scores and their certificate. Included once per instruction set.
#pragma once

#include <limits>

#include "hopfuse/ppr_certificate.h"
#include "ppr_block.h"
#include "ppr_rows.h"
#include "threads.h"

namespace hopfuse::HOPFUSE_ISA_NS {

template <int L>
struct PprCertificate {
    double residual[L];    // ||r||_1
    double bound[L];       // ||x^ - x*||_1 <= bound
    double per_degree[L];  // |x^_v - x*_v| <= deg_v per_degree, or infinity where that bound does not hold
};

// 1 - (sum of row u of P): 1 at a dangling node, else what per_type weights leave out.
template <int L>
D<L> lost_share(const PprBlock<L>& block, int64_t row) {
    const bool per_type = block.queries.per_type;
    const int types = block.types_in_scale();
    if (!per_type && !block.per_lane) return D<L>::all(block.scale64[row] > 0.0 ? 0.0 : 1.0);
    double share[L];
    for (int lane = 0; lane < L; ++lane) {
        double kept = 0.0;
        for (int t = 0; t < types; ++t) {
            const int64_t at = row * types + t;
            const bool walks = block.scale64[block.per_lane ? at * L + lane : at] > 0.0;
            const double eta = per_type && block.eta64 != nullptr ? block.eta64[t * L + lane] : 1.0;
            kept += walks ? eta : 0.0;
        }
        share[lane] = kept < 1.0 ? 1.0 - kept : 0.0;
    }
    return D<L>::load(share);
}

// Clamp at 0, multiply by deg, normalise to sum 1, round: `result` becomes x^. Lanes that a proof stopped are neither
// clamped nor normalised: their error is what the residual of the iterate itself says.
// Leaves each lane's lost mass.
template <int L>
void normalise(PprBlock<L>& block, const bool* by_proof, double* lost) {
    const PprQueries& q = block.queries;
    const int64_t tiles = block.num_tiles;
    double floor[L];
    for (int lane = 0; lane < L; ++lane) floor[lane] = by_proof[lane] ? -std::numeric_limits<double>::infinity() : 0.0;
    const D<L> least = D<L>::load(floor);
    parallel_for(tiles, q.threads, [&](int64_t tile, int) {
        D<L> sum = D<L>::zero();
        for (int64_t node = block.tile_begin(tile); node < block.tile_end(tile); ++node) {
            const int64_t row = row_of_node(block.graph, node);
            const D<L> y = D<L>::max(D<L>::widen(block.result + row * L), least);
            sum = D<L>::fma(y, node_weight64<L>(block, row), sum);
        }
        D<L>::store(block.tile64 + tile * 2 * L, sum);
    });
    double total[L];
    sum_tiles<L, D<L>>(block.tile64, tiles, 0, total);
    for (int lane = 0; lane < L; ++lane)
        total[lane] = by_proof[lane] ? 1.0 : (total[lane] > 0.0 ? 1.0 / total[lane] : 0.0);
    const D<L> factor = D<L>::load(total);
    parallel_for(tiles, q.threads, [&](int64_t tile, int) {
        D<L> sum = D<L>::zero();
        for (int64_t node = block.tile_begin(tile); node < block.tile_end(tile); ++node) {
            const int64_t row = row_of_node(block.graph, node);
            float* x = block.result + row * L;
            const D<L> y = D<L>::max(D<L>::widen(x), least);
            double exact[L];
            D<L>::store(exact, D<L>::mul(D<L>::mul(y, node_weight64<L>(block, row)), factor));
            for (int lane = 0; lane < L; ++lane) x[lane] = static_cast<float>(exact[lane]);
            sum = D<L>::fma(D<L>::widen(x), lost_share<L>(block, row), sum);
        }
        D<L>::store(block.tile64 + tile * 2 * L, sum);
    });
    sum_tiles<L, D<L>>(block.tile64, tiles, 0, lost);
}

// What the rows' float64 sums read, by value: no store can change it.
template <int L>
struct ResidualRows {
    const float *x, *remainder, *weight;  // remainder: null, or what x lacks of the sum that is measured
    const double *scale, *eta;
    const int64_t* indptr;
    const int32_t* indices;
    const int32_t* later = nullptr;  // `indices`, some entries on
    const uint8_t* edge_type;
    int64_t types_in_scale;
    bool per_type, per_lane;

    explicit ResidualRows(const PprBlock<L>& block)
        : x(block.result), remainder(block.remainder), weight(block.graph.weight), scale(block.scale64),
          eta(block.eta64), indptr(block.graph.indptr), indices(block.graph.indices), edge_type(block.graph.edge_type),
          types_in_scale(block.types_in_scale()), per_type(block.queries.per_type), per_lane(block.per_lane) {}

    HF_MEMBER D<L> value(int64_t u) const {
        const D<L> high = D<L>::widen(x + u * L);
        return remainder == nullptr ? high : D<L>::add(high, D<L>::widen(remainder + u * L));
    }

    HF_MEMBER D<L> add(int64_t e, D<L> acc) const {
        const int64_t u = indices[e];
        const int type = edge_type == nullptr ? 0 : edge_type[e];
        const double w = weight == nullptr ? 1.0 : weight[e];
        const int64_t at = per_type ? u * types_in_scale + type : u;
        D<L> factor = per_lane ? D<L>::mul(D<L>::all(w), D<L>::load(scale + at * L)) : D<L>::all(w * scale[at]);
        if (eta != nullptr) factor = D<L>::mul(factor, D<L>::load(eta + type * L));
        return D<L>::fma(factor, value(u), acc);
    }

    HF_MEMBER D<L> sum(int64_t row) const {
        const int64_t end = indptr[row + 1];
        D<L> acc = D<L>::zero();
        for (int64_t e = indptr[row]; e < end; ++e) {
            if constexpr (L >= 16) {  // asked for early, as in a pass
                const float* soon = x + int64_t{later[e]} * L;
                for (int line = 0; line < L; line += 16) __builtin_prefetch(soon + line);
            }
            acc = add(e, acc);
        }
        return acc;
    }

    // The sums of `together` rows of one length.
    template <int together>
    HF_MEMBER void sums(int64_t row, D<L>* out) const {
        const int64_t begin = indptr[row], length = indptr[row + 1] - begin;
        HF_UNROLL for (int i = 0; i < together; ++i) out[i] = D<L>::zero();
        for (int64_t j = 0; j < length; ++j)
            HF_UNROLL for (int i = 0; i < together; ++i) out[i] = add(begin + i * length + j, out[i]);
    }
};

// r = d P' x^ + (1 - d + d m) s - x^ in float64, row by row.
template <int L>
struct Residual {
    const PprBlock<L> block;
    ResidualRows<L> rows;
    const D<L> d, back;
    const bool masked_type;
    const double slack;
    float* const improved;  // or null: receives fl(x^ + r), one power step in float64
    D<L> largest = D<L>::zero();

    Residual(const PprBlock<L>& shared, const double* restart_factor, double rounding, float* step)
        : block(shared), rows(block), d(D<L>::load(block.damping)), back(D<L>::load(restart_factor)),
          masked_type(block.queries.per_type && block.per_lane), slack(rounding), improved(step) {}

    // |r| of a row, from the sum of its entries.
    HF_MEMBER D<L> of(int64_t row, D<L> sum) {
        D<L> walked = D<L>::mul(d, sum);
        // Edges into nodes that may not hold mass do not exist.
        if (masked_type) walked = D<L>::mul(walked, D<L>::load(block.unscale64 + row * L));
        if (!block.queries.per_type && block.per_lane) {
            double open[L];
            for (int lane = 0; lane < L; ++lane) open[lane] = block.unscale64[row * L + lane] > 0.0 ? 1.0 : 0.0;
            walked = D<L>::mul(walked, D<L>::load(open));
        }
        const D<L> x = rows.value(row);
        D<L> r = D<L>::sub(walked, x);
        if (block.has_restart(row)) r = D<L>::fma(back, D<L>::load(block.restart64 + block.restart_index(row) * L), r);
        if (improved != nullptr) {
            double step[L];
            D<L>::store(step, D<L>::add(x, r));
            for (int lane = 0; lane < L; ++lane) improved[row * L + lane] = static_cast<float>(step[lane]);
        }
        if (block.correction != nullptr) {
            double start[L];
            D<L>::store(start, D<L>::mul(r, lanes64<L>(block.scale64, row, block.per_lane)));
            for (int lane = 0; lane < L; ++lane) block.correction[row * L + lane] = static_cast<float>(start[lane]);
        }
        r = D<L>::abs(r);
        if (block.chebyshev) {
            const D<L> grown = D<L>::fma(D<L>::all(2.0 * slack), D<L>::abs(x), r);
            largest = D<L>::max(largest, D<L>::mul(grown, lanes64<L>(block.scale64, row, block.per_lane)));
        }
        return r;
    }
};

// Rows begin .. end as they are stored, those of one length together: take(row, |r|).
template <int L, class Take>
HF_INLINE void residual_rows(Residual<L>& residual, int64_t begin, int64_t end, const Take& take) {
    constexpr int together = rows_together<L>;
    for (int64_t row = begin; row < end;) {
        if (row + together <= end && have_one_length(residual.rows.indptr, row, together)) {
            D<L> sums[together];
            residual.rows.template sums<together>(row, sums);
            HF_UNROLL for (int i = 0; i < together; ++i) take(row + i, residual.of(row + i, sums[i]));
            row += together;
        } else {
            take(row, residual.of(row, residual.rows.sum(row)));
            ++row;
        }
    }
}

// Each tile's sum of |r|, in internal order, and largest bound, in tile64.
template <int L>
void residual_tiles(PprBlock<L>& block, const Residual<L>& shared) {
    parallel_for(block.num_tiles, 8, block.queries.threads, [&](int64_t tile, int) {
        Residual<L> residual = shared;
        residual.rows.later = block.graph.indices + entries_ahead(block.graph, block.tile_end(tile));
        D<L> sum = D<L>::zero();
        residual_rows<L>(residual, block.tile_begin(tile), block.tile_end(tile),
                         [&](int64_t, D<L> r) { sum = D<L>::add(sum, r); });
        D<L>::store(block.tile64 + tile * 2 * L, sum);
        D<L>::store(block.tile64 + tile * 2 * L + L, residual.largest);
    });
}

// The same where rows are not stored in internal order.
template <int L>
void residual_rows_apart(PprBlock<L>& block, const Residual<L>& shared) {
    double* const residuals = block.scratch;
    parallel_for(block.num_tiles, 8, block.queries.threads, [&](int64_t chunk, int) {
        Residual<L> residual = shared;
        residual.rows.later = block.graph.indices + entries_ahead(block.graph, block.tile_end(chunk));
        residual_rows<L>(residual, block.tile_begin(chunk), block.tile_end(chunk),
                         [&](int64_t row, D<L> r) { D<L>::store(residuals + row * L, r); });
        D<L>::store(block.tile64 + chunk * 2 * L + L, residual.largest);  // of other rows than the tile's: one maximum
    });
    parallel_for(block.num_tiles, block.queries.threads, [&](int64_t tile, int) {
        D<L> sum = D<L>::zero();
        for (int64_t node = block.tile_begin(tile); node < block.tile_end(tile); ++node)
            sum = D<L>::add(sum, D<L>::load(residuals + row_of_node(block.graph, node) * L));
        D<L>::store(block.tile64 + tile * 2 * L, sum);
    });
}

// The bounds that follow from r. Where `improved` is given it receives fl(x^ + r).
template <int L>
PprCertificate<L> certify(PprBlock<L>& block, const double* lost, float* improved) {
    double restart_factor[L];
    for (int lane = 0; lane < L; ++lane)
        restart_factor[lane] = 1.0 - block.damping[lane] + block.damping[lane] * lost[lane];
    const double slack = ppr_slack(block.graph.longest_row, block.graph.num_types, PPR_TILE);
    const Residual<L> residual(block, restart_factor, slack, improved);
    block.graph.place == nullptr ? residual_tiles<L>(block, residual) : residual_rows_apart<L>(block, residual);
    PprCertificate<L> out;
    double largest[L];
    sum_tiles<L, D<L>>(block.tile64, block.num_tiles, 0, out.residual);
    max_tiles<L, D<L>>(block.tile64, block.num_tiles, 1, largest);
    for (int lane = 0; lane < L; ++lane) {
        out.bound[lane] = ppr_bound(out.residual[lane], slack, block.damping[lane]);
        const bool holds = block.chebyshev && lost[lane] == 0.0;
        out.per_degree[lane] = ppr_node_bound(holds, largest[lane], slack, block.damping[lane]);
    }
    return out;
}

// Each lane's lost mass of x^.
template <int L>
void lost_mass(PprBlock<L>& block, double* lost) {
    const int64_t tiles = block.num_tiles;
    parallel_for(tiles, block.queries.threads, [&](int64_t tile, int) {
        D<L> sum = D<L>::zero();
        for (int64_t node = block.tile_begin(tile); node < block.tile_end(tile); ++node) {
            const int64_t row = row_of_node(block.graph, node);
            sum = D<L>::fma(D<L>::widen(block.result + row * L), lost_share<L>(block, row), sum);
        }
        D<L>::store(block.tile64 + tile * 2 * L, sum);
    });
    sum_tiles<L, D<L>>(block.tile64, tiles, 0, lost);
}

// Power steps in float64 for lanes whose certificate misses tol, until it is met or a step gains less than 2 %:
// then float32 cannot hold a better answer. Other lanes stay as they are. Adds each lane's steps to `passes`.
template <int L>
void polish(PprBlock<L>& block, bool* open, double* lost, PprCertificate<L>& certificate, int64_t* passes) {
    const auto any = [&] {
        for (int lane = 0; lane < L; ++lane)
            if (open[lane]) return true;
        return false;
    };
    if (!any()) return;
    certify<L>(block, lost, block.current);
    for (int step = 0; step < PPR_POLISH_STEPS && any(); ++step) {
        parallel_for(block.graph.num_nodes, block.queries.threads, [&](int64_t row, int) {
            for (int lane = 0; lane < L; ++lane)
                if (!open[lane]) block.current[row * L + lane] = block.result[row * L + lane];
        });
        float* swap = block.current;
        block.current = block.result, block.result = swap;
        lost_mass<L>(block, lost);
        const PprCertificate<L> next = certify<L>(block, lost, block.current);
        for (int lane = 0; lane < L; ++lane) {
            if (!open[lane]) continue;
            const bool gained = next.bound[lane] < PPR_POLISH_GAIN * certificate.bound[lane];
            certificate.residual[lane] = next.residual[lane];
            certificate.bound[lane] = next.bound[lane];
            certificate.per_degree[lane] = next.per_degree[lane];
            passes[lane] += 1;
            open[lane] = gained && next.bound[lane] > block.queries.tol;
        }
    }
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
