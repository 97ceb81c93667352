// The float64 passes over a block's last iterate: the returned scores and their certificate.
#pragma once

#include <vector>

#include "arguments/ppr_certify_f32.h"
#include "ppr_block.h"

namespace hopfuse::device {

// Which lanes of a block something holds for.
using LaneFlags = std::vector<bool>;

bool any(const LaneFlags& lanes);

// Error bounds of each lane, (L,).
struct Certificate {
    std::vector<double> residual, bound;
    std::vector<double> per_degree;  // infinity if the bound per node does not hold
};

// Copies `from` to `to` in lanes for which `open` is 0.
void keep_lanes(Queue& queue, const PprBlock& block, const float* from, float* to, const int32_t* open);

class Certifier {
public:
    Certifier(Queue& queue, PprBlock& block);

    PprBlock& block;
    // (N, L) receives fl(r / deg) whenever r is measured, if a refinement may follow.
    Array<float> correction;

    // Normalises the last iterate to x^, and computes the mass that it loses.
    void normalise(Queue& queue);
    // Measures the residual of x^ and its bounds; `improved` receives a float64 power step.
    void measure(Queue& queue, float* improved = nullptr);
    // Takes float64 power steps for open lanes until tol is met or float32 limits progress; returns their numbers, (L,).
    // `last_pass`: that of the walk.
    std::vector<int64_t> polish(Queue& queue, Certificate& certificate, LaneFlags& open, int64_t last_pass);
    // Writes scores, (count, N), in the caller's node order.
    void scores(Queue& queue, float* out) const;

private:
    Array<double> mass_, lost_, partial_;

    void lose(Queue& queue, const double* total);
};

}  // namespace hopfuse::device
