// calibrate_f32 and fuse_f32 for one instruction set: threads over queries. Contracts: hopfuse/calibrate.h,
// hopfuse/fuse.h.
#include "hopfuse/fuse.h"

#include <algorithm>
#include <type_traits>

#include "fuse_folds.h"
#include "fuse_groups.h"
#include "fuse_lists.h"
#include "kernels.h"
#include "threads.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

namespace {

// How many queries a thread takes at once; a call may be stopped in between.
int64_t rows_at_once(int64_t width) { return width > 4096 ? 1 : 16; }

// Computes list values that depend on positions only, and with them the terms of folds if all queries have the same weights.
template <class Method>
ListPlan make_plan(const FuseArgs& args) {
    ListPlan plan(args);
    if constexpr (is_by_position<Method>) {
        plan.values.resize(plan.most);
        const Union of{args.num_lists, 0, nullptr, 0, args.pools, args.weights, args.option, 1.0f};
        plan.terms = is_fold<Method> && args.weights_shared;
        for (int32_t l = 0; l < args.num_lists; ++l) {
            float* const value = plan.values.data() + plan.begin[size_t(l)];
            const int64_t n = most_of_list(args, l);
            Method::list_values(Alone{}, value, n, l, args.option);
            if constexpr (is_fold<Method>)
                for (int64_t i = 0; plan.terms && i < n; ++i) value[i] = Method::term(value[i], l, of);
        }
    }
    return plan;
}

template <class Method>
Status fuse(const FuseArgs& args) {
    using Room = std::conditional_t<is_fold<Method>, FoldRoom, GroupRoom>;
    constexpr int64_t grain = 1 << 10;  // in entries of lists
    const ListPlan plan = make_plan<Method>(args);
    const int threads = threads_worth(args.batch * int64_t(plan.most), grain, args.execution.threads);
    Vec<Room> rooms;  // each constructed in place: a copy would lose its reserved capacity
    rooms.reserve(size_t(threads));
    while (rooms.size() < size_t(threads)) rooms.emplace_back(args, plan);
    parallel_for(args.batch, rows_at_once(int64_t(plan.most)), on_threads(args.execution, threads),
                 [&](int64_t b, int thread) { fuse_query<Method>(args, b, rooms[size_t(thread)]); });
    return Status::ok;
}

Status fuse_by_method(const FuseArgs& args) {
    switch (args.method) {
#define HOPFUSE_CASE(name, type) \
    case FusionMethod::name: return fuse<type>(args);
        HOPFUSE_FUSION_METHODS(HOPFUSE_CASE)
#undef HOPFUSE_CASE
    }
    return Status::bad_argument;
}

size_t width_of_all(const FuseArgs& args) {
    size_t total = 0;
    for (int32_t l = 0; l < args.num_lists; ++l) total += size_t(args.lists[l].width);
    return total;
}

}  // namespace

Status calibrate_f32(const CalibrateArgs& args) {
    return status_of([&] {
        parallel_for(args.batch, rows_at_once(args.width), args.execution, [&](int64_t b, int) {
            const int64_t row = b * args.width;
            calibrate_row(Alone{}, args.scores + row, args.counts[b], args.width, args.rule, args.out + row);
        });
        return Status::ok;
    });
}

Status fuse_f32(const FuseArgs& args) {
    if (args.num_lists < 1 || args.execution.threads < 1) return Status::bad_argument;
    if (width_of_all(args) >= size_t{0x7fffffff})
        return Status::bad_argument;  // in one query: entries are counted in int32
    if (args.k == 0) return std::fill_n(args.counts, args.batch, 0), Status::ok;
    return status_of([&] { return fuse_by_method(args); });
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
