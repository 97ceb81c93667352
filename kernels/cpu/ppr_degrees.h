// Degrees per lane, for walks in which filters, node weights or weights of edge types change them. Included once per
// instruction set.
#pragma once

#include <algorithm>
#include <limits>

#include "ppr_block.h"
#include "ppr_rows.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// Fills in 1 where a lane may hold mass, else 0, (N, L).
template <int L>
void spread_mask(const PprBlock<L>& block, float* mask) {
    const PprQueries& q = block.queries;
    const int64_t n = block.graph.num_nodes;
    parallel_for(block.num_tiles, q.execution, [&](int64_t tile, int) {
        for (int64_t row = block.tile_begin(tile); row < block.tile_end(tile); ++row)
            for (int lane = 0; lane < L; ++lane) {
                const int64_t b = q.allow_shared ? 0 : block.query[lane];
                const int64_t node = node_of_row(block.graph, row);
                const bool allowed = q.allow == nullptr || (block.query[lane] >= 0 && q.allow[b * n + node] != 0);
                mask[row * L + lane] = allowed ? 1.0f : 0.0f;
            }
    });
}

// Fills in each lane's node weights, (N, L), 1 in unused lanes; with `all` also those of other nodes.
template <int L>
void spread_weights(const PprBlock<L>& block, float* weights, bool all) {
    const PprQueries& q = block.queries;
    float others[L], ones[16];
    const float* columns[L];
    std::fill_n(ones, 16, 1.0f);
    for (int lane = 0; lane < L; ++lane) {
        const int64_t b = block.query[lane];
        others[lane] = b < 0 ? 1.0f : q.other_weight[b];
        columns[lane] = b < 0 ? nullptr : q.node_weight + b * q.num_weighted;
    }
    const F<L> other = F<L>::load(others);
    const Execution worth =
        on_threads(q.execution, threads_worth(block.graph.num_nodes * L, 1 << 16, q.execution.threads));
    if (all)
        parallel_for(block.graph.num_nodes, worth, [&](int64_t row, int) { F<L>::store(weights + row * L, other); });
    constexpr int64_t group = 16;
    const auto own = [&](int64_t column) { return weights + row_of_node(block.graph, q.weighted_node[column]) * L; };
    parallel_for((q.num_weighted + group - 1) / group, worth, [&](int64_t part, int) {
        const int64_t begin = part * group, end = std::min(begin + group, q.num_weighted);
        if constexpr (L >= 16) {  // transposes squares of 16 lanes by 16 columns
            for (int first = 0; end == begin + group && first < L; first += 16) {
                const float* from[16];
                float* to[16];
                for (int i = 0; i < 16; ++i) {
                    from[i] = columns[first + i] == nullptr ? ones : columns[first + i] + begin;
                    to[i] = own(begin + i) + first;
                }
                transpose_16(from, to);
            }
            if (end == begin + group) return;
        }
        for (int64_t column = begin; column < end; ++column)
            for (int lane = 0; lane < L; ++lane)
                own(column)[lane] = columns[lane] == nullptr ? 1.0f : columns[lane][column];
    });
}

// Marks the rows whose nodes have their own weights. The weights of others are known without reading the table, unless lanes
// exclude nodes.
template <int L>
bool mark_weighted(PprBlock<L>& block) {
    const PprQueries& q = block.queries;
    block.weighted = block.work.template reserve<uint64_t>(slot_weighted, size_t(block.num_tiles) + L);
    if (block.weighted == nullptr) return false;
    block.other = reinterpret_cast<float*>(block.weighted + block.num_tiles);
    block.other_inverse = block.other + L;
    std::memset(block.weighted, block.mask32 == nullptr ? 0 : 0xff, size_t(block.num_tiles) * sizeof(uint64_t));
    for (int64_t column = 0; column < q.num_weighted; ++column) {
        const int64_t row = row_of_node(block.graph, q.weighted_node[column]);
        block.weighted[row >> 6] |= uint64_t{1} << (row & 63);
    }
    for (int lane = 0; lane < L; ++lane) {
        const int64_t b = block.query[lane];
        block.other[lane] = b < 0 ? 1.0f : q.other_weight[b];
        block.other_inverse[lane] = block.other[lane] > 0.0f ? 1.0f / block.other[lane] : 0.0f;
    }
    return true;
}

