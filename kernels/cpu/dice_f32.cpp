// dice_f32 for one instruction set: threads over queries. Contract: hopfuse/dice.h.
#include "hopfuse/dice.h"

#include "kernels.h"
#include "threads.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

namespace {

// Marks (or unmarks) those elements of a query that occur in labels, while its candidates are scored.
void mark_query(const DiceArgs& args, int64_t b, uint8_t value, uint8_t* marks) {
    for (int64_t i = args.queries.indptr[b]; i < args.queries.indptr[b + 1]; ++i)
        if (args.queries.units[i] < args.units) marks[args.queries.units[i]] = value;
}

double label_dice(const DiceArgs& args, int32_t label, int64_t query_size, const uint8_t* marks) {
    const int64_t begin = args.labels.indptr[label], end = args.labels.indptr[label + 1];
    int64_t common = 0;
    for (int64_t i = begin; i < end; ++i) common += marks[args.labels.units[i]];
    return dice_coefficient(common, query_size + end - begin);
}

void score_query(const DiceArgs& args, int64_t b, uint8_t* marks) {
    const int64_t size = args.queries.indptr[b + 1] - args.queries.indptr[b];
    mark_query(args, b, 1, marks);
    for (int64_t at = args.indptr[b]; at < args.indptr[b + 1]; ++at) {
        double sum = 0.0;
        for (int32_t part = 0; part < args.parts; ++part)
            sum += label_dice(args, args.candidates[at * args.parts + part], size, marks);
        args.scores[at] = mean_dice(sum, args.parts);
    }
    mark_query(args, b, 0, marks);
}

}  // namespace

Status dice_f32(const DiceArgs& args) {
    if (args.parts < 1 || args.units < 0 || args.execution.threads < 1) return Status::bad_argument;
    return status_of([&] {
        const size_t units = size_t(args.units);
        Vec<uint8_t> marks(units * size_t(args.execution.threads));
        parallel_for(args.batch, 1, args.execution,
                     [&](int64_t b, int thread) { score_query(args, b, marks.data() + units * size_t(thread)); });
        return Status::ok;
    });
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
