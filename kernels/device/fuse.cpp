#include "fuse.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "arguments/fuse_f32.h"
#include "uploads.h"

namespace hopfuse::device {

namespace {

constexpr KernelOf<CalibrateKernel> calibrate_f32{{"fuse_f32", "calibrate_f32"}};
constexpr KernelOf<FuseListsKernel> fuse_lists{{"fuse_f32", "fuse_lists"}};
constexpr KernelOf<FuseKernel> fuse_f32{{"fuse_f32", "fuse_f32"}};

constexpr int WARP_THREADS = 32, MOST_THREADS = 256;
constexpr int LISTS_PER_BLOCK = 4;  // of calibrate_f32, a warp each

void add_rule(Uploads& uploads, CalibrationRule& rule, int32_t lists) {
    if (rule.method != Calibration::theoretical_min_max) rule.lower = rule.upper = nullptr;  // not read
    uploads.add(rule.lower, static_cast<size_t>(lists));
    uploads.add(rule.upper, static_cast<size_t>(lists));
}

void add_options(Uploads& uploads, FusionOptions& option, int32_t lists) {
#define HOPFUSE_ADD(name, size) uploads.add(option.name, static_cast<size_t>(size));
    HOPFUSE_FUSION_ARRAYS(HOPFUSE_ADD)
#undef HOPFUSE_ADD
}

// The sums of widths before each list, and of all.
std::vector<int64_t> starts_of(const FuseArgs& call) {
    std::vector<int64_t> starts{0};
    for (int32_t l = 0; l < call.num_lists; ++l) starts.push_back(starts.back() + call.lists[l].width);
    return starts;
}

// Ids, scores and counts of all lists, each list after the one before it, as FlatLists has them.
struct Joined {
    const int64_t* ids;
    const float* scores;
    const int64_t* counts;
};

// All lists on the host, joined in memory of this object unless there is only one.
class HostLists {
public:
    HostLists(const FuseArgs& call, int64_t entries) {
        const FuseList& first = call.lists[0];
        joined = {first.ids, first.scores, first.counts};
        if (call.num_lists == 1) return;
        const size_t size = static_cast<size_t>(call.batch * entries), rows = static_cast<size_t>(call.batch);
        ids_ = std::make_unique_for_overwrite<int64_t[]>(size);
        scores_ = std::make_unique_for_overwrite<float[]>(size);
        counts_ = std::make_unique_for_overwrite<int64_t[]>(rows * static_cast<size_t>(call.num_lists));
        size_t at = 0;
        for (int32_t l = 0; l < call.num_lists; ++l) {
            const FuseList& list = call.lists[l];
            const size_t here = rows * static_cast<size_t>(list.width);
            if (here != 0) {
                std::memcpy(ids_.get() + at, list.ids, here * sizeof(int64_t));
                std::memcpy(scores_.get() + at, list.scores, here * sizeof(float));
            }
            std::memcpy(counts_.get() + rows * static_cast<size_t>(l), list.counts, rows * sizeof(int64_t));
            at += here;
        }
        joined = {ids_.get(), scores_.get(), counts_.get()};
    }

    Joined joined;

private:
    std::unique_ptr<int64_t[]> ids_, counts_;
    std::unique_ptr<float[]> scores_;
};

// All lists on the device, joined there unless there is only one.
class DeviceLists {
public:
    DeviceLists(Queue& queue, const FuseArgs& call, const std::vector<int64_t>& starts) {
        const FuseList& first = call.lists[0];
        joined = {first.ids, first.scores, first.counts};
        if (call.num_lists == 1) return;
        const int64_t entries = call.batch * starts.back();
        std::tie(ids_, scores_, counts_) =
            queue.arrays<int64_t, float, int64_t>(entries, entries, call.batch * call.num_lists);
        for (int32_t first = 0; first < call.num_lists; first += FUSE_LISTS) {
            GivenLists given{first, std::min(FUSE_LISTS, call.num_lists - first), {}};
            int64_t widest = 1;
            for (int32_t l = 0; l < given.lists; ++l) {
                const FuseList& list = call.lists[first + l];
                given.list[l] = {list.ids, list.scores, list.counts, list.width,
                                 starts[static_cast<size_t>(first + l)]};
                widest = std::max(widest, list.width);
            }
            const Grid grid{blocks(call.batch * widest, MOST_THREADS), MOST_THREADS};
            queue.launch(fuse_lists, grid, call.batch, given, ids_, scores_, counts_);
        }
        joined = {ids_, scores_, counts_};
    }

    Joined joined;

private:
    Array<int64_t> ids_, counts_;
    Array<float> scores_;
};

// Where the entries of a query are sorted.
struct Sorting {
    int64_t size;         // entries, a power of two
    int64_t blocks;       // that run at once
    Array<uint8_t> room;  // of all blocks, or null: shared memory
    bool is_counted = false;