// Whether a lane's node weights exclude a node.
template <int L>
bool weights_exclude(const PprBlock<L>& block) {
    const PprQueries& q = block.queries;
    for (int lane = 0; lane < L; ++lane) {
        const int64_t b = block.query[lane];
        if (b < 0) continue;
        const float* const own = q.node_weight + b * q.num_weighted;
        int zeros = q.other_weight[b] == 0.0f ? 1 : 0;
        for (int64_t column = 0; column < q.num_weighted; ++column) zeros |= own[column] == 0.0f ? 1 : 0;
        if (zeros != 0) return true;
    }
    return false;
}

// Sets weights to 0 where the mask is 0, and the mask to 0 where weights are 0.
template <int L>
void join_mask(const PprBlock<L>& block, float* mask, float* weights) {
    parallel_for(block.graph.num_nodes, block.queries.execution, [&](int64_t row, int) {
        for (int64_t at = row * L; at < (row + 1) * L; ++at) {
            weights[at] = weights[at] * mask[at];
            mask[at] = weights[at] > 0.0f ? 1.0f : 0.0f;
        }
    });
}

// Fills in the block's mask and node weights, if it has any. False: no memory.
template <int L>
bool setup_nodes(PprBlock<L>& block) {
    const PprQueries& q = block.queries;
    const size_t nodes = size_t(block.graph.num_nodes) * L;
    const bool excludes = q.allow != nullptr || (q.node_weight != nullptr && weights_exclude<L>(block));
    float *mask = nullptr, *weights = nullptr;
    if (excludes) {
        mask = block.work.template reserve<float>(slot_mask, nodes);
        if (mask == nullptr) return false;
        spread_mask<L>(block, mask);
    }
    if (q.node_weight != nullptr) {
        weights = block.work.template reserve<float>(slot_attraction, nodes);
        if (weights == nullptr) return false;
        spread_weights<L>(block, weights, L == 1 || excludes || q.per_type);  // if the whole table is read
    }
    if (mask != nullptr && weights != nullptr) join_mask<L>(block, mask, weights);
    block.mask32 = mask, block.attraction = weights;
    return weights == nullptr || mark_weighted<L>(block);
}

// The factor of a lane's nodes: the node weight, or 1, or 0 for excluded nodes.
template <int L>
struct NodeShares {
    const float* table;        // (N, L)
    const uint64_t* weighted;  // null: all rows are in the table, as for one lane
    float other[L] = {};       // the factors of rows that are not in the table

    NodeShares(const PprBlock<L>& block, const float* mask)
        : table(block.attraction == nullptr ? mask : block.attraction),
          weighted(block.attraction == nullptr ? nullptr : block.weighted) {
        if (block.attraction != nullptr) std::copy_n(block.other, L, other);
    }
    HF_MEMBER const float* of(int64_t row) const {
        const bool is_other = L > 1 && weighted != nullptr && !((weighted[row >> 6] >> (row & 63)) & 1u);
        return is_other ? other : table + row * L;
    }
};

// The rows of entries out of each node, and the factors of their targets.
template <int L>
struct OutRows {
    const int64_t* indptr;
    const int32_t* indices;
    const float* weight;
    const uint8_t* edge_type;
    const NodeShares<L> shares;

    OutRows(const PprBlock<L>& block, const NodeShares<L>& of_targets) : shares(of_targets) {
        const PprGraph& g = block.graph;
        indptr = g.directed ? g.out_indptr : g.indptr;
        indices = g.directed ? g.out_indices : g.indices;
        weight = g.directed ? g.out_weight : g.weight;
        edge_type = g.directed ? g.out_edge_type : g.edge_type;
    }

    HF_MEMBER int64_t length(int64_t row) const { return indptr[row + 1] - indptr[row]; }
    HF_MEMBER bool is_empty(int64_t row) const { return length(row) == 0; }

