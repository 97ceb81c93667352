#include "ppr.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "hopfuse/query_status.h"
#include "ppr_settle.h"

namespace hopfuse::device {

namespace {

// The bytes of a sector, the least that a gather reads from memory, and bytes that take about as long as the rest of a pass: two
// launches, and the chain of a row of 10,000 entries.
constexpr int64_t SECTOR = 32, PASS_BYTES = 1 << 23;

// The most bytes of scores that are copied while the next block walks.
constexpr size_t MOST_ON_WAY = 64 << 20;

std::vector<LaneBlock> blocks_of(Queue& queue, const GraphRows& graph, int64_t batch) {
    const Device::Properties& device = queue.device().properties();
    int most = static_cast<int>(queue.sizes().most_lanes);
    if (most == 0) most = most_lanes(graph.num_nodes, graph.num_stored, device.l2_bytes, device.l2_speedup);
    return lane_blocks(batch, most);
}

// The lanes' rows of the answers, (L,); -1 where there is none.
Array<int64_t> rows_of_lanes(Queue& queue, std::span<const int64_t> rows, int lanes) {
    std::vector<int64_t> padded(rows.begin(), rows.end());
    padded.resize(static_cast<size_t>(lanes), -1);
    return queue.upload(padded);
}

// A block with its x^ and certificate.
class Solved {
public:
    // Until finish() or settle() is called, `meanwhile` runs once while the device walks.
    template <class Meanwhile>
    Solved(Queue& queue, const WalkBatch& batch, std::span<const int64_t> rows, int lanes, TopkSearch* proof,
           bool refines, const Meanwhile& meanwhile)
        : rows_(rows), block_(queue, batch, rows, lanes), certifier_(queue, block_, rows_of_lanes(queue, rows, lanes)) {
        const Array<double> measured = queue.empty<double>(MEASURED_COLUMNS * block_.width());
        std::optional<TopkProof> attempts;
        if (proof != nullptr) attempts.emplace(queue, *proof, block_, measured);
        walk(queue, block_, attempts ? &*attempts : nullptr, measured);
        meanwhile();
        certifier_.normalise(queue);
        if (refines && block_.symmetric) certifier_.correction = queue.empty<float>(block_.states());
        certifier_.measure(queue);
        // In a recording, a list that is not settled is final if tol is met, and no step is taken.
        if (refines || !queue.fixed()) certifier_.plan_polish(queue);
    }

    const Certifier& certifier() const { return certifier_; }

    // Writes the answers. `also` queues what else depends on x^; it is called again if x^ changes, and true is returned then.
    // `found` receives the counts that were read before. A recording takes no float64 steps: few queries need them, which are asked
    // again, and each would be four launches more for all others.
    template <class Also>
    bool finish(Queue& queue, TopkSearch& search, const WalkAnswers& answers, bool goes_on, SettlingCounts& found,
                const Also& also) {
        search.finish(queue, block_, answers, {.rows = certifier_.rows, .goes_on = goes_on});
        also();
        if (queue.fixed()) return false;
        found = queue.read(certifier_.counts)[0];
        if (found.polishing == 0) return false;
        certifier_.polish(queue);
        const PolishLanes polished = certifier_.polished();
        search.finish(queue, block_, answers, {.rows = polished.rows, .goes_on = true, .passes = polished.passes});
        also();
        return true;
    }