    // Of a block. The kernel declares shared memory also if it sorts elsewhere.
    size_t shared() const {
        return static_cast<size_t>(room ? sizeof(Entry) : size * (is_counted ? FUSE_COUNTED_BYTES : sizeof(Entry)));
    }
    int threads() const {
        return static_cast<int>(std::clamp<int64_t>(is_counted ? size : size / 2, WARP_THREADS, MOST_THREADS));
    }
};

Sorting sorting(Queue& queue, int64_t batch, int64_t entries) {
    const int64_t size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(entries)));
    if (size <= queue.sizes().shared_entries) return {size, batch, {}, size <= FUSE_COUNTED};
    const int64_t nbytes = static_cast<int64_t>(sizeof(Entry)) * size;
    const int64_t blocks = std::min(batch, std::max<int64_t>(1, queue.sizes().workspace / nbytes));
    return {size, blocks, queue.empty<uint8_t>(static_cast<size_t>(blocks * nbytes))};
}

}  // namespace

Array<float> calibrate(Queue& queue, const CalibrateArgs& call, bool on_device) {
    const size_t size = static_cast<size_t>(call.batch * call.width);
    const Array<float> out = queue.empty<float>(size);
    if (size == 0) return out;
    const float* scores = call.scores;
    const int64_t* counts = call.counts;
    CalibrationRule rule = call.rule;
    Uploads uploads;
    add_rule(uploads, rule, 1);
    if (!on_device) {
        uploads.add(scores, size);
        uploads.add(counts, static_cast<size_t>(call.batch));
    }
    uploads.copy(queue);
    const Grid grid{blocks(call.batch, LISTS_PER_BLOCK), LISTS_PER_BLOCK * WARP_THREADS};
    queue.launch(calibrate_f32, grid, call.batch, call.width, scores, counts, rule, out);
    return out;
}

HitArrays fuse(Queue& queue, const FuseArgs& call, bool on_device) {
    const int64_t batch = call.batch;
    const int32_t lists = call.num_lists;
    const std::vector<int64_t> starts = starts_of(call);
    const int64_t entries = starts.back();
    if (batch == 0 || call.k == 0 || entries == 0) return no_hits(queue, batch, call.k);

    FuseArguments arguments{.lists = {batch, lists, starts.data(), nullptr, call.pools},
                            .ids = nullptr,
                            .values = {nullptr, call.calibration, nullptr},
                            .method = call.method,
                            .option = call.option,
                            .weights = call.weights,
                            .weight_step = call.weights_shared ? 0 : lists,
                            .finish = call.finish,
                            .k = call.k,
                            .out_ids = nullptr,
                            .out_scores = nullptr,
                            .out_counts = nullptr,
                            .size = 0,
                            .room = nullptr,
                            .is_counted = 0};
    const auto give = [&](const Joined& joined) {
        arguments.ids = joined.ids;
        arguments.values.scores = joined.scores;
        arguments.lists.counts = joined.counts;
    };
    Uploads uploads;
    uploads.add(arguments.lists.starts, starts.size());
    uploads.add(arguments.lists.pools, static_cast<size_t>(lists));
    uploads.add(arguments.finish.prior, static_cast<size_t>(call.finish.priors));
    uploads.add(arguments.weights, static_cast<size_t>(call.weights_shared ? lists : batch * lists));
    add_rule(uploads, arguments.values.calibration, lists);
    add_options(uploads, arguments.option, lists);
    std::optional<HostLists> host;
    std::optional<DeviceLists> there;
    if (!on_device) {
        give(host.emplace(call, entries).joined);
        uploads.add(arguments.ids, static_cast<size_t>(batch * entries));
        uploads.add(arguments.values.scores, static_cast<size_t>(batch * entries));
        uploads.add(arguments.lists.counts, static_cast<size_t>(batch * lists));
    }
    uploads.copy(queue);
    if (on_device) give(there.emplace(queue, call, starts).joined);

    const HitArrays hits = empty_hits(queue, batch, call.k);
    const Sorting sorted = sorting(queue, batch, entries);
    const Array<float> values = queue.empty<float>(sorted.is_counted ? 0 : static_cast<size_t>(batch * entries));
    arguments.values.values = values;
    arguments.out_ids = hits.ids;
    arguments.out_scores = hits.scores;
    arguments.out_counts = hits.counts;
    arguments.size = sorted.size;
    arguments.room = sorted.room;
    arguments.is_counted = sorted.is_counted ? 1 : 0;
    queue.launch(fuse_f32, {sorted.blocks, sorted.threads(), sorted.shared()}, arguments);
    return hits;
}

}  // namespace hopfuse::device