    HF_MEMBER D<L> add(int64_t e, D<L> acc) const {
        return D<L>::fma(D<L>::all(weight == nullptr ? 1.0 : weight[e]), D<L>::widen(shares.of(indices[e])), acc);
    }

    // How many types are summed at once, and the sums of a row: by type, and of the entries of all other types.
    static constexpr int most_types = 8, row_sums = most_types + 1;

    // Sums the weight out of `together` rows by `types` types from `first` on, (together, row_sums), in ascending order of the
    // target: side by side up to the length of the shortest, then the rest of each. Reads each entry once for all types.
    template <int together>
    HF_MEMBER void degrees(int64_t row, int first, int types, D<L>* sums) const {
        const int64_t* const begin = indptr + row;
        int64_t shortest = begin[1] - begin[0];
        for (int i = 1; i < together; ++i) shortest = std::min(shortest, begin[i + 1] - begin[i]);
        if (edge_type == nullptr) return sum<together>(begin, shortest, sums);
        sum_types<together>(begin, shortest, first, types, sums);
    }

    // All entries are of one type.
    template <int together>
    HF_MEMBER void sum(const int64_t* begin, int64_t shortest, D<L>* sums) const {
        D<L> acc[together];
        HF_UNROLL for (int i = 0; i < together; ++i) acc[i] = D<L>::zero();
        for (int64_t j = 0; j < shortest; ++j)
            HF_UNROLL for (int i = 0; i < together; ++i) acc[i] = add(begin[i] + j, acc[i]);
        HF_UNROLL for (int i = 0; i < together; ++i) sums[i * row_sums] = acc[i];
        if (together * shortest == begin[together] - begin[0]) return;
        for (int i = 0; i < together; ++i) {
            D<L> rest = sums[i * row_sums];
            for (int64_t e = begin[i] + shortest; e < begin[i + 1]; ++e) rest = add(e, rest);
            sums[i * row_sums] = rest;
        }
    }

    // A sum may be in memory: chains of additions of several rows and types overlap.
    template <int together>
    HF_MEMBER void sum_types(const int64_t* begin, int64_t shortest, int first, int types, D<L>* sums) const {
        const int cleared = L == 1 ? most_types : types;  // of one lane, a few vectors clear all sums
        for (int i = 0; i < together; ++i) {
            for (int t = 0; t < cleared; ++t) sums[i * row_sums + t] = D<L>::zero();
            sums[i * row_sums + most_types] = D<L>::zero();
        }
        const auto take = [&](int i, int64_t e) {
            const uint32_t t = uint32_t{edge_type[e]} - uint32_t(first);
            D<L>& own = sums[i * row_sums + (t < most_types ? t : most_types)];
            own = add(e, own);
        };
        for (int64_t j = 0; j < shortest; ++j) HF_UNROLL for (int i = 0; i < together; ++i) take(i, begin[i] + j);
        for (int i = 0; i < together; ++i)
            for (int64_t e = begin[i] + shortest; e < begin[i + 1]; ++e) take(i, e);
    }

    // The number of a row's entries that each lane does not exclude.
    HF_MEMBER D<L> count(int64_t row, const float* mask) const {
        D<L> entries = D<L>::zero();
        for (int64_t e = indptr[row]; e < indptr[row + 1]; ++e)
            entries = D<L>::add(entries, D<L>::widen(mask + int64_t{indices[e]} * L));
        return entries;
    }
};

// Measures what the rounding of a residual depends on, in each lane's own subgraph: the most entries in a row or out of a
// node, in `largest`, and the number of nodes with entries, in `sum`. `out` has the entries out of row u, or all its entries
// if the graph is undirected.
template <int L>
void count_entries(const PprBlock<L>& block, int64_t u, D<L> out, LaneSums<L>& sizes) {
    const PprGraph& g = block.graph;
    D<L> most = out;
    if (g.directed) {
        D<L> in = D<L>::zero();
        for (int64_t e = g.indptr[u]; e < g.indptr[u + 1]; ++e)
            in = D<L>::add(in, D<L>::widen(block.mask32 + int64_t{g.indices[e]} * L));
        most = D<L>::max(in, out);
    }
    most = D<L>::mul(most, D<L>::widen(block.mask32 + u * L));
    sizes.largest = D<L>::max(sizes.largest, most);
    const D<L> more = D<L>::max(D<L>::sub(most, D<L>::all(1.0)), D<L>::zero());
    sizes.sum = D<L>::add(sizes.sum, D<L>::sub(most, more));
}

