#include "ppr_settle.h"

#include <algorithm>
#include <optional>

#include "arguments/ppr_local_f32.h"
#include "arguments/ppr_refine_f32.h"

namespace hopfuse::device {

namespace {

constexpr std::string_view LOCAL = "ppr_local_f32", REFINE = "ppr_refine_f32";
constexpr auto largest_scale_kernel = lane_kernels<LargestScaleKernel>(LOCAL, HOPFUSE_LANE_NAMES("ppr_local_scale"));
constexpr auto local_start_kernel = lane_kernels<LocalStartKernel>(LOCAL, HOPFUSE_LANE_NAMES("ppr_local_start"));
constexpr auto largest_kernel = lane_kernels<LargestKernel>(LOCAL, HOPFUSE_LANE_NAMES("ppr_local_largest"));
constexpr auto measure_kernel = lane_kernels<RefineMeasureKernel>(REFINE, HOPFUSE_LANE_NAMES("ppr_refine_measure"));
constexpr auto end_kernel = lane_kernels<RefineEndKernel>(REFINE, HOPFUSE_LANE_NAMES("ppr_refine_end"));

// The values of the lanes of a block that a look uploads, one row of (L,) int32 after another.
class LaneRows {
public:
    explicit LaneRows(int lanes) : lanes_(static_cast<size_t>(lanes)) {}

    // Adds a row; returns its number.
    template <class Value>
    size_t add(const Value& value) {
        for (size_t lane = 0; lane < lanes_; ++lane) values_.push_back(value(lane) ? 1 : 0);
        return values_.size() / lanes_ - 1;
    }
    void upload(Queue& queue) { there_ = queue.upload(values_); }
    int32_t* row(size_t number) const { return there_.data() + number * lanes_; }

private:
    const size_t lanes_;
    std::vector<int32_t> values_;
    Array<int32_t> there_;
};

class Settling {
public:
    Settling(Queue& queue, TopkSearch& search, Certifier& certifier, const Certificate& certificate,
             std::span<const int64_t> rows, const WalkAnswers& answers, std::span<const int64_t> passes);

    Settled settle();

private:
    // A lane, on the host.
    struct Lane {
        PprProgress course{};
        double shortfall = 0.0;
        bool is_converged = false;
        double slack, missed, volume;
        double rest = 0.0;  // by how much |rho| of x^ may exceed the stored correction
        PassLoss loss{};
        int64_t longest;
        float weight = 1.0f, factor = 1.0f;  // the smallest node weight and factor of a row

        bool is_proven() const { return shortfall < 1.0; }
    };

    Queue& queue_;
    TopkSearch& search_;
    Certifier& certifier_;
    PprBlock& block_;
    const Certificate& certificate_;
    const std::span<const int64_t> rows_;
    const WalkAnswers& answers_;
    std::vector<Lane> lanes_;
    int64_t last_pass_ = 0;
    Array<float> x_, free_;
    std::optional<SettlingRoom> room_;
    Array<uint64_t> no_word_;  // the set of no rows
    Array<double> anchor_;     // (L,)
    Array<float> ones_;        // (L,)
    Array<int32_t> walks_;     // (L,) 1
    Array<double> measured_;   // (3, 2, L)

