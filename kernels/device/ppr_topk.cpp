#include "ppr_topk.h"

#include <algorithm>
#include <cmath>

#include "hopfuse/ppr_proof.h"

namespace hopfuse::device {

namespace {

constexpr KernelOf<ScanKernel> scan_kernel{{"ppr_topk_f32", "ppr_scan"}};
constexpr KernelOf<TryKernel> try_kernel{{"ppr_topk_f32", "ppr_try"}};
constexpr KernelOf<FinishKernel> finish_kernel{{"ppr_topk_f32", "ppr_finish"}};

constexpr int64_t WARP = 32, TILE_STATES = 128;  // 512 bytes of a state
constexpr int64_t BLOCKS_PER_MULTIPROCESSOR = 8;

int64_t divided(int64_t items, int64_t by) { return (items + by - 1) / by; }

int64_t square_root(int64_t number) {
    int64_t root = static_cast<int64_t>(std::sqrt(static_cast<double>(number)));
    while (root * root > number) --root;
    while ((root + 1) * (root + 1) <= number) ++root;
    return root;
}

Grid grid_of(const PprBlock& block) { return {block.lanes, SELECT_THREADS}; }

}  // namespace

WalkAnswers::WalkAnswers(Queue& queue, int64_t batch, int64_t list_width) : width(list_width) {
    const int64_t hits = batch * width;
    std::tie(ids, scores, score_bounds, counts, proven, iterations, residual, bound, converged, status, shortfall) =
        queue.arrays<int64_t, float, float, int64_t, uint8_t, int64_t, double, double, uint8_t, int32_t, double>(
            hits, hits, hits, batch, batch, batch, batch, batch, batch, batch, batch);
}

PprAnswers WalkAnswers::arguments() const {
    return {.width = width,
            .ids = ids,
            .scores = scores,
            .score_bounds = score_bounds,
            .counts = counts,
            .proven = proven,
            .iterations = iterations,
            .residual = residual,
            .bound = bound,
            .converged = converged,
            .status = status,
            .shortfall = shortfall};
}

TopkSearch::TopkSearch(Queue& queue, std::shared_ptr<const DeviceGraph> on, int64_t most,
                       std::span<const int32_t> among, bool order)
    : graph(std::move(on)), k(most), prove_order(order),
      candidates_(among.data() == nullptr ? Array<int32_t>() : std::get<0>(queue.upload(among))),
      count_(among.data() == nullptr ? graph->rows->num_nodes : static_cast<int64_t>(among.size())) {
    const int64_t wanted = k + 1;  // the first node left out reveals a tie
    kept_ = std::min<int64_t>(SELECT_KEPT, divided(wanted, WARP) * WARP);
    stride_ = divided(wanted, kept_) * kept_;
}

// The groups of a scan: few if few hits are requested, so that about as much is read of groups as, again, of the candidates of
// the best of them; at most as many as a device runs at once.
int64_t TopkSearch::group_count(Queue& queue, const PprBlock& block) const {
    int64_t most = queue.sizes().split_blocks;
    if (most == 0) most = BLOCKS_PER_MULTIPROCESSOR * queue.device().properties().multiprocessors;
    const int64_t tiles = divided(count_ * block.lanes, TILE_STATES);
    const int64_t groups = std::min(square_root(count_ * (k + 1)), tiles);
    return SCAN_WARPS * std::max<int64_t>(1, std::min(divided(groups, SCAN_WARPS), most));
}

void TopkSearch::make_lists(Queue& queue, int64_t lanes, int64_t groups) {
    if (lists_.lanes >= lanes && lists_.groups >= lanes * groups) return;
    lists_.lanes = std::max(lanes, lists_.lanes), lists_.groups = std::max(lanes * groups, lists_.groups);
    std::tie(lists_.keys, lists_.best, lists_.reach) = queue.arrays<uint64_t, uint64_t, float>(
        stride_ > kept_ ? lists_.lanes * stride_ : 0, lists_.groups, lists_.groups);
}

CandidateArguments TopkSearch::candidates_of(const PprBlock& block, const PprIterate& iterate, bool final) const {
    return {.iterate = iterate,
            .final = final,
            .degree = block.unscale32,
            .per_lane = block.per_lane,
            .node_of = graph->rows->node_of,
            .among = candidates_,
            .count = count_,
            .lanes = block.lanes};
}

RankArguments TopkSearch::ranking(Queue& queue, const PprBlock& block, const CandidateArguments& candidates,
                                  const LaneTurn& turn, const ErrorArguments& error, const float* local) {
    const int64_t groups = group_count(queue, block);
    if (k > 0) make_lists(queue, block.lanes, groups);
    const RowArrays& rows = graph->rows->rows;
    const ListArguments list = {.rounds = {.keys = stride_ > kept_ ? lists_.keys.data() : nullptr,
                                           .stride = stride_,
                                           .kept = static_cast<int32_t>(kept_)},
                                .internal_of = graph->rows->internal_of,
                                .unscale = block.unscale64,
                                .locals = local,
                                .k = k,
                                .order = prove_order,
                                .twins = {.indptr = rows.indptr,
                                          .indices = rows.indices,
                                          .weight = rows.weight,
                                          .edge_type = rows.edge_type,
                                          .mask = block.mask,
                                          .attraction = block.attraction,
                                          .restart_rows = block.restart_set(),
                                          .restart = block.restart64,
                                          .lanes = block.lanes,
                                          .symmetric = block.symmetric}};
    const int64_t tiles = divided(count_ * block.lanes, TILE_STATES);
    return {.candidates = candidates,
            .list = list,
            .turn = turn,
            .error = error,
            .groups = {.keys = lists_.best,
                       .reach = lists_.reach,
                       .count = static_cast<int32_t>(groups),
                       .tiles = static_cast<int32_t>(divided(tiles, groups))}};
}

void TopkSearch::scan(Queue& queue, const RankArguments& by) const {
    if (k > 0) queue.launch(scan_kernel, {by.groups.count / SCAN_WARPS, SCAN_THREADS}, by);
}

void TopkSearch::finish(Queue& queue, const PprBlock& block, const WalkAnswers& answers, const Finish& what) {
    const bool is_refined = what.refined != nullptr;
    const double* const bound = is_refined ? what.bound : block.bound.data();
    const LaneTurn turn = {.rows = what.rows, .walking = nullptr, .next_try = nullptr, .number = 0};
    const ErrorArguments error = {.measured = nullptr,
                                  .damping = block.damping64,
                                  .bound = bound,
                                  .per_degree = is_refined ? what.per_degree : block.per_degree.data(),
                                  .refined = is_refined,
                                  .lanes = block.lanes};
    const PprIterate iterate = is_refined ? PprIterate{what.refined, nullptr, nullptr} : block.iterate();
    const RankArguments made = ranking(queue, block, candidates_of(block, iterate, true), turn, error, what.local);
    scan(queue, made);
    queue.launch(finish_kernel, grid_of(block),
                 FinishArguments{.rank = made,
                                 .residual = is_refined ? what.residual : block.residual.data(),
                                 .bound = bound,
                                 .walking = block.walking,
                                 .limit = block.limit,
                                 .passes = what.passes != nullptr ? what.passes : block.passes.data(),
                                 .seed_status = block.status,
                                 .tol = block.queries.tol,
                                 .goes_on = what.goes_on,
                                 .answers = answers.arguments()});
}

TopkProof::TopkProof(Queue& queue, TopkSearch& search, const PprBlock& block, const Array<double>& measured)
    : queue_(queue), search_(search), block_(block) {
    const LaneTurn turn = {.rows = nullptr, .walking = block.walking, .next_try = block.next_try, .number = 0};
    const ErrorArguments error = {.measured = measured,
                                  .damping = block.damping64,
                                  .bound = nullptr,
                                  .per_degree = nullptr,
                                  .refined = 0,
                                  .lanes = block.lanes};
    const CandidateArguments candidates = search.candidates_of(block, {}, false);
    try_ = {.rank = search.ranking(queue, block, candidates, turn, error, nullptr),
            .damping = block.damping64,
            .accelerates = block.accelerates,
            .walking = block.walking,
            .passes = block.passes,
            .next_try = block.next_try,
            .unproven = block.unproven,
            .left = block.left,
            .last_pass = block.last_pass};
}

void TopkProof::attempt(int64_t number) {
    if (number % PPR_TRY_EVERY != 0) return;
    // Odd passes read the first buffer.
    const Array<float>& read = number % 2 != 0 ? block_.even : block_.odd;
    const Array<float>& written = number % 2 != 0 ? block_.odd : block_.even;
    const PprIterate iterate = {read, nullptr, nullptr};
    try_.rank.candidates.iterate = iterate;
    try_.rank.turn.number = number;
    search_.scan(queue_, try_.rank);
    queue_.launch(try_kernel, grid_of(block_), try_);
    keep_lanes(queue_, block_, read, written, {block_.unproven, block_.passes, number});
}

}  // namespace hopfuse::device