// The tables of degrees that are filled in.
struct DegreeTables {
    float *scale32, *unscale32;
    double *scale64, *unscale64;
};

// 1 in lanes above 0, else 0.
template <int L>
HF_INLINE D<L> positive_lanes(D<L> values) {
    double value[L], is_positive[L];
    D<L>::store(value, values);
    for (int lane = 0; lane < L; ++lane) is_positive[lane] = value[lane] > 0.0 ? 1.0 : 0.0;
    return D<L>::load(is_positive);
}

// The smallest node weight of the nodes from which a lane walks on, and the smallest factor of their rows.
template <int L>
struct LeastOfRows {
    float weight[L], factor[L];

    LeastOfRows() {
        for (int lane = 0; lane < L; ++lane) weight[lane] = factor[lane] = 1.0f;
    }
    void join(const LeastOfRows& other) {
        for (int lane = 0; lane < L; ++lane) {
            weight[lane] = other.weight[lane] < weight[lane] ? other.weight[lane] : weight[lane];
            factor[lane] = other.factor[lane] < factor[lane] ? other.factor[lane] : factor[lane];
        }
    }
};

// What degrees add up to, of W values at once: those of the lanes of a row, or of several rows of one lane.
template <int W>
struct DegreeSums {
    D<W> largest = D<W>::zero(), terms = D<W>::zero(), volume = D<W>::zero();
    F<W> weight = F<W>::all(-1.0f), factor = F<W>::all(-1.0f);  // negatives of the smallest ones

    // Adds terms of volumes, of which `above` are above 0, by the guessed anchor.
    HF_MEMBER void add_terms(D<W> term, D<W> above, D<W> anchor) {
        largest = D<W>::max(largest, term);
        terms = D<W>::add(terms, above);
        volume = D<W>::add(volume, to_grains<W>(term, anchor));
    }
    HF_MEMBER void add_factors(F<W> weights, F<W> factors) {
        weight = F<W>::max(weight, F<W>::sub(F<W>::zero(), weights));
        factor = F<W>::max(factor, F<W>::sub(F<W>::zero(), factors));
    }

    // Joins each L values in turn to the sums of L lanes.
    template <int L>
    void join_to(LaneSums<L>& sums, LeastOfRows<L>& least) const {
        double all_largest[W], all_terms[W], all_volumes[W];
        float all_weights[W], all_factors[W];
        D<W>::store(all_largest, largest), D<W>::store(all_terms, terms), D<W>::store(all_volumes, volume);
        F<W>::store(all_weights, weight), F<W>::store(all_factors, factor);
        for (int first = 0; first < W; first += L) {
            LaneSums<L> part;
            LeastOfRows<L> least_of_part;
            part.sum = D<L>::load(all_terms + first), part.second = D<L>::load(all_volumes + first);
            part.largest = D<L>::load(all_largest + first);
            for (int lane = 0; lane < L; ++lane) {
                least_of_part.weight[lane] = -all_weights[first + lane];
                least_of_part.factor[lane] = -all_factors[first + lane];
            }
            sums.join(part);
            least.join(least_of_part);
        }
    }
};

// Stores the degrees of rows, type by type.
template <int L>
class DegreeEnd {
public:
    static constexpr int width = L == 1 ? 8 : L;

    DegreeEnd(const PprBlock<L>& shared, const DegreeTables& tables, const NodeShares<L>& shares)
        : all_walk(shared.mask32 == nullptr && shared.eta64 == nullptr && !shared.queries.per_type), block_(shared),
          tables_(tables), shares_(shares), anchor_(D<L>::load(shared.volume_anchor)) {
        double anchors[width];
        for (int i = 0; i < width; ++i) anchors[i] = shared.volume_anchor[i % L];
        wide_anchor_ = D<width>::load(anchors);
    }

