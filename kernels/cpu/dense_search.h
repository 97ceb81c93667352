// The inputs, outputs and rows that all parts of a dense search use. Included once per instruction set.
#pragma once

#include <cmath>
#include <limits>

#include "dense_dot.h"
#include "topk.h"

namespace hopfuse::HOPFUSE_ISA_NS {

HF_INLINE int32_t group_count(int32_t dim) { return (dim + DENSE_GROUP - 1) / DENSE_GROUP; }

HF_INLINE int64_t tile_count(int64_t rows) {
    const int64_t tiles = (rows + DENSE_TILE - 1) / DENSE_TILE;
    return (tiles + DENSE_STEP - 1) / DENSE_STEP * DENSE_STEP;
}

HF_INLINE bool is_known(DenseType type) { return type >= DenseType::float32 && type <= DenseType::bfloat16; }

template <class Row>
HF_INLINE const typename Row::Element* row_of(const DenseVectors& v, int64_t row) {
    return static_cast<const typename Row::Element*>(v.data) + row * v.dim;
}

template <class Row>
HF_INLINE int64_t row_bytes(const DenseVectors& v) {
    return int64_t{v.dim} * int64_t(sizeof(typename Row::Element));
}

struct Search {
    const DenseCorpus& corpus;
    const DenseQueries& queries;
    const DenseHits& hits;

    const float* query(int64_t b) const { return queries.data + b * corpus.vectors.dim; }
    float query_norm(int64_t b) const {
        const float* q = query(b);
        return std::sqrt(canonical_dot<Float32Row, Float32Row>(q, q, corpus.vectors.dim, q));
    }
    // The score, from q . x and for cosine the norms.
    float score(float dot, float query_norm, int64_t row) const {
        return corpus.vectors.cosine ? dot / (query_norm * corpus.codes.norm[row]) : dot;
    }
    const uint8_t* mask(int64_t b) const {
        if (queries.allow_mask == nullptr) return nullptr;
        return queries.allow_mask + (queries.allow_shared ? 0 : b * corpus.vectors.count);
    }
    bool has_list() const { return queries.allow_indptr != nullptr; }
    const int64_t* list(int64_t b) const {
        return queries.allow_ids + queries.allow_indptr[queries.allow_shared ? 0 : b];
    }
    int64_t list_length(int64_t b) const {
        const int64_t at = queries.allow_shared ? 0 : b;
        return queries.allow_indptr[at + 1] - queries.allow_indptr[at];
    }

    // Whether coding an array without codes pays off for these queries alone.
    bool is_worth_coding() const {
#if defined(HOPFUSE_ISA_AVX512) || defined(HOPFUSE_ISA_AVXVNNI)
        constexpr int64_t least = 20;
#else
        constexpr int64_t least = 32;
#endif
        return queries.batch >= least && corpus.vectors.dim >= 64;
    }

    // Whether a query scans codes. This depends on k, the corpus and the query's own list; for an array without codes also
    // on the number of queries and dimensions.
    bool is_scanned(int64_t b) const {
        const int64_t n = corpus.vectors.count;
        const bool is_coded = corpus.codes.codes != nullptr || is_worth_coding();
        return queries.k < n / 8 && is_coded && corpus.vectors.dim <= DENSE_CODED_DIM &&
               (!has_list() || list_length(b) >= n / DENSE_SHORT_LIST);
    }

    void mark_unsound() const {
        if (hits.is_sound != nullptr) *hits.is_sound = false;
    }

    void write(int64_t b, const Ranked* ranked, int64_t count, int64_t rescored) const {
        const int64_t k = queries.k;
        hits.counts[b] = count, hits.rescored[b] = rescored;
        for (int64_t i = 0; i < k; ++i) {
            hits.ids[b * k + i] = i < count ? ranked[i].id : -1;
            hits.scores[b * k + i] = i < count ? ranked[i].score : -std::numeric_limits<float>::infinity();
        }
    }
};

}  // namespace hopfuse::HOPFUSE_ISA_NS
