// The best nodes of each query on a device, and their proof; see kernels/include/hopfuse/ppr_proof.h.
#pragma once

#include <span>
#include <vector>

#include "arguments/ppr_topk_f32.h"
#include "ppr_certificate.h"
#include "ppr_passes.h"

namespace hopfuse::device {

// The results of a batch on the device, (B, width) and (B,), with each query's status (hopfuse/query_status.h).
struct WalkAnswers {
    int64_t width;
    Array<int64_t> ids;
    Array<float> scores, score_bounds;
    Array<int64_t> counts;
    Array<uint8_t> proven;
    Array<int64_t> iterations;
    Array<double> residual, bound;
    Array<uint8_t> converged;
    Array<int32_t> status;
    Array<double> shortfall;  // how far the list is from being proven

    WalkAnswers(Queue& queue, int64_t batch, int64_t list_width);
    PprAnswers arguments() const;
};

// What finish() writes, of x^ and its certificate or, if `refined` has an address, of a refined x^ with another one.
struct Finish {
    const int64_t* rows;              // (L,) of the answers; -1 skips a lane
    bool goes_on = false;             // whether passes are added to those in the answers
    const int64_t* passes = nullptr;  // (L,) this plus 1 is the number of passes, instead of the walk's
    float* refined = nullptr;         // (N, L) scores to rank in place of x^
    const double *residual = nullptr, *bound = nullptr, *per_degree = nullptr;  // (L,) their certificate
    const float* local = nullptr;                                               // (N, L) a part of each node's error
};

// Selection of the best `k` of all nodes or of `candidates`; k is at most their number.
class TopkSearch {
public:
    // `among`: internal nodes, or no address.
    TopkSearch(Queue& queue, std::shared_ptr<const DeviceGraph> graph, int64_t k, std::span<const int32_t> among,
               bool prove_order);

    const std::shared_ptr<const DeviceGraph> graph;
    const int64_t k;
    const bool prove_order;

    // Writes the hits of x^ and their evidence.
    void finish(Queue& queue, const PprBlock& block, const WalkAnswers& answers, const Finish& what);

private:
    friend class TopkProof;

    // What a scan leaves of each group of candidates and lane, and lists that need several rounds.
    struct Lists {
        int64_t lanes = 0, groups = 0;  // of all lanes
        Array<uint64_t> keys, best;
        Array<float> reach;
    };

    const Array<int32_t> candidates_;
    const int64_t count_;
    int64_t kept_, stride_;
    Lists lists_{};

    int64_t group_count(Queue& queue, const PprBlock& block) const;
    void make_lists(Queue& queue, int64_t lanes, int64_t groups);
    CandidateArguments candidates_of(const PprBlock& block, const PprIterate& iterate, bool final) const;
    RankArguments ranking(Queue& queue, const PprBlock& block, const CandidateArguments& candidates,
                          const LaneTurn& turn, const ErrorArguments& error, const float* local);
    // Reads the candidates of all lanes.
    void scan(Queue& queue, const RankArguments& by) const;
};

// Attempts to end lanes of a block whose hits seem proven, by what passes measured.
class TopkProof : public Proof {
public:
    TopkProof(Queue& queue, TopkSearch& search, const PprBlock& block, const Array<double>& measured);
    void attempt(int64_t number) override;

private:
    Queue& queue_;
    const TopkSearch& search_;
    const PprBlock& block_;
    TryArguments try_;
};

}  // namespace hopfuse::device
