// Gumbel copula fusion: score = exp(-(sum_l x_l^theta)^(1/theta)) over all lists in order, x = max(-ln(c + epsilon), 0),
// c in [0, 1] the calibrated scores, 0 if a list lacks the document. theta >= 1 is given, or if it is 0, 1/(1 - tau)
// with tau = balance / pairs clipped to [0, 0.95]: Kendall's rank correlation over the documents that two lists share, over
// all pairs of lists; pairs with equal scores add 0 to the balance. theta = 1 without pairs.
// Genest & Rivest, Journal of the American Statistical Association 88, 1993.
#pragma once

#include "hopfuse/fusion/entry.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

// The number of concordant minus discordant pairs (of two documents and two lists), and the number of all pairs.
struct Concordance {
    int64_t balance, pairs;
};

// The comparison (-1, 0 or 1) of entry `e` of document a with document b in its list; `shared`: whether b is in that list.
HOPFUSE_FN int compare_in_list(const Entry& e, const Entry* b, int held, bool& shared) {
    shared = false;
    HOPFUSE_ROLLED
    for (int other = 0; other < held; ++other) {
        if (b[other].list != e.list) continue;
        shared = true;
        return (e.value > b[other].value) - (e.value < b[other].value);
    }
    return 0;
}

HOPFUSE_FN void add_concordance(const Entry* a, int held_a, const Entry* b, int held_b, Concordance& total) {
    HOPFUSE_ROLLED
    for (int first = 0; first < held_a; ++first) {
        bool shared;
        const int sign = compare_in_list(a[first], b, held_b, shared);
        if (!shared) continue;
        HOPFUSE_ROLLED
        for (int second = first + 1; second < held_a; ++second) {
            const int other = compare_in_list(a[second], b, held_b, shared);
            if (!shared) continue;
            total.balance += sign * other;
            total.pairs += 1;
        }
    }
}

HOPFUSE_FN float gumbel_theta(const Concordance& total, const FusionOptions& option) {
    if (option.theta > 0.0f) return option.theta;
    if (total.pairs == 0 || total.balance <= 0) return 1.0f;
    const float tau = static_cast<float>(total.balance) / static_cast<float>(total.pairs);
    return 1.0f / (1.0f - (tau < 0.95f ? tau : 0.95f));
}

struct GumbelFusion {
    template <class Team>
    HOPFUSE_FN void list_values(const Team&, float*, int64_t, int32_t, const FusionOptions&) {}

    HOPFUSE_FN float document_score(const Entry* entry, int held, const Union& of) {
        float most = 0.0f;
        int at = 0;
        HOPFUSE_ROLLED
        for (int32_t l = 0; l < of.lists; ++l) {
            const float x = surprise(value_or(entry, held, l, 0.0f, at), of.option.epsilon);
            most = x > most ? x : most;
        }
        if (most == 0.0f) return 1.0f;
        float sum = 0.0f;
        at = 0;
        HOPFUSE_ROLLED
        for (int32_t l = 0; l < of.lists; ++l) {
            const float x = surprise(value_or(entry, held, l, 0.0f, at), of.option.epsilon);
            if (x > 0.0f) sum = sum + hf_exp(of.theta * hf_log(x / most));
        }
        return hf_exp(-(most * hf_exp(hf_log(sum) / of.theta)));
    }

private:
    HOPFUSE_FN float surprise(float c, float epsilon) {
        const float x = -hf_log(c + epsilon);
        return x > 0.0f ? x : 0.0f;
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
