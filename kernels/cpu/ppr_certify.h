// Computes the returned scores and their certificate from captured iterates. Included once per instruction set.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "hopfuse/ppr_certificate.h"
#include "ppr_block.h"
#include "ppr_rows.h"
#include "ppr_slices.h"
#include "threads.h"

namespace hopfuse::HOPFUSE_ISA_NS {

template <int L>
struct PprCertificate {
    double residual[L];    // ||r||_1
    double bound[L];       // ||x^ - x*||_1 <= bound
    double per_degree[L];  // |x^_v - x*_v| <= deg_v per_degree; infinity if that bound does not hold
};

// 1 - (sum of row u of P): 1 at a dangling node; otherwise the share that per_type weights lose.
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

// Adds the mass of x^ that a tile's rows lose; it is 0 if every lane keeps all mass.
template <int L>
void add_lost(const PprBlock<L>& block, int64_t tile, LaneSums<L>& sums) {
    if (block.all_keep) return;
    for (int64_t row = block.tile_begin(tile); row < block.tile_end(tile); ++row)
        sums.add(D<L>::mul(D<L>::widen(block.result + row * L), lost_share<L>(block, row)));
}

// Prefetches the iterate and the degrees of rows that follow.
template <int L>
HF_INLINE void look_ahead(const PprBlock<L>& block, int64_t row) {
    constexpr int64_t ahead = 24;
    if (L < 16 || !block.per_lane) return;
    for (int line = 0; line < L; line += 16) prefetch_beyond(block.result + row * L + line, ahead * L * sizeof(float));
    for (int line = 0; line < L; line += 8)
        prefetch_beyond(block.unscale64 + row * L + line, ahead * L * sizeof(double));
}

// Calls take(row, W) for the rows of a tile, W values at a time, W an integral constant: L, or 8 rows of one lane.
template <int L, class Take>
HF_INLINE void each_rows(const PprBlock<L>& block, int64_t tile, const Take& take) {
    const int64_t end = block.tile_end(tile);
    int64_t row = block.tile_begin(tile);
    if constexpr (L == 1)
        for (; row + 8 <= end; row += 8) take(row, std::integral_constant<int, 8>());
    for (; row < end; ++row) {
        look_ahead<L>(block, row);
        take(row, std::integral_constant<int, L>());
    }
}

// Clamps at 0, multiplies by deg, normalises to sum 1 and rounds: `result` becomes x^. Lanes that a proof stopped are
// neither clamped nor normalised, since their error bound is that of the iterate itself. Computes each lane's lost mass.
template <int L>
void normalise(PprBlock<L>& block, const bool* by_proof, double* lost) {
    const PprQueries& q = block.queries;
    constexpr int width = L == 1 ? 8 : L;
    double floor[L];
    for (int lane = 0; lane < L; ++lane) floor[lane] = by_proof[lane] ? -std::numeric_limits<double>::infinity() : 0.0;
    const D<L> least = D<L>::load(floor);
    const auto mass = [&](int64_t tile, LaneSums<L>& sums) {
        LaneSums<width> wide;
        each_rows<L>(block, tile, [&](int64_t row, auto values) {
            constexpr int W = decltype(values)::value;
            const D<W> y = D<W>::max(D<W>::widen(block.result + row * L), D<W>::zero());
            const D<W> term = D<W>::mul(y, node_weight64<L, W>(block, row));
            if constexpr (W == L) sums.add(term);
            else wide.add(term);
        });
        join_rows(wide.sum, wide.largest, sums);
    };
    double total[L];
    sum_tiles(block.num_tiles, 8, q.execution, block.sums, mass).value(total);
    for (int lane = 0; lane < L; ++lane) total[lane] = by_proof[lane] ? 1.0 : ppr_factor(total[lane]);
    const D<L> factor = D<L>::load(total);
    const auto scale = [&](int64_t tile, LaneSums<L>& sums) {
        each_rows<L>(block, tile, [&](int64_t row, auto values) {
            constexpr int W = decltype(values)::value;
            float* x = block.result + row * L;
            const D<W> y = D<W>::max(D<W>::widen(x), of_rows<W>(least));
            D<W>::narrow(x, D<W>::mul(D<W>::mul(y, node_weight64<L, W>(block, row)), of_rows<W>(factor)));
        });
        add_lost<L>(block, tile, sums);
    };
    sum_tiles(block.num_tiles, 8, q.execution, block.sums, scale).value(lost);
}

// What the float64 sums of rows read, by value, so that the compiler knows that no store changes it.
template <int L>
struct ResidualRows {
    const float *x, *weight, *mask;
    const double *scale, *eta;
    const int64_t* indptr;
    const int32_t* indices;
    const int32_t* later = nullptr;  // `indices`, advanced by some entries
    const uint8_t* edge_type;
    int64_t types_in_scale, scale_stride;
    bool per_type, per_lane;

