// What dense search does with rows as they are stored, whatever their type: it codes them, scores all of them, or rescores
// candidates. Compiled in dense_rows.cpp, once per instruction set; a set that differs in dot products of codes only uses the
// functions of the set that it extends.
#pragma once

#include "hopfuse/dense_topk.h"

#if defined(HOPFUSE_ISA_AVXVNNI)
#define HOPFUSE_ROWS_NS avx2
#elif defined(HOPFUSE_ISA_AMX)
#define HOPFUSE_ROWS_NS avx512
#else
#define HOPFUSE_ROWS_NS HOPFUSE_ISA_NS
#endif

namespace hopfuse::HOPFUSE_ROWS_NS {

// A row that may be among a query's best, and bounds of its score.
struct Candidate {
    float upper, lower;
    int64_t row;
};

// A query's candidates.
struct CandidateList {
    Candidate* rows;
    int64_t count;
};

// Codes tiles begin .. end - 1 of an array into a buffer of that size; returns whether the rows can be scored.
bool encode_some(const DenseVectors& vectors, int64_t begin, int64_t end, const DenseCodes& room);

// Scores every row that the `count` chosen queries allow.
void exhaustive(const DenseCorpus& corpus, const DenseQueries& queries, const DenseHits& hits, const int64_t* chosen,
                int64_t count);

// Rescores the candidates of the chosen queries, the k most promising rows first. Reorders and shortens the lists.
void rescore(const DenseCorpus& corpus, const DenseQueries& queries, const DenseHits& hits, const int64_t* chosen,
             int64_t count, CandidateList* candidates);

}  // namespace hopfuse::HOPFUSE_ROWS_NS
