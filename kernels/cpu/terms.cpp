#include "terms.h"

#include <cstddef>
#include <vector>

#include "threads.h"

namespace hopfuse {

Status sum_terms(const TermColumns& columns, const int64_t* terms, int64_t num_terms, int32_t* passages, float* sums,
                 int64_t& count) {
    return status_of([&] {
        std::vector<float> total(static_cast<std::size_t>(columns.num_passages));
        count = 0;
        for (int64_t t = 0; t < num_terms; ++t)
            for (int64_t entry = columns.indptr[terms[t]]; entry < columns.indptr[terms[t] + 1]; ++entry) {
                const int32_t passage = columns.passages[entry];
                if (columns.scores[entry] == 0.0f) continue;
                if (total[std::size_t(passage)] == 0.0f) passages[count++] = passage;
                total[std::size_t(passage)] += columns.scores[entry];
            }
        for (int64_t i = 0; i < count; ++i) sums[i] = total[std::size_t(passages[i])];
        return Status::ok;
    });
}

}  // namespace hopfuse