    // Takes the degree by one type: adds it to `joint`, or stores it for per_type.
    HF_MEMBER void take(int64_t row, int type, D<L> degree, D<L>& joint) const {
        if (!block_.queries.per_type) {
            const D<L> eta = block_.eta64 == nullptr ? D<L>::all(1.0) : D<L>::load(block_.eta64 + type * L);
            joint = D<L>::fma(eta, degree, joint);
            return;
        }
        const int64_t at = (row * block_.graph.num_types + type) * L;
        const D<L> walks = walking(positive_lanes<L>(D<L>::widen(shares_.of(row))), degree);
        const D<L> inverse = inverse_of(walks, degree);
        D<L>::store(tables_.scale64 + at, inverse);
        D<L>::narrow(tables_.scale32 + at, inverse);
        if (block_.eta32 == nullptr) return;
        const F<L> eta = F<L>::load(block_.eta32 + type * L);
        F<L>::store(tables_.scale32 + at, F<L>::mul(F<L>::load(tables_.scale32 + at), eta));
    }

    HF_MEMBER void end(int64_t row, D<L> joint) {
        const int64_t at = row * L;
        const float* const own = shares_.of(row);
        const D<L> share = D<L>::widen(own), open = positive_lanes<L>(share);
        if (block_.queries.per_type) {
            D<L>::store(tables_.unscale64 + at, open);
            D<L>::narrow(tables_.unscale32 + at, open);
            return;
        }
        const D<L> walks = walking(open, joint), rests = D<L>::sub(D<L>::all(1.0), walks);
        const D<L> inverse = inverse_of(walks, joint);
        const D<L> unscale = D<L>::fma(joint, walks, D<L>::sub(open, walks));  // or 1 where no walk continues
        store<L>(at, inverse, unscale, D<L>::fma(share, rests, D<L>::mul(share, inverse)));
        sums_.add_terms(D<L>::mul(D<L>::mul(share, unscale), walks), walks, anchor_);
        if (block_.attraction == nullptr) return;
        float walks32[L];
        D<L>::narrow(walks32, walks);
        const F<L> walking32 = F<L>::load(walks32), rests32 = F<L>::sub(F<L>::all(1.0f), walking32);
        sums_.add_factors(F<L>::fma(F<L>::load(own), walking32, rests32),
                          F<L>::fma(F<L>::load(tables_.scale32 + at), walking32, rests32));
    }

    // Ends width / L rows with entries at once, if every lane walks on from such rows.
    HF_MEMBER void end_walking(int64_t row, D<width> degree) {
        const int64_t at = row * L;
        const float* const own = shares_.of(row);
        const D<width> share = D<width>::widen(own), inverse = D<width>::div(D<width>::all(1.0), degree);
        store<width>(at, inverse, degree, D<width>::mul(share, inverse));
        wide_.add_terms(D<width>::mul(share, degree), D<width>::all(1.0), wide_anchor_);
        wide_.add_factors(F<width>::load(own), F<width>::load(tables_.scale32 + at));
    }

    // Joins the largest term of each lane's volume, the number of terms above 0 and their sum by the guessed anchor.
    void join_sums(LaneSums<L>& terms, LeastOfRows<L>& least) const {
        sums_.template join_to<L>(terms, least);
        wide_.template join_to<L>(terms, least);
    }

    const bool all_walk;  // every lane walks on from a row with entries

private:
    // 1 in lanes that have a degree there and do not exclude the node.
    HF_MEMBER D<L> walking(D<L> open, D<L> degree) const { return D<L>::mul(open, positive_lanes<L>(degree)); }

    // 1 / degree where a walk continues, else 0.
    HF_MEMBER D<L> inverse_of(D<L> walks, D<L> degree) const {
        constexpr double least_degree =
            std::numeric_limits<double>::min();  // products of two float32 numbers are larger
        return D<L>::div(walks, D<L>::max(degree, D<L>::all(least_degree)));
    }