    // Writes the answers, and tries to prove lists that the certificate leaves unproven. Adds the queries whose proofs it rejects for
    // good to `refused`; in a recording, the status of their answers says so.
    void settle(Queue& queue, TopkSearch& search, const WalkAnswers& answers, bool goes_on,
                std::vector<int64_t>& refused) {
        Settling settling(queue, search, certifier_, answers);
        SettlingCounts found{};
        if (finish(queue, search, answers, goes_on, found, [&] { settling.begin(); }))
            found = queue.read(certifier_.counts)[0];
        if (queue.fixed() || found.open > 0) found = settling.run(found);
        if (found.refused == 0) return;
        const size_t first = static_cast<size_t>(rows_.front()), past = static_cast<size_t>(rows_.back()) + 1;
        const std::vector<int32_t> status = queue.read(answers.status.part(first, past - first));
        for (const int64_t row : rows_)
            if (status[static_cast<size_t>(row) - first] == status_incomplete) refused.push_back(row);
    }

private:
    const std::span<const int64_t> rows_;
    PprBlock block_;
    Certifier certifier_;
};

constexpr auto do_nothing = [] {};

// Solves some queries of a batch; returns those whose proof the certificate rejects. With `goes_on` these queries were solved
// before, and their passes are added up.
std::vector<int64_t> search_rows(Queue& queue, const WalkBatch& batch, TopkSearch& search,
                                 std::span<const int64_t> rows, const WalkAnswers& answers, bool proofs, bool refines,
                                 bool goes_on) {
    std::vector<int64_t> refused;
    for (const LaneBlock& part : blocks_of(queue, batch.rows(), static_cast<int64_t>(rows.size()))) {
        const auto own = rows.subspan(static_cast<size_t>(part.first), static_cast<size_t>(part.count));
        Solved solved(queue, batch, own, part.lanes, proofs ? &search : nullptr, refines, do_nothing);
        SettlingCounts found;
        if (refines) solved.settle(queue, search, answers, goes_on, refused);
        else solved.finish(queue, search, answers, goes_on, found, do_nothing);
    }
    return refused;
}

std::vector<int64_t> all_rows(int64_t batch) {
    std::vector<int64_t> rows(static_cast<size_t>(batch));
    std::iota(rows.begin(), rows.end(), 0);
    return rows;
}

}  // namespace

Array<float> ScoreTarget::part(Queue& queue, size_t first, size_t size) const {
    return there_ ? there_.part(first, size) : queue.empty<float>(size);
}

void ScoreTarget::begin(Queue& queue, const Array<float>& scores, size_t first) {
    if (there_ || queue.device().is_counting()) return;
    first_ = first, size_ = scores.size();
    if (scores.nbytes() <= MOST_ON_WAY) on_way_ = queue.begin_read(scores.data(), scores.nbytes());
    if (on_way_) return;
    void* const to[] = {host_.data() + first};
    const void* const from[] = {scores.data()};
    const size_t nbytes[] = {scores.nbytes()};
    queue.read_bytes(from, to, nbytes);
}

void ScoreTarget::end() {
    if (on_way_) std::memcpy(host_.data() + first_, on_way_.get(), size_ * sizeof(float));
    on_way_.reset();
}

int most_lanes(int64_t num_nodes, int64_t num_stored, size_t l2_bytes, double l2_speedup) {
    int best = 0;
    double least = 0.0;
    for (size_t i = LANES.size(); i-- > 0;) {
        const int64_t lanes = LANES[i], state = 4 * lanes * num_nodes;
        double gathered = static_cast<double>(std::max(SECTOR, 4 * lanes) * num_stored);
        if (state <= static_cast<int64_t>(l2_bytes / 2)) gathered /= l2_speedup;
        const double rest = static_cast<double>(8 * num_stored + 20 * num_nodes + 2 * state);
        const double moved = (rest + gathered + static_cast<double>(PASS_BYTES)) / static_cast<double>(lanes);
        if (best == 0 || moved < least) best = LANES[i], least = moved;
    }
    return best;
}

std::vector<LaneBlock> lane_blocks(int64_t batch, int most) {
    std::vector<LaneBlock> made;
    for (int64_t first = 0; first < batch;) {
        const int64_t count = std::min<int64_t>(batch - first, most);
        const int lanes = *std::find_if(LANES.begin(), LANES.end(), [&](int width) { return width >= count; });
        made.push_back({first, count, lanes});
        first += count;
    }
    return made;
}

WalkAnswers ppr(Queue& queue, const std::shared_ptr<const DeviceGraph>& graph, const WalkQueries& queries,
                ScoreTarget& scores) {
    queue.keep(graph);
    const WalkAnswers answers(queue, queries.batch(), 0);
    if (queries.batch() == 0) return answers;
    const WalkBatch batch(queue, graph, queries);
    TopkSearch search(queue, graph, 0, {}, true);
    const std::vector<int64_t> rows = all_rows(queries.batch());
    const size_t nodes = static_cast<size_t>(batch.rows().num_nodes);
    for (const LaneBlock& part : blocks_of(queue, batch.rows(), queries.batch())) {
        const size_t begin = static_cast<size_t>(part.first), count = static_cast<size_t>(part.count);
        const auto own = std::span<const int64_t>(rows).subspan(begin, count);
        Solved solved(queue, batch, own, part.lanes, nullptr, false, [&] { scores.end(); });
        const Array<float> out = scores.part(queue, begin * nodes, count * nodes);
        SettlingCounts found;
        solved.finish(queue, search, answers, false, found, [&] { solved.certifier().scores(queue, out); });
        scores.begin(queue, out, begin * nodes);
    }
    return answers;
}

WalkAnswers ppr_topk(Queue& queue, const std::shared_ptr<const DeviceGraph>& graph, const WalkQueries& queries,
                     const NodeSelection& selection) {
    queue.keep(graph);
    const WalkAnswers answers(queue, queries.batch(), selection.k);
    if (queries.batch() == 0) return answers;
    const bool is_all = selection.candidates.data() == nullptr;
    const int64_t most = is_all ? graph->rows->num_nodes : static_cast<int64_t>(selection.candidates.size());
    const WalkBatch batch(queue, graph, queries);
    TopkSearch search(queue, graph, std::min(selection.k, most), selection.candidates, selection.prove_order);
    std::vector<int64_t> rows = all_rows(queries.batch());
    const bool proves = selection.stop_when_proven && search.k > 0;
    if (proves) rows = search_rows(queue, batch, search, rows, answers, true, true, false);
    search_rows(queue, batch, search, rows, answers, false, proves, proves);
    return answers;
}

}  // namespace hopfuse::device
