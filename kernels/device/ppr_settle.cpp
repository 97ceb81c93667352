#include "ppr_settle.h"

#include <algorithm>
#include <set>

#include "hopfuse/ppr_plan.h"

namespace hopfuse::device {

namespace {

constexpr std::string_view PPR_SETTLE_UNIT = "ppr_settle_f32";
constexpr KernelOf<SettleKernel> begin_kernel{{PPR_SETTLE_UNIT, "ppr_settle_begin"}};
constexpr KernelOf<SettleKernel> around_kernel{{PPR_SETTLE_UNIT, "ppr_settle_around"}};
constexpr KernelOf<SettleKernel> plan_kernel{{PPR_SETTLE_UNIT, "ppr_settle_plan"}};
constexpr auto settle_scale_kernel =
    lane_kernels<ScaleOfRowsKernel>(PPR_SETTLE_UNIT, HOPFUSE_LANE_NAMES("ppr_settle_scale"));
constexpr auto rest_kernel = lane_kernels<RestKernel>(PPR_SETTLE_UNIT, HOPFUSE_LANE_NAMES("ppr_settle_rest"));
constexpr auto measure_kernel = lane_kernels<RefineKernel>(PPR_SETTLE_UNIT, HOPFUSE_LANE_NAMES("ppr_refine_measure"));
constexpr auto end_kernel = lane_kernels<RefineKernel>(PPR_SETTLE_UNIT, HOPFUSE_LANE_NAMES("ppr_refine_end"));
constexpr auto averages_kernel = lane_kernels<AroundKernel>(PPR_SETTLE_UNIT, HOPFUSE_LANE_NAMES("ppr_refine_around"));

constexpr Grid ONE_WARP = {1, 32};

// The passes after which lists of lanes with these damping factors may be examined, ascending.
std::vector<int64_t> possible_looks(std::span<const double> damping, bool order) {
    constexpr double small = 1.0, large = 1e4;  // shortfalls from which all others' looks follow
    std::set<int64_t> looks;
    for (const double factor : std::set<double>(damping.begin(), damping.end())) {
        std::vector<int64_t> from = {0};
        while (!from.empty()) {
            const int64_t done = from.back();
            from.pop_back();
            for (const double shortfall : {small, large}) {
                const int64_t next = ppr_next_check_pass(factor, done, shortfall, order);
                if (next > 0) looks.insert(next), from.push_back(next);
            }
        }
    }
    return {looks.begin(), looks.end()};
}

std::span<const double> damping_of(const PprBlock& block) {
    return {block.damping.data(), static_cast<size_t>(block.count)};
}

}  // namespace

Settling::Room::Room(Queue& queue, const PprBlock& block)
    : other(queue.empty<float>(block.states())), gap(queue.empty<float>(block.states())),
      refined(queue.empty<float>(block.states())), partial(block.segment_sums(queue)),
      no_word(queue.zeros<uint64_t>(block.restart_words.size())),
      measured(queue.empty<double>(3 * MEASURED_COLUMNS * block.width())) {}

Settling::Settling(Queue& queue, TopkSearch& search, const Certifier& certifier, const WalkAnswers& answers)
    : queue_(queue), search_(search), certifier_(certifier), block_(certifier.block), answers_(answers),
      looks_(possible_looks(damping_of(block_), search.prove_order)) {
    const size_t lane = block_.width();
    std::tie(passes_, look_, more_, examined_rows_, around_rows_, zero_, rest_, share_, least_, residual_, bound_,
             per_degree_, refined_rest_, anchor_, open_, examined_, around_, one_) =
        queue.arrays<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, double, double, double, double, double,
                     double, double, double, int32_t, int32_t, int32_t, float>(
            lane, lane, lane, lane, lane, lane, lane, lane, lane, lane, lane, lane, lane, lane, lane, lane, lane, lane);
}

SettlingLanes Settling::lanes() const {
    return {.passes = passes_,
            .look = look_,
            .more = more_,
            .rest = rest_,
            .share = share_,
            .least = least_,
            .open = open_,
            .examined = examined_,
            .around = around_,
            .examined_rows = examined_rows_,
            .around_rows = around_rows_,
            .residual = residual_,
            .bound = bound_,
            .per_degree = per_degree_,
            .refined_rest = refined_rest_,
            .zero = zero_,
            .one = one_,
            .anchor = anchor_,
            .counts = certifier_.counts};
}

SettleArguments Settling::arguments(int64_t number) const {
    return {.known = certifier_.lanes(),
            .polish = certifier_.polished(),
            .lanes = lanes(),
            .lists = {.shortfall = answers_.shortfall,
                      .converged = answers_.converged,
                      .status = answers_.status,
                      .seed_status = block_.status},
            .order = search_.prove_order,
            .number = number};
}

void Settling::begin() { queue_.launch(begin_kernel, ONE_WARP, arguments(queue_.fixed() ? looks_.front() : 0)); }

SettlingCounts Settling::run(SettlingCounts known) {
    if (!certifier_.correction) return known;  // no bound per node holds
    const Room room(queue_, block_);
    measure_rests(room);
    const Array<float> omega = block_.rows.omegas->get(queue_, damping_of(block_), block_.lanes, looks_.back());
    Passes passes(block_, omega, room.partial);
    passes.even = block_.odd, passes.odd = room.other;  // the first buffer has x^
    passes.walk.restart_rows = block_.rows.every_row();
    passes.walk.restart = certifier_.correction;
    passes.walk.anchor = anchor_;
    passes.walk.decision.walking = open_;
    passes.walk.decision.left = &certifier_.counts.data()->open;
    passes.start(queue_, true);
    int64_t done = 0;
    const auto advance = [&](int64_t look) {
        while (done < look - 1) passes.run(queue_, ++done);
    };
    if (queue_.fixed()) {
        for (size_t i = 0; i < looks_.size(); ++i) {
            advance(looks_[i]);
            examine(passes, room, looks_[i], i + 1 < looks_.size() ? looks_[i + 1] : 0);
        }
        return known;
    }
    while (known.open > 0) {
        advance(known.next);
        const bool others_follow = known.examined < known.open;  // at the look that comes next, as a rule
        const int64_t following = others_follow ? *std::upper_bound(looks_.begin(), looks_.end(), known.next) : 0;
        examine(passes, room, known.next, following);
        if (others_follow) advance(following), examine(passes, room, following, 0);
        known = queue_.read(certifier_.counts)[0];
    }
    return known;
}

// Bounds by how much |rho| of x^ may exceed the stored correction, and what passes over averages lose.
void Settling::measure_rests(const Room& room) {
    double* const scale = room.measured.data() + 2 * MEASURED_COLUMNS * block_.width();
    block_.launch_tile_lanes(queue_, settle_scale_kernel, block_.scales(), block_.num_nodes(), certifier_.counts.data(),
                             block_.join.room(), scale);
    block_.launch_tile_lanes(queue_, rest_kernel,
                             RestArguments{.known = certifier_.lanes(),
                                           .lanes = lanes(),
                                           .restart_rows = block_.restart_set(),
                                           .restart = block_.restart32,
                                           .attraction = block_.attraction,
                                           .num_nodes = block_.num_nodes(),
                                           .join = block_.join.room(),
                                           .scale = scale});
}

// Examines the lanes whose turn it is, of which `passes` have run look - 1, and writes their lists, also by local bounds. Those
// with the look `next` (0: the least) have the next turn.
void Settling::examine(const Passes& passes, const Room& room, int64_t look, int64_t next) {
    SettlingCounts* const counts = certifier_.counts;
    Passes measured = passes;
    measured.even = passes.written_by(look - 1), measured.odd = room.gap, measured.omega = nullptr;
    measured.walk.decision.walking = examined_, measured.walk.decision.left = &counts->examined;
    measured.run(queue_, 1, room.measured);
    RefineArguments refined = {.known = certifier_.lanes(),
                               .lanes = lanes(),
                               .scales = block_.scales(),
                               .num_nodes = block_.num_nodes(),
                               .x = block_.even,
                               .solved = measured.even,
                               .gap = room.gap,
                               .refined = room.refined,
                               .join = block_.join.room(),
                               .measured = room.measured,
                               .again = 0};
    block_.launch_tile_lanes(queue_, measure_kernel, refined);
    block_.launch_tile_lanes(queue_, end_kernel, refined);
    write(room, examined_rows_, more_, nullptr);

    // Averages |z - y| over neighbours, by a pass without restarts and damping, where x^ + D y was; it is computed again.
    queue_.launch(around_kernel, ONE_WARP, arguments(next));
    Passes average(block_, nullptr, room.partial);
    average.even = room.gap, average.odd = room.refined;
    average.walk.restart_rows = {room.no_word, nullptr};
    average.walk.damping = one_;
    average.walk.decision.walking = around_, average.walk.decision.left = &counts->around;
    average.run(queue_, 1);
    block_.launch_tile_lanes(queue_, averages_kernel,
                             AroundArguments{.known = certifier_.lanes(),
                                             .lanes = lanes(),
                                             .average = room.refined,
                                             .attraction = block_.attraction,
                                             .num_nodes = block_.num_nodes(),
                                             .join = block_.join.room()});
    refined.again = 1;
    block_.launch_tile_lanes(queue_, end_kernel, refined);
    write(room, around_rows_, zero_, room.gap);
    queue_.launch(plan_kernel, ONE_WARP, arguments(next));
}

// Writes the refined lists of some rows, adding `passes` and one more.
void Settling::write(const Room& room, const int64_t* rows, const int64_t* passes, const float* local) {
    search_.finish(queue_, block_, answers_,
                   {.rows = rows,
                    .goes_on = true,
                    .passes = passes,
                    .refined = room.refined,
                    .residual = residual_,
                    .bound = bound_,
                    .per_degree = per_degree_,
                    .local = local});
}

}  // namespace hopfuse::device