    explicit ResidualRows(const BlockRows<L>& block)
        : x(block.result), weight(block.graph.weight), mask(block.mask32), scale(block.scale64), eta(block.eta64),
          indptr(block.graph.indptr), indices(block.graph.indices), edge_type(block.graph.edge_type),
          types_in_scale(block.types_in_scale()), scale_stride(types_in_scale * (block.per_lane ? L : 1)),
          per_type(block.queries.per_type), per_lane(block.per_lane) {}

    HF_MEMBER D<L> add(int64_t e, D<L> acc) const { return add(e, indices[e], weight, edge_type, acc); }

    // Adds the contribution of entry e, whose source is u, in whichever order entries are stored.
    HF_MEMBER D<L> add(int64_t e, int64_t u, const float* weights, const uint8_t* types, D<L> acc) const {
        const int type = types == nullptr ? 0 : types[e];
        const double w = weights == nullptr ? 1.0 : weights[e];
        const int64_t at = per_type ? u * types_in_scale + type : u;
        D<L> factor = per_lane ? D<L>::mul(D<L>::all(w), D<L>::load(scale + at * L)) : D<L>::all(w * scale[at]);
        if (eta != nullptr) factor = D<L>::mul(factor, D<L>::load(eta + type * L));
        return D<L>::fma(factor, D<L>::widen(x + u * L), acc);
    }

    // The sums of the 8 units of a slice, of one lane and joint weights.
    template <class Source>
    HF_MEMBER void sum_units(const int64_t* units, const Source* source, const PprSlices& slices, double* sums) const {
        const int64_t shortest = shortest_unit(units);
        int64_t e = units[0];
        D<8> acc = D<8>::zero();
        for (int64_t j = 0; j < shortest; ++j, e += PPR_SLICE) {
            D<8> factor = D<8>::gather(scale, source + e);
            if (slices.weight != nullptr) factor = D<8>::mul(D<8>::widen(slices.weight + e), factor);
            if (eta != nullptr && slices.edge_type == nullptr) factor = D<8>::mul(factor, D<8>::all(*eta));
            else if (eta != nullptr) factor = D<8>::mul(factor, D<8>::gather(eta, slices.edge_type + e));
            acc = D<8>::fma(factor, D<8>::gather(x, source + e), acc);
        }
        D<8>::store(sums, acc);
        rest_of_units(units, e, [&](int i, int64_t entry) {
            const D<1> sum = D<1>::load(sums + i);
            D<1>::store(sums + i, add(entry, source[entry], slices.weight, slices.edge_type, sum));
        });
    }

    HF_MEMBER D<L> sum(int64_t row) const {
        const int64_t begin = indptr[row], end = indptr[row + 1];
        if (mask != nullptr && end - begin > PPR_SEGMENT) return masked_sum(begin, end);
        D<L> total = D<L>::zero();
        for (int64_t segment = begin; segment < end; segment += PPR_SEGMENT) {
            const int64_t stop = segment + PPR_SEGMENT < end ? segment + PPR_SEGMENT : end;
            D<L> acc = D<L>::zero();
            for (int64_t e = segment; e < stop; ++e) {
                look_ahead(later[e]);
                acc = add(e, acc);
            }
            total = D<L>::add(total, acc);
        }
        return total;
    }

    // The sum of a row longer than a segment with masked lanes: segments are cut by the number of entries that count.
    D<L> masked_sum(int64_t begin, int64_t end) const {
        const F<L> full = F<L>::all(float(PPR_SEGMENT));
        D<L> total = D<L>::zero(), acc = D<L>::zero();
        F<L> count = F<L>::zero();
        for (int64_t e = begin; e < end; ++e) {
            acc = add(e, acc);
            count = F<L>::add(count, F<L>::load(mask + int64_t{indices[e]} * L));
            uint32_t cut = F<L>::ge(count, full);
            if (cut == 0) continue;
            double totals[L], accs[L];
            float counts[L];
            D<L>::store(totals, total), D<L>::store(accs, acc), F<L>::store(counts, count);
            for (; cut != 0; cut &= cut - 1) {
                const int lane = __builtin_ctz(cut);
                totals[lane] = totals[lane] + accs[lane];
                accs[lane] = 0.0, counts[lane] = 0.0f;
            }
            total = D<L>::load(totals), acc = D<L>::load(accs), count = F<L>::load(counts);
        }
        return D<L>::add(total, acc);
    }

