// Settles lists that the certificate of x^ leaves unproven, by refinement and local bounds: LOCAL BOUNDS and REFINEMENT in
// kernels/include/hopfuse/ppr.h. Kernels decide about lanes, by hopfuse/ppr_settle.h, as a CPU does.
#pragma once

#include <vector>

#include "arguments/ppr_settle_f32.h"
#include "ppr_topk.h"

namespace hopfuse::device {

// The lanes of a block whose lists are written.
class Settling {
public:
    Settling(Queue& queue, TopkSearch& search, const Certifier& certifier, const WalkAnswers& answers);

    // Chooses the lanes whose lists more passes may prove, of which `certifier.counts` has the numbers, and says which answers are
    // final. Again after x^ has changed.
    void begin();
    // Proves their lists where possible, and writes them. `known` has the counts of begin(). The host reads these after a look, or
    // two if lanes differ: the next one may be many passes later, or none, and a look without lanes takes as long as a read. If
    // results cannot be read, all looks that there may be are queued; those without lanes do nothing. Returns the last counts.
    SettlingCounts run(SettlingCounts known);

private:
    // States of the block's size, (N, L), and what passes need beside them.
    struct Room {
        Array<float> other, gap, refined, partial;
        Array<uint64_t> no_word;  // the set of no rows
        Array<double> measured;   // (3, 2, L)

        Room(Queue& queue, const PprBlock& block);
    };

    Queue& queue_;
    TopkSearch& search_;
    const Certifier& certifier_;
    const PprBlock& block_;
    const WalkAnswers& answers_;
    const std::vector<int64_t> looks_;  // all that there may be, ascending
    Array<int64_t> passes_, look_, more_, examined_rows_, around_rows_, zero_;
    Array<double> rest_, share_, least_, residual_, bound_, per_degree_, refined_rest_, anchor_;
    Array<int32_t> open_, examined_, around_;
    Array<float> one_;

    SettlingLanes lanes() const;
    SettleArguments arguments(int64_t number) const;
    void measure_rests(const Room& room);
    void examine(const Passes& passes, const Room& room, int64_t look, int64_t next);
    void write(const Room& room, const int64_t* rows, const int64_t* passes, const float* local);
};

}  // namespace hopfuse::device