    template <int W>
    HF_MEMBER void store(int64_t at, D<W> inverse, D<W> unscale, D<W> factor) const {
        D<W>::store(tables_.scale64 + at, inverse);
        D<W>::store(tables_.unscale64 + at, unscale);
        D<W>::narrow(tables_.unscale32 + at, unscale);
        D<W>::narrow(tables_.scale32 + at, factor);
    }

    const BlockRows<L> block_;
    const DegreeTables tables_;
    const NodeShares<L> shares_;
    const D<L> anchor_;  // of the volume, as guessed
    D<width> wide_anchor_;
    DegreeSums<L> sums_;
    DegreeSums<width> wide_;
};

// Ends the rows of a tile from `begin` on, of one lane, with their degrees.
inline void end_rows(DegreeEnd<1>& end_of, const OutRows<1>& rows, int64_t begin, int64_t end, const double* degrees) {
    constexpr int wide = DegreeEnd<1>::width;
    for (int64_t row = begin; row < end;) {
        bool are_walking = end_of.all_walk && row + wide <= end;
        for (int64_t i = row; are_walking && i < row + wide; ++i) are_walking = !rows.is_empty(i);
        if (are_walking) end_of.end_walking(row, D<wide>::load(degrees + row - begin));
        else end_of.end(row, D<1>::load(degrees + row - begin));
        row += are_walking ? wide : 1;
    }
}

// Computes the degrees of a tile's rows, several rows together.
template <int L>
void tile_degrees(const PprBlock<L>& block, int64_t tile, const DegreeTables& tables, const NodeShares<L>& shares,
                  LaneSums<L>& sizes, LaneSums<L>& terms, LeastOfRows<L>& least) {
    constexpr int together = rows_together<L>, most_types = OutRows<L>::most_types;
    const int types = block.graph.num_types;
    const OutRows<L> rows(block, shares);
    DegreeEnd<L> end_of(block, tables, shares);
    const bool counts = block.mask32 != nullptr || block.attraction != nullptr;  // otherwise degrees are the graph's
    const int64_t begin = block.tile_begin(tile), end = block.tile_end(tile);
    double degrees[L == 1 ? PPR_TILE : 1];
    for (int64_t row = begin; row < end;) {
        const bool takes_many = counts && row + together <= end;
        const int taken = takes_many ? together : 1;
        D<L> joint[together], degree[together * OutRows<L>::row_sums];
        for (D<L>& sum : joint) sum = D<L>::zero();
        for (int first = 0; first < types; first += most_types) {
            const int some = std::min(most_types, types - first);
            if (takes_many) rows.template degrees<together>(row, first, some, degree);
            else if (counts) rows.template degrees<1>(row, first, some, degree);
            else
                for (int t = 0; t < some; ++t) degree[t] = D<L>::all(block.graph.degree[row * types + first + t]);
            for (int t = 0; t < some; ++t)
                for (int i = 0; i < taken; ++i)
                    end_of.take(row + i, first + t, degree[i * OutRows<L>::row_sums + t], joint[i]);
        }
        for (int i = 0; i < taken; ++i) {
            if constexpr (L == 1) D<1>::store(degrees + row + i - begin, joint[i]);
            else if (end_of.all_walk && !rows.is_empty(row + i)) end_of.end_walking(row + i, joint[i]);
            else end_of.end(row + i, joint[i]);
            if (block.mask32 == nullptr) continue;
            count_entries<L>(block, row + i, rows.count(row + i, block.mask32), sizes);
        }
        row += taken;
    }
    if constexpr (L == 1) end_rows(end_of, rows, begin, end, degrees);
    end_of.join_sums(terms, least);
}