    // The sums of `together` rows of one length, at most a segment.
    template <int together>
    HF_MEMBER void sums(int64_t row, D<L>* out) const {
        const int64_t begin = indptr[row], length = indptr[row + 1] - begin;
        HF_UNROLL for (int i = 0; i < together; ++i) out[i] = D<L>::zero();
        for (int64_t j = 0; j < length; ++j) HF_UNROLL for (int i = 0; i < together; ++i) {
                const int64_t e = begin + i * length + j;
                if (L >= 16) look_ahead(later[e]);
                out[i] = add(e, out[i]);
            }
        HF_UNROLL for (int i = 0; i < together; ++i) out[i] = D<L>::add(D<L>::zero(), out[i]);  // as one segment
    }

    // Prefetches what an entry of source u reads, as a pass does.
    HF_MEMBER void look_ahead(int64_t u) const {
        for (int line = 0; line < L; line += 16) __builtin_prefetch(x + u * L + line);
        if (L >= 16 && !per_lane) return;
        for (int line = 0; line < (per_lane ? L : 1); line += 8) __builtin_prefetch(scale + u * scale_stride + line);
    }
};

// Computes r = d P' x^ + (1 - d + d m) s - x^ in float64, row by row.
template <int L>
struct Residual {
    const BlockRows<L> block;
    ResidualRows<L> rows;
    const D<L> d, back;
    const bool masked_type;
    const D<L> grown_by;    // of |x|, in the bound per node
    float* const improved;  // if not null, receives fl(x^ + r), one power step in float64
    D<L> largest = D<L>::zero();
    D<8> largest_of_8 = D<8>::zero();  // of 8 rows of one lane

    Residual(const PprBlock<L>& shared, const double* restart_factor, float* step)
        : block(shared), rows(block), d(D<L>::load(shared.damping)), back(D<L>::load(restart_factor)),
          masked_type(block.queries.per_type && block.per_lane),
          grown_by(D<L>::mul(D<L>::all(2.0), D<L>::load(shared.slack))), improved(step) {}

    // Prefetches what a later row reads: gathers keep the processor from recognising these streams.
    HF_MEMBER void prefetch(int64_t row) const {
        if constexpr (L >= 16) rows.look_ahead(row);
    }

    // Returns |r| of a row, from the sum of its entries.
    HF_MEMBER D<L> of(int64_t row, D<L> sum) {
        const bool restarts = block.has_restart(row);
        const double* const restart = restarts ? block.restart64 + block.restart_index(row) * L : nullptr;
        return of(row, sum, restart, largest);
    }