    size_t width() const { return block_.width(); }
    template <class Keep>
    LaneFlags lanes_where(const Keep& keep) const {
        LaneFlags flags(width());
        for (size_t lane = 0; lane < rows_.size(); ++lane) flags[lane] = keep(lane);
        return flags;
    }
    double* measured(size_t number) const { return measured_.data() + number * MEASURED_COLUMNS * width(); }
    std::vector<double> read_measured(size_t count) {
        return queue_.read(measured_.part(0, count * MEASURED_COLUMNS * width()));
    }
    template <class T>
    Array<T> rows_part(const Array<T>& of) const {
        const size_t first = static_cast<size_t>(rows_.front());
        return of.part(first, static_cast<size_t>(rows_.back()) + 1 - first);
    }
    void take_written(std::span<const double> shortfall, std::span<const uint8_t> converged);
    void read_written();
    void read_lanes();
    void prepare();
    void read_rests();
    void measure_largest(const float* state, double* out);
    std::vector<int64_t> plan_looks(LaneFlags& open);
    void write(const LaneFlags& lanes, const Certificate& certificate, std::span<const int64_t> passes,
               const float* local);
    void solve(const LaneRows& masks, size_t is_open, std::span<const int64_t> look);
    std::vector<int64_t> refine(LaneFlags& open, const std::vector<int64_t>& more);
    Certificate look_around(const Certificate& refined, std::span<const double> rest);
};

Settling::Settling(Queue& queue, TopkSearch& search, Certifier& certifier, const Certificate& certificate,
                   std::span<const int64_t> rows, const WalkAnswers& answers, std::span<const int64_t> passes)
    : queue_(queue), search_(search), certifier_(certifier), block_(certifier.block), certificate_(certificate),
      rows_(rows), answers_(answers), lanes_(block_.width()) {
    for (size_t lane = 0; lane < width(); ++lane) lanes_[lane].course.passes = passes[lane];
}

Settled Settling::settle() {
    read_lanes();
    LaneFlags open = lanes_where([&](size_t lane) {
        const Lane& own = lanes_[lane];
        return !own.is_proven() && certificate_.per_degree[lane] < PPR_MOST_RHO &&
               !(block_.least && ppr_is_faint(own.factor, block_.damping[lane]));
    });
    if (any(open)) {
        prepare();
        std::vector<int64_t> more = plan_looks(open);
        while (any(open)) more = refine(open, more);
    }
    return {lanes_where([&](size_t lane) { return lanes_[lane].is_proven(); }),
            lanes_where([&](size_t lane) { return lanes_[lane].is_converged; })};
}

// Takes what was read of the lists that are written.
void Settling::take_written(std::span<const double> shortfall, std::span<const uint8_t> converged) {
    for (size_t lane = 0; lane < rows_.size(); ++lane) {
        const size_t at = static_cast<size_t>(rows_[lane] - rows_.front());
        lanes_[lane].shortfall = shortfall[at];
        lanes_[lane].is_converged = converged[at] != 0;
    }
}

void Settling::read_written() {
    const auto [shortfall, converged] = queue_.read(rows_part(answers_.shortfall), rows_part(answers_.converged));
    take_written(shortfall, converged);
}

void Settling::read_lanes() {
    const auto [shortfall, converged, slack, missed, last_pass, longest, volume, least] =
        queue_.read(rows_part(answers_.shortfall), rows_part(answers_.converged), block_.slack, block_.missed,
                    block_.last_pass, block_.longest_row, block_.volume, block_.least);
    take_written(shortfall, converged);
    last_pass_ = last_pass[0];
    for (size_t lane = 0; lane < width(); ++lane) {
        Lane& own = lanes_[lane];
        own.slack = slack[lane], own.missed = missed[lane];
        own.longest = static_cast<int64_t>(longest[longest.size() == 1 ? 0 : lane]);
        own.volume = volume[volume.size() == 1 ? 0 : lane];
        if (!least.empty()) own.weight = least[lane], own.factor = least[width() + lane];
    }
}

// What all looks need.
void Settling::prepare() {
    room_.emplace(queue_, block_);
    const PprIterate now = block_.iterate();
    const bool is_odd = now.last_pass != nullptr && last_pass_ % 2 != 0;
    x_ = is_odd ? block_.odd : block_.even, free_ = is_odd ? block_.even : block_.odd;
    no_word_ = queue_.zeros<uint64_t>(block_.restart_words.size());
    measured_ = queue_.empty<double>(3 * MEASURED_COLUMNS * width());
    const std::vector<double> anchor(width(), PPR_ANCHOR);
    const std::vector<float> ones(width(), 1.0f);
    const std::vector<int32_t> walks(width(), 1);
    std::tie(anchor_, ones_, walks_) =
        queue_.upload(std::span<const double>(anchor), std::span<const float>(ones), std::span<const int32_t>(walks));
    read_rests();
}

// Bounds by how much |rho| of x^ may exceed the stored correction, and what passes over averages lose.
void Settling::read_rests() {
    Passes restart(block_, nullptr, room_->partial);
    restart.even = room_->spare, restart.odd = room_->other;
    restart.start(queue_);
    measure_largest(room_->spare, measured(0));
    block_.launch_tile_lanes(queue_, largest_scale_kernel, block_.scales(), block_.num_nodes(), block_.join.room(),
                             measured(1));
    const std::vector<double> found = read_measured(2);
    for (size_t lane = 0; lane < width(); ++lane) {
        Lane& own = lanes_[lane];
        const double largest = found[width() + lane], scale = found[3 * width() + lane];
        own.loss = ppr_pass_loss(own.longest, scale, 1.0 / static_cast<double>(own.weight));
        own.rest = ppr_rest_of_rho(static_cast<float>(largest), certificate_.per_degree[lane], own.slack, own.loss,
                                   block_.damping[lane]);
    }
}

// Measures the largest value of a state divided by the node weights.
void Settling::measure_largest(const float* state, double* out) {
    block_.launch_tile_lanes(queue_, largest_kernel, state, block_.attraction, block_.num_nodes(), block_.join.room(),
                             out);
}

// Plans the next look of open lanes; returns its passes. Those that no pass helps are no longer open.
std::vector<int64_t> Settling::plan_looks(LaneFlags& open) {
    std::vector<int64_t> more(width());
    for (size_t lane = 0; lane < width(); ++lane) {
        if (!open[lane]) continue;
        Lane& own = lanes_[lane];
        more[lane] = ppr_plan_look(own.course, block_.damping[lane], own.shortfall, search_.prove_order, own.longest,
                                   block_.queries.max_iter);
        open[lane] = more[lane] > 0;
    }
    return more;
}

// Writes the refined lists of some lanes, adding `passes`, and reads how far they are from being proven.
void Settling::write(const LaneFlags& lanes, const Certificate& certificate, std::span<const int64_t> passes,
                     const float* local) {
    std::vector<int64_t> rows(width(), -1), before_last(width());
    for (size_t lane = 0; lane < rows_.size(); ++lane) {
        if (lanes[lane]) rows[lane] = rows_[lane];
        before_last[lane] = passes[lane] - 1;
    }
    search_.finish(queue_, block_, answers_,
                   {.rows = rows,
                    .certificate = &certificate,
                    .goes_on = true,
                    .passes = before_last,
                    .local = local,
                    .refined = room_->spare});
    read_written();
}

// Solves for the correction of x^ into the spare state, by as many passes as each lane's look requires. The last one is measured
// into measured(0), and |z - y| is written to the free state.
void Settling::solve(const LaneRows& masks, size_t is_open, std::span<const int64_t> look) {
    const int64_t last = *std::max_element(look.begin(), look.end());
    const std::span<const double> damping(block_.damping.data(), static_cast<size_t>(block_.count));
    const Array<float> omega = block_.rows.omegas->get(queue_, damping, block_.lanes, last);
    Passes passes(block_, omega, room_->partial);
    passes.even = free_, passes.odd = room_->other;
    passes.walk.restart_rows = block_.rows.every_row();
    // Lanes that are not open restart too, but their results are not read.
    passes.walk.restart = certifier_.correction;
    passes.walk.anchor = anchor_;
    passes.walk.decision.left = walks_;
    passes.start(queue_);
    size_t next = is_open + 1;
    for (int64_t number = 0; number < last; ++number) {  // passes before the one that is measured
        if (number > 0) {
            passes.walk.decision.walking = masks.row(next++);
            passes.run(queue_, number);
        }
        if (std::find(look.begin(), look.end(), number + 1) == look.end()) continue;
        keep_lanes(queue_, block_, passes.written_by(number), room_->spare, masks.row(next++));
    }
    passes.walk.decision.walking = masks.row(is_open);
    passes.even = room_->spare, passes.odd = free_, passes.omega = nullptr;
    passes.run(queue_, 1, measured(0));
    block_.launch_states(queue_, local_start_kernel, block_.num_nodes(), free_, room_->spare, free_);
}

// Refines open lanes by `more` passes and writes their lists, also by local bounds. Lanes that may gain from further passes stay
// open; returns the passes of their next look.
std::vector<int64_t> Settling::refine(LaneFlags& open, const std::vector<int64_t>& more) {
    std::vector<int64_t> look(width());
    for (size_t lane = 0; lane < width(); ++lane) look[lane] = open[lane] ? lanes_[lane].course.look : 0;
    const int64_t last = *std::max_element(look.begin(), look.end());
    LaneRows masks(block_.lanes);  // in the order in which solve() reads them
    const size_t is_open = masks.add([&](size_t lane) { return open[lane]; });
    for (int64_t number = 0; number < last; ++number) {
        if (number > 0) masks.add([&](size_t lane) { return look[lane] > number; });
        if (std::find(look.begin(), look.end(), number + 1) != look.end())
            masks.add([&](size_t lane) { return look[lane] != number + 1; });
    }
    masks.upload(queue_);
    solve(masks, is_open, look);
    block_.launch_tile_lanes(queue_, measure_kernel, block_.scales(), block_.num_nodes(), room_->spare,
                             block_.join.room(), measured(1));
    block_.launch_tile_lanes(queue_, end_kernel, block_.scales(), masks.row(is_open), block_.num_nodes(), x_,
                             room_->spare, block_.join.room(), measured(2));
    const std::vector<double> found = read_measured(3);
    Certificate refined = certificate_;
    std::vector<double> rest(width());
    for (size_t lane = 0; lane < width(); ++lane) {
        if (!open[lane]) continue;
        const Lane& own = lanes_[lane];
        const auto value = [&](size_t column) { return found[column * width() + lane]; };
        const PprBounds known = {certificate_.residual[lane], certificate_.bound[lane], certificate_.per_degree[lane]};
        const PprCorrection correction = {value(0), value(1), value(2), value(3), value(4)};
        const PprRefined made =
            ppr_refined(known, own.rest, correction, own.loss, own.slack, own.missed, own.volume, block_.damping[lane]);
        refined.residual[lane] = made.bounds.residual;
        refined.bound[lane] = made.bounds.bound;
        refined.per_degree[lane] = made.bounds.per_degree;
        rest[lane] = made.rest;
    }
    write(open, refined, more, nullptr);
    const auto close_proven = [&] {
        for (size_t lane = 0; lane < width(); ++lane) open[lane] = open[lane] && !lanes_[lane].is_proven();
    };
    close_proven();
    const LaneFlags looking = lanes_where([&](size_t lane) {
        const Lane& own = lanes_[lane];
        return open[lane] && ppr_may_look_around(own.shortfall) && ppr_allows(own.course, block_.queries.max_iter, 1);
    });
    if (any(looking)) {
        const Certificate found_around = look_around(refined, rest);
        for (size_t lane = 0; lane < width(); ++lane) lanes_[lane].course.passes += looking[lane] ? 1 : 0;
        write(looking, found_around, std::vector<int64_t>(width(), 1), free_);
        close_proven();
    }
    return plan_looks(open);
}

// Averages |z - y|, which the free state has, over neighbours, by a pass without restarts and damping. Returns the certificate
// with the error that other nodes add to a node's own.
Certificate Settling::look_around(const Certificate& refined, std::span<const double> rest) {
    Passes average(block_, nullptr, room_->partial);
    average.even = free_, average.odd = room_->other;
    average.walk.restart_rows = {no_word_, nullptr};
    average.walk.damping = ones_;
    average.walk.decision.walking = average.walk.decision.left = walks_;
    average.run(queue_, 1);
    measure_largest(room_->other, measured(0));
    const std::vector<double> found = read_measured(1);
    Certificate around = refined;
    for (size_t lane = 0; lane < width(); ++lane)
        around.per_degree[lane] =
            ppr_local_bound(found[width() + lane], rest[lane], lanes_[lane].loss, block_.damping[lane]);
    return around;
}

}  // namespace

SettlingRoom::SettlingRoom(Queue& queue, const PprBlock& block)
    : other(queue.empty<float>(block.states())), spare(queue.empty<float>(block.states())),
      partial(block.segment_sums(queue)) {}

Settled settle(Queue& queue, TopkSearch& search, Certifier& certifier, const Certificate& certificate,
               std::span<const int64_t> rows, const WalkAnswers& answers, std::span<const int64_t> passes) {
    return Settling(queue, search, certifier, certificate, rows, answers, passes).settle();
}

}  // namespace hopfuse::device