// Computes the rounding bounds, from the longest row of each lane's subgraph and the number of its nodes with entries.
template <int L>
void set_rounding(PprBlock<L>& block, D<L> longest_row, D<L> joined_nodes) {
    double longest[L], joined[L];
    D<L>::store(longest, longest_row), D<L>::store(joined, joined_nodes);
    for (int lane = 0; lane < L; ++lane) {
        const int64_t b = block.query[lane], nodes = static_cast<int64_t>(joined[lane]);
        const int64_t restarts = b < 0 ? 0 : block.queries.restart_indptr[b + 1] - block.queries.restart_indptr[b];
        block.longest_row[lane] = static_cast<int64_t>(longest[lane]);
        block.slack[lane] = ppr_slack(block.longest_row[lane], block.graph.num_types);
        block.missed[lane] = ppr_missed(nodes + restarts);
    }
}

// What each row adds to a lane's volume: fl(a_v D_v) where the walk continues, else 0.
template <int L>
class VolumeTerms {
public:
    VolumeTerms(const PprBlock<L>& block, const DegreeTables& tables, const NodeShares<L>& of_nodes)
        : shares_(of_nodes), scale_(tables.scale64), unscale_(tables.unscale64) {
        const PprGraph& g = block.graph;
        out_ = g.directed && g.out_indptr != nullptr ? g.out_indptr : g.indptr;
        all_walk_ = block.mask32 == nullptr && block.eta64 == nullptr;  // every lane walks on from a row with entries
    }

    HF_MEMBER D<L> of(int64_t row) const {
        if (all_walk_ && out_[row] == out_[row + 1]) return D<L>::zero();
        const D<L> term = D<L>::mul(D<L>::widen(shares_.of(row)), D<L>::load(unscale_ + row * L));
        if (all_walk_) return term;
        return D<L>::mul(term, positive_lanes<L>(D<L>::load(scale_ + row * L)));
    }

private:
    const NodeShares<L> shares_;
    const double *scale_, *unscale_;
    const int64_t* out_;
    bool all_walk_;
};

// Guesses the anchors of volumes from the degree of the longest row, so that one loop over the rows computes degrees and
// volumes. Rows are stored longest first in windows of tiles, so this row begins a tile. A wrong guess costs only time.
template <int L>
void guess_anchors(PprBlock<L>& block, const DegreeTables& tables, const NodeShares<L>& shares) {
    const PprGraph& graph = block.graph;
    std::fill_n(block.volume_anchor, L, PPR_ANCHOR);
    const bool counts = block.mask32 != nullptr || block.attraction != nullptr;  // otherwise rows are not read
    if (block.queries.per_type || graph.num_nodes == 0 || !counts) return;
    const OutRows<L> rows(block, shares);
    int64_t longest = 0;
    for (int64_t row = PPR_TILE; row < graph.num_nodes; row += PPR_TILE)
        if (rows.length(row) > rows.length(longest)) longest = row;
    const DegreeEnd<L> end_of(block, tables, shares);
    constexpr int most_types = OutRows<L>::most_types;
    D<L> degree[OutRows<L>::row_sums], joint = D<L>::zero();
    for (int first = 0; first < graph.num_types; first += most_types) {
        const int some = std::min(most_types, graph.num_types - first);
        rows.template degrees<1>(longest, first, some, degree);
        for (int t = 0; t < some; ++t) end_of.take(longest, first + t, degree[t], joint);
    }
    double largest[L];
    D<L>::store(largest, D<L>::mul(joint, D<L>::widen(shares.of(longest))));
    for (int lane = 0; lane < L; ++lane)
        block.volume_anchor[lane] = ppr_volume_anchor(largest[lane], static_cast<double>(graph.joined_nodes));
}

