// The float64 passes over a block's last iterate: the returned scores and their certificate.
#pragma once

#include "arguments/ppr_certify_f32.h"
#include "arguments/ppr_settle_f32.h"
#include "ppr_block.h"

namespace hopfuse::device {

// Copies `from` to `to` in lanes that are kept.
void keep_lanes(Queue& queue, const PprBlock& block, const float* from, float* to, const PprKept& kept);

class Certifier {
public:
    // `rows`: (L,) of the answers, or -1.
    Certifier(Queue& queue, PprBlock& block, const Array<int64_t>& rows);

    PprBlock& block;
    const Array<int64_t> rows;
    // (N, L) receives fl(r / deg) whenever r is measured, if a refinement may follow.
    Array<float> correction;
    // What kernels decide about lanes, (1,).
    Array<SettlingCounts> counts;

    // Normalises the last iterate to x^, in the block's first buffer, and computes the mass that it loses.
    void normalise(Queue& queue);
    // Measures the residual of x^ and its bounds; `improved` receives a float64 power step. Nothing if there are no `lanes`.
    void measure(Queue& queue, float* improved = nullptr, const int32_t* lanes = nullptr);
    // Decides which lanes may gain by float64 power steps.
    void plan_polish(Queue& queue);
    // Takes such steps until tol is met or float32 limits progress. The host reads whether lanes go on after 1, 2, 4, ... steps.
    void polish(Queue& queue);
    CertifiedLanes lanes() const;
    PolishLanes polished() const;
    // Writes scores, (count, N), in the caller's node order.
    void scores(Queue& queue, float* out) const;

private:
    Array<double> mass_, lost_, partial_;
    Array<int32_t> stays_;
    Array<double> before_;
    Array<int64_t> steps_, changed_, passes_;

    void lose(Queue& queue, const double* total);
    void decide(Queue& queue, bool begins);
};

}  // namespace hopfuse::device
