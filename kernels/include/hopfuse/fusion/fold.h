// Folds: methods that take a document's entries in list order, one by one, and keep one number.
//   start()                      the value before the first entry
//   term(value, list, of)        the term of an entry, from its list value
//   add(score, term, list, of)   the value with one more entry
//   finish(score, held, of)      the score of a document that `held` lists hold
// None of them reads the documents or the counts of the union.
//
// rises(of): the fold is monotone. For terms of at least least_term() in every list, a larger term or one more entry never
// lowers a document's score: add is non-decreasing in its score and its term and not below its score, and finish is
// non-decreasing in its score and `held`. IEEE rounding is monotone (x <= y gives round(x) <= round(y)), so this holds in
// float32 whenever it holds for real numbers.
#pragma once

#include "hopfuse/fusion/entry.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

// A method whose list values depend only on the position, not on the scores or their number.
struct ByPosition {};

template <class Method>
struct Fold {
    template <class Team>
    HOPFUSE_FN void list_values(const Team&, float*, int64_t, int32_t, const FusionOptions&) {}

    HOPFUSE_FN float term(float value, int32_t, const Union&) { return value; }

    HOPFUSE_FN float finish(float score, int, const Union&) { return score; }

    HOPFUSE_FN float least_term() { return 0.0f; }

    HOPFUSE_FN bool rises(const Union&) { return false; }

    HOPFUSE_FN float document_score(const Entry* entry, int held, const Union& of) {
        float score = Method::start();
        HOPFUSE_ROLLED
        for (int e = 0; e < held; ++e)
            score = Method::add(score, Method::term(entry[e].value, entry[e].list, of), entry[e].list, of);
        return Method::finish(score, held, of);
    }
};

// score = sum_l w_l value_l in list order; a list that lacks the document adds 0.
template <class Method>
struct WeightedSum : Fold<Method> {
    HOPFUSE_FN float start() { return 0.0f; }

    HOPFUSE_FN float add(float score, float term, int32_t list, const Union& of) {
        return fmaf(of.weight[list], term, score);
    }

    HOPFUSE_FN bool rises(const Union& of) {
        bool all = true;
        for (int32_t l = 0; l < of.lists; ++l) all = all && of.weight[l] >= 0.0f;
        return all;
    }
};

// A WeightedSum times by_holders[h], h the number of lists that hold the document.
template <class Method>
struct WeightedSumByHolders : WeightedSum<Method> {
    HOPFUSE_FN float finish(float score, int held, const Union& of) { return score * of.option.by_holders[held]; }

    HOPFUSE_FN bool rises(const Union& of) {
        const float* const factor = of.option.by_holders;
        bool all = WeightedSum<Method>::rises(of) && factor[1] >= 0.0f;
        for (int32_t l = 2; l <= of.lists; ++l) all = all && factor[l] >= factor[l - 1];
        return all;
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