// Computes each lane's volume. `found` has the largest term, which determines the grain, the number of terms above 0, and the
// volume by the guessed anchor.
template <int L>
void set_volume(PprBlock<L>& block, const DegreeTables& tables, const NodeShares<L>& shares, const LaneSums<L>& found) {
    for (double& volume : block.volume) volume = 0.0;
    if (block.queries.per_type) return;
    double largest[L], above[L], anchors[L], volume[L];
    D<L>::store(largest, found.largest), D<L>::store(above, found.sum), D<L>::store(volume, found.second);
    for (int lane = 0; lane < L; ++lane) anchors[lane] = ppr_volume_anchor(largest[lane], above[lane]);
    if (!std::equal(anchors, anchors + L, block.volume_anchor)) {
        const VolumeTerms<L> terms(block, tables, shares);
        const D<L> anchor = D<L>::load(anchors);
        const auto add_terms = [&](int64_t tile, LaneSums<L>& sums) {
            for (int64_t row = block.tile_begin(tile); row < block.tile_end(tile); ++row)
                sums.sum = D<L>::add(sums.sum, to_grains<L>(terms.of(row), anchor));
        };
        D<L>::store(volume, sum_tiles(block.num_tiles, 8, block.queries.execution, block.sums, add_terms).sum);
    }
    for (int lane = 0; lane < L; ++lane) block.volume[lane] = ppr_volume(volume[lane], anchors[lane]);
}

template <int L>
bool setup_degrees(PprBlock<L>& block) {
    const PprGraph& g = block.graph;
    const PprQueries& q = block.queries;
    if (!setup_nodes<L>(block)) return false;
    const bool masked = block.mask32 != nullptr, has_types = q.eta != nullptr && !q.per_type;
    block.per_lane = masked || block.attraction != nullptr || has_types;
    if (!masked) set_rounding<L>(block, D<L>::all(double(g.longest_row)), D<L>::all(double(g.joined_nodes)));
    for (int lane = 0; lane < L; ++lane) {
        block.volume[lane] = g.volume;
        block.accelerates[lane] = block.chebyshev;
        block.row_factor_underflows[lane] = false;
    }
    if (!block.per_lane) {
        block.scale32 = g.scale32, block.unscale32 = g.unscale32;
        block.scale64 = g.scale64, block.unscale64 = g.unscale64;
        return true;
    }
    const size_t nodes = size_t(g.num_nodes) * L, scales = nodes * block.types_in_scale();
    DegreeTables tables{};
    tables.scale32 = block.work.template reserve<float>(slot_scale32, scales);
    tables.unscale32 = block.work.template reserve<float>(slot_unscale32, nodes);
    tables.scale64 = block.work.template reserve<double>(slot_scale64, scales);
    tables.unscale64 = block.work.template reserve<double>(slot_unscale64, nodes);
    if (!tables.scale32 || !tables.unscale32 || !tables.scale64 || !tables.unscale64) return false;
    if (!masked && block.attraction == nullptr)
        spread_mask<L>(block, block.next);  // all nodes count, with other weights of edge types
    const NodeShares<L> shares(block, masked ? block.mask32 : block.next);
    guess_anchors<L>(block, tables, shares);
    Vec<LeastOfRows<L>> least(size_t(q.execution.threads), LeastOfRows<L>());
    LaneSums<L>*const sizes = block.sums, *const terms = block.sums + q.execution.threads;
    for (int thread = 0; thread < q.execution.threads; ++thread) sizes[thread] = terms[thread] = LaneSums<L>();
    constexpr int64_t tiles = L == 1 ? 1 : 8;  // the longest rows, which are stored first for one lane, are much work
    parallel_for(block.num_tiles, tiles, q.execution, [&](int64_t tile, int thread) {
        tile_degrees<L>(block, tile, tables, shares, sizes[thread], terms[thread], least[size_t(thread)]);
    });
    const LaneSums<L> entries = joined(sizes, q.execution.threads), largest_terms = joined(terms, q.execution.threads);
    if (masked) set_rounding<L>(block, entries.largest, entries.sum);
    set_volume<L>(block, tables, shares, largest_terms);
    for (int thread = 1; thread < q.execution.threads; ++thread) least[0].join(least[size_t(thread)]);
    for (int lane = 0; lane < L && block.attraction != nullptr; ++lane) {
        block.accelerates[lane] = block.chebyshev && ppr_accelerates(least[0].weight[lane]);
        block.row_factor_underflows[lane] = ppr_row_factor_underflows(least[0].factor[lane], block.damping[lane]);
    }
    block.scale32 = tables.scale32, block.unscale32 = tables.unscale32;
    block.scale64 = tables.scale64, block.unscale64 = tables.unscale64;
    return true;
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
