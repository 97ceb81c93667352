// The walk of a block: its passes, and the end of its lanes.
#pragma once

#include "arguments/ppr_f32.h"
#include "arguments/ppr_sliced_f32.h"
#include "ppr_block.h"

namespace hopfuse::device {

// A test that may end a lane's walk before tol is met; ppr_topk.h has the one there is.
class Proof {
public:
    virtual ~Proof() = default;
    // Ends lanes whose hits seem proven by the iterate that pass `number` read.
    virtual void attempt(int64_t number) = 0;
};

// The passes between two buffers. Passes with odd numbers read the first one. A copy may have other buffers, lanes or restarts.
class Passes {
public:
    // `omega`: (passes, L) of the recurrence, or null for plain power steps. `partial`: segment_sums of the block.
    Passes(const PprBlock& block, const float* omega, float* partial);

    PassArguments walk;
    float *even, *odd;
    const float* omega;
    // If pass `number` follows passes that write few rows: a bit for each row that they have written of the state that it replaces.
    struct Written {
        int64_t number = 0;
        const uint64_t* rows = nullptr;
    } written;

    // The start of a walk, in the first buffer; `all` unless passes follow that read rows which restart alone.
    void start(Queue& queue, bool all) const;
    // A pass. Its residual is measured if `measured` is given; with `ends`, converged lanes then end.
    void run(Queue& queue, int64_t number, double* measured = nullptr, bool ends = false) const;
    // One of the first passes of a walk, without measuring it. `nonzero` has a bit for each row of the state that may not be 0,
    // `before` for those of the state before it (null: there are none); `reached` receives those of the next state, of which the
    // others are written if `fills`.
    void run_early(Queue& queue, int64_t number, const uint64_t* before, const uint64_t* nonzero, uint64_t* reached,
                   bool fills) const;
    // The passes from `number` on in one launch, measured from `first_measured` on; these may end lanes. False if that is not
    // possible or not worthwhile.
    bool run_rest(Queue& queue, int64_t number, int64_t first_measured, int64_t last, double* measured) const;
    // The blocks of run_rest, or 0.
    int64_t blocks_at_once(Queue& queue) const;
    float* read_by(int64_t number) const { return number % 2 != 0 ? even : odd; }
    float* written_by(int64_t number) const { return number % 2 != 0 ? odd : even; }

private:
    const PprBlock& block_;
    EdgeKind kind_;

    PassArguments arguments(int64_t number, double* measured, bool ends) const;
    SegmentArguments segments(int64_t number) const;
    SlicedArguments sliced(int64_t number, double* measured, bool ends) const;
    int64_t sliced_blocks() const;
    int64_t blocks_of_rows() const;
};

// Runs passes until all lanes have ended; PprBlock::iterate() is then the last iterate. With `proof`, which passes measure for
// into `measured` (2, L), a lane also ends when its hits seem proven. If the number of passes is fixed, those after the end of
// the last lane do nothing.
void walk(Queue& queue, const PprBlock& block, Proof* proof, const Array<double>& measured);

}  // namespace hopfuse::device
