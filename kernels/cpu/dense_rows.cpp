// dense_encode for one instruction set, and what dense_topk does with rows of each type.
#include "dense_rows.h"

#include "dense_exhaustive.h"
#include "dense_rescore.h"
#include "dense_search.h"
#include "dense_tiles.h"
#include "kernels.h"
#include "threads.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

namespace {

// Calls use(row) with the type of the rows.
template <class Use>
auto by_type(DenseType type, const Use& use) {
    switch (type) {
        case DenseType::float16: return use(Float16Row{});
        case DenseType::bfloat16: return use(BFloat16Row{});
        default: return use(Float32Row{});
    }
}

}  // namespace

Status dense_encode(const DenseVectors& vectors, DenseCodes codes, const Execution& execution) {
    if (!is_known(vectors.type)) return Status::bad_argument;
    return status_of([&] {
        by_type(vectors.type, [&](auto row) { encode_all<decltype(row)>(vectors, codes, execution); });
        return Status::ok;
    });
}

bool encode_some(const DenseVectors& vectors, int64_t begin, int64_t end, const DenseCodes& room) {
    return by_type(vectors.type, [&](auto row) { return encode_tiles<decltype(row)>(vectors, begin, end, room); });
}

void exhaustive(const DenseCorpus& corpus, const DenseQueries& queries, const DenseHits& hits, const int64_t* chosen,
                int64_t count) {
    const Search search{corpus, queries, hits};
    by_type(corpus.vectors.type, [&](auto row) { score_all<decltype(row)>(search, {chosen, chosen + count}); });
}

void rescore(const DenseCorpus& corpus, const DenseQueries& queries, const DenseHits& hits, const int64_t* chosen,
             int64_t count, CandidateList* candidates) {
    const Search search{corpus, queries, hits};
    by_type(corpus.vectors.type,
            [&](auto row) { rescore_lists<decltype(row)>(search, {chosen, chosen + count}, candidates); });
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
