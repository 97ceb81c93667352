// The concordance of fusion/gumbel.h in O(n log n) for each pair of lists. Included once per instruction set.
#pragma once

#include <algorithm>

#include "hopfuse/fusion/gumbel.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// Kendall's counts of a set of pairs, by a merge sort (Knight, Journal of the American Statistical Association 61,
// 1966). The counts are integers, so they equal those of comparing all pairs.
class Kendall {
public:
    explicit Kendall(size_t most) : pairs_(most), merged_(most) {}

    void clear() { size_ = 0; }

    void push(float first, float second) { pairs_[size_++] = {first, second}; }

    Concordance count() {
        Pair* const pairs = pairs_.data();
        std::sort(pairs, pairs + size_, [](const Pair& x, const Pair& y) {
            return x.first < y.first || (x.first == y.first && x.second < y.second);
        });
        const int64_t all = two_of(int64_t(size_));
        const int64_t tied_first = tied([](const Pair& x, const Pair& y) { return x.first == y.first; });
        const int64_t tied_both =
            tied([](const Pair& x, const Pair& y) { return x.first == y.first && x.second == y.second; });
        const int64_t disagree = exchanges();
        const int64_t tied_second = tied([](const Pair& x, const Pair& y) { return x.second == y.second; });
        return {all - tied_first - tied_second + tied_both - 2 * disagree, all};
    }

private:
    struct Pair {
        float first, second;
    };

    static int64_t two_of(int64_t n) { return n * (n - 1) / 2; }

    // The number of pairs of elements within runs of equal ones.
    template <class Equal>
    int64_t tied(Equal equal) const {
        int64_t total = 0, run = 1;
        for (size_t i = 1; i < size_; ++i) {
            run = equal(pairs_[i - 1], pairs_[i]) ? run + 1 : 1;
            total += run - 1;
        }
        return total;
    }

    // Sorts by the second value; returns the number of inversions.
    int64_t exchanges() {
        int64_t total = 0;
        for (size_t run = 1; run < size_; run *= 2) {
            for (size_t begin = 0; begin < size_; begin += 2 * run) {
                const size_t middle = std::min(begin + run, size_), end = std::min(begin + 2 * run, size_);
                size_t left = begin, right = middle;
                for (size_t at = begin; at < end; ++at) {
                    const bool from_right =
                        left == middle || (right < end && pairs_[right].second < pairs_[left].second);
                    if (from_right) total += int64_t(middle - left);
                    merged_[at] = pairs_[from_right ? right++ : left++];
                }
            }
            pairs_.swap(merged_);
        }
        return total;
    }

    Vec<Pair> pairs_, merged_;
    size_t size_ = 0;
};

}  // namespace hopfuse::HOPFUSE_ISA_NS