    // The same of 8 rows of one lane that do not restart.
    HF_MEMBER D<8> of_8(int64_t row, D<8> sums) { return of(row, sums, nullptr, largest_of_8); }

private:
    template <int W>
    HF_MEMBER D<W> of(int64_t row, D<W> sum, const double* restart, D<W>& most) const {
        D<W> walked = D<W>::mul(of_rows<W>(d), sum);
        // Edges into nodes that may not hold mass are ignored.
        if (block.attraction != nullptr) {
            walked = D<W>::mul(walked, D<W>::widen(attraction_row<L>(block, row)));
        } else if (masked_type) {
            walked = D<W>::mul(walked, D<W>::load(block.unscale64 + row * L));
        } else if (!block.queries.per_type && block.per_lane) {
            double open[W];
            for (int i = 0; i < W; ++i) open[i] = block.unscale64[row * L + i] > 0.0 ? 1.0 : 0.0;
            walked = D<W>::mul(walked, D<W>::load(open));
        }
        const D<W> x = D<W>::widen(rows.x + row * L);
        D<W> r = D<W>::sub(walked, x);
        if (restart != nullptr) r = D<W>::fma(of_rows<W>(back), D<W>::load(restart), r);
        if (improved != nullptr) D<W>::narrow(improved + row * L, D<W>::add(x, r));
        if (block.correction != nullptr)
            D<W>::narrow(block.correction + row * L, D<W>::mul(r, lanes64<L, W>(block.scale64, row, block.per_lane)));
        r = D<W>::abs(r);
        if (block.chebyshev) {
            const D<W> grown = D<W>::fma(of_rows<W>(grown_by), D<W>::abs(x), r);
            const D<W> share = D<W>::mul(grown, lanes64<L, W>(block.scale64, row, block.per_lane));
            most = D<W>::max(most, over_attraction<L>(block, row, share));
        }
        return r;
    }
};

// Calls take(|r|) for rows begin .. end, rows of one length together.
template <int L, class Take>
HF_INLINE void residual_rows(Residual<L>& residual, int64_t begin, int64_t end, const Take& take) {
    constexpr int together = rows_together<L>;
    constexpr int64_t ahead = 8;
    for (int64_t row = begin; row < end;) {
        HF_UNROLL for (int64_t i = 0; i < together; ++i)
            residual.prefetch(row + ahead + i < end ? row + ahead + i : row);
        if (row + together <= end && have_one_length(residual.rows.indptr, row, together)) {
            D<L> sums[together];
            residual.rows.template sums<together>(row, sums);
            for (int i = 0; i < together; ++i) take(residual.of(row + i, sums[i]));
            row += together;
        } else {
            take(residual.of(row, residual.rows.sum(row)));
            ++row;
        }
    }
}

// The same from tiles, whose units are the segments of rows without masks.
template <int L>
LaneSums<L> sum_residual_of_tiles(PprBlock<L>& block, const Residual<L>& shared) {
    const PprTiles& tiles = *block.graph.tiles;
    const int threads = block.queries.execution.threads;
    for (int thread = 0; thread < threads; ++thread) block.sums[thread] = LaneSums<L>();
    parallel_for(tiles.num_blocks, 1, block.queries.execution, [&](int64_t number, int thread) {
        const int64_t first = tiles.block_row[number], end = tiles.block_row[number + 1];
        double* const sums = block.unit_sums + thread * tiles.most_units * L;
        std::memset(sums, 0, size_t(tiles.most_units) * L * sizeof(double));
        Residual<L> residual = shared;
        const int64_t* const begin = tiles.begin + number * tiles.num_strips;
        for (int64_t strip = 0; strip < tiles.num_strips; ++strip)
            for (int64_t e = begin[strip]; e < begin[strip + 1]; ++e) {
                double* const sum = sums + int64_t{tiles.unit[e]} * L;
                const int64_t u = strip * tiles.strip + tiles.source[e];
                D<L>::store(sum, residual.rows.add(e, u, tiles.weight, tiles.edge_type, D<L>::load(sum)));
            }
        LaneSums<L> found;
        const double* sum = sums;
        for (int64_t row = first; row < end; ++row) {
            D<L> total = D<L>::zero();
            for (int64_t unit = segment_count(block.graph, row); unit > 0; --unit, sum += L)
                total = D<L>::add(total, D<L>::load(sum));
            found.add(residual.of(row, total));
        }
        found.largest = residual.largest;
        block.sums[thread].join(found);
    });
    return joined(block.sums, threads);
}

// The same from slices, of one lane and joint weights: 8 units at a time.
template <class Source>
LaneSums<1> sum_residual_of_slices(const PprBlock<1>& block, const Residual<1>& shared, const Source* source) {
    const PprSlices& slices = *block.graph.slices;
    const int threads = block.queries.execution.threads;
    for (int thread = 0; thread < threads; ++thread) block.sums[thread] = LaneSums<1>();
    divide_slices(block.graph, block.queries.execution, [&](int64_t begin, int64_t end, int thread) {
        Residual<1> residual = shared;
        LaneSums<1> found;
        LaneSums<8> found_of_8;
        for (int64_t slice = begin; slice < end; ++slice) {
            const int64_t unit = slice * PPR_SLICE;
            const int64_t* const indptr = slices.indptr + unit;
            double sums[PPR_SLICE];
            residual.rows.sum_units(indptr, source, slices, sums);
            if (unit < slices.segment_units) {
                for (int i = 0; i < PPR_SLICE; ++i) block.unit_sums[slices.segment[unit + i]] = sums[i];
                continue;
            }
            const int64_t row = slices.long_rows + unit - slices.segment_units;
            const D<8> totals = D<8>::add(D<8>::zero(), D<8>::load(sums));
            if (row + PPR_SLICE <= block.graph.num_nodes && !block.have_restart(row)) {
                found_of_8.add(residual.of_8(row, totals));
                continue;
            }
            for (int i = 0; i < PPR_SLICE && row + i < block.graph.num_nodes; ++i)
                found.add(residual.of(row + i, D<1>::add(D<1>::zero(), D<1>::load(sums + i))));
        }
        found.largest = residual.largest;
        join_rows(found_of_8.sum, residual.largest_of_8, found);
        block.sums[thread].join(found);
    });
    divide_long_rows(slices, block.queries.execution, [&](int64_t begin, int64_t end, int thread) {
        Residual<1> residual = shared;
        LaneSums<1> found;
        for (int64_t row = begin; row < end; ++row) {
            D<1> total = D<1>::zero();
            for (int64_t segment = slices.row_segments[row]; segment < slices.row_segments[row + 1]; ++segment)
                total = D<1>::add(total, D<1>::load(block.unit_sums + segment));
            found.add(residual.of(row, total));
        }
        found.largest = residual.largest;
        block.sums[thread].join(found);
    });
    return joined(block.sums, threads);
}

// The sums of |r|, and the largest bound per node.
template <int L>
LaneSums<L> sum_residual(PprBlock<L>& block, const Residual<L>& shared) {
    if constexpr (L == 1) {
        if (block.graph.slices != nullptr && block.mask32 == nullptr && !block.queries.per_type) {
            const PprSlices& slices = *block.graph.slices;
            if (slices.narrow != nullptr) return sum_residual_of_slices(block, shared, slices.narrow);
            return sum_residual_of_slices(block, shared, slices.wide);
        }
    }
    if constexpr (L <= PPR_TILE_LANES) {
        if (block.graph.tiles != nullptr && block.mask32 == nullptr) return sum_residual_of_tiles<L>(block, shared);
    }
    const auto take = [&](int64_t tile, LaneSums<L>& sums) {
        Residual<L> residual = shared;
        residual.rows.later = block.graph.indices + entries_ahead(block.graph, block.tile_end(tile));
        residual_rows<L>(residual, block.tile_begin(tile), block.tile_end(tile), [&](D<L> r) { sums.add(r); });
        sums.largest = residual.largest;
    };
    return sum_tiles(block.num_tiles, 8, block.queries.execution, block.sums, take);
}

// Computes the bounds that follow from r. `improved`, if not null, receives fl(x^ + r).
template <int L>
PprCertificate<L> certify(PprBlock<L>& block, const double* lost, float* improved) {
    double restart_factor[L];
    for (int lane = 0; lane < L; ++lane)
        restart_factor[lane] = 1.0 - block.damping[lane] + block.damping[lane] * lost[lane];
    const LaneSums<L> sums = sum_residual<L>(block, Residual<L>(block, restart_factor, improved));
    PprCertificate<L> out;
    double largest[L];
    sums.value(out.residual);
    D<L>::store(largest, sums.largest);
    for (int lane = 0; lane < L; ++lane) {
        const double slack = block.slack[lane], d = block.damping[lane];
        out.bound[lane] = ppr_bound(out.residual[lane], slack, block.missed[lane], d);
        out.per_degree[lane] = ppr_node_bound(block.keeps[lane], largest[lane], slack, d);
    }
    return out;
}

// Computes each lane's lost mass of x^.
template <int L>
void lost_mass(PprBlock<L>& block, double* lost) {
    const auto take = [&](int64_t tile, LaneSums<L>& sums) { add_lost<L>(block, tile, sums); };
    sum_tiles(block.num_tiles, 8, block.queries.execution, block.sums, take).value(lost);
}

// Makes power steps in float64 for lanes whose certificate exceeds tol, until it is met or a step gains less than 2 %, since
// float32 then cannot represent a better answer. Other lanes do not change. Adds each lane's steps to `passes`.
template <int L>
void polish(PprBlock<L>& block, Lanes<L>& open, double* lost, PprCertificate<L>& certificate, int64_t* passes) {
    if (!open.any()) return;
    certify<L>(block, lost, block.current);
    for (int step = 0; step < PPR_POLISH_STEPS && open.any(); ++step) {
        parallel_for(block.graph.num_nodes, block.queries.execution, [&](int64_t row, int) {
            for (int lane = 0; lane < L; ++lane)
                if (!open[lane]) block.current[row * L + lane] = block.result[row * L + lane];
        });
        float* swap = block.current;
        block.current = block.result, block.result = swap;
        lost_mass<L>(block, lost);
        const PprCertificate<L> next = certify<L>(block, lost, block.current);
        open.each([&](int lane) {
            const bool gained = next.bound[lane] < PPR_POLISH_GAIN * certificate.bound[lane];
            certificate.residual[lane] = next.residual[lane];
            certificate.bound[lane] = next.bound[lane];
            certificate.per_degree[lane] = next.per_degree[lane];
            passes[lane] += 1;
            open[lane] = gained && next.bound[lane] > block.queries.tol;
        });
    }
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
