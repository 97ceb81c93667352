#include "ppr_graph.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "hopfuse/ppr.h"

namespace hopfuse::device {

namespace {

size_t bytes_of(const HostRows& rows) {
    return rows.indptr.size_bytes() + rows.indices.size_bytes() + rows.weight.size_bytes() +
           rows.edge_type.size_bytes();
}

template <class T>
Array<T> upload_some(Queue& queue, std::span<const T> given) {
    return given.data() == nullptr ? Array<T>() : std::get<0>(queue.upload(given));
}

RowArrays upload_arrays(Queue& queue, const HostRows& rows, int32_t code_shift) {
    return {upload_some(queue, rows.indptr),
            {upload_some(queue, rows.indices), upload_some(queue, rows.weight), code_shift},
            upload_some(queue, rows.edge_type)};
}

// The segments of rows longer than PPR_SEGMENT.
struct Segments {
    std::vector<uint64_t> words;
    std::vector<int32_t> rank, row_of;
    std::vector<int64_t> first_of{0}, begin, end;

    Segments(std::span<const int64_t> indptr, int64_t num_nodes)
        : words(static_cast<size_t>(std::max<int64_t>(1, (num_nodes + 63) / 64))), rank(words.size()) {
        int32_t rows = 0;
        for (int64_t row = 0; row < num_nodes; ++row) {
            if (row % 64 == 0) rank[static_cast<size_t>(row / 64)] = rows;
            const int64_t first = indptr[static_cast<size_t>(row)], last = indptr[static_cast<size_t>(row) + 1];
            if (last - first <= PPR_SEGMENT) continue;
            words[static_cast<size_t>(row / 64)] |= uint64_t{1} << (row % 64);
            for (int64_t at = first; at < last; at += PPR_SEGMENT) {
                begin.push_back(at);
                end.push_back(std::min(at + PPR_SEGMENT, last));
                row_of.push_back(rows);
            }
            first_of.push_back(static_cast<int64_t>(begin.size()));
            ++rows;
        }
    }
    int64_t rows() const { return static_cast<int64_t>(first_of.size()) - 1; }
    // With those of the set of all rows.
    size_t bytes() const {
        return 2 * words.size() * (sizeof(uint64_t) + sizeof(int32_t)) + first_of.size() * sizeof(int64_t) +
               begin.size() * (2 * sizeof(int64_t) + sizeof(int32_t));
    }
};

// The sum of squares of the rows' lengths over the sum of the lengths.
double mean_spread(std::span<const int64_t> indptr, int64_t num_stored) {
    double squares = 0.0;
    for (size_t row = 0; row + 1 < indptr.size(); ++row) {
        const double length = static_cast<double>(indptr[row + 1] - indptr[row]);
        squares += length * length;
    }
    return squares / static_cast<double>(std::max<int64_t>(1, num_stored));
}

}  // namespace

std::vector<float> omega_table(std::span<const double> damping, int64_t passes) {
    const size_t lanes = damping.size();
    std::vector<float> table(lanes * static_cast<size_t>(1 + passes), 1.0f);
    for (size_t lane = 0; lane < lanes; ++lane) {
        const double square = damping[lane] * damping[lane];
        double omega = 1.0 / (1.0 - 0.5 * square);
        for (size_t at = lanes + lane; at < table.size(); at += lanes) {
            table[at] = static_cast<float>(omega);
            omega = 1.0 / (1.0 - 0.25 * square * omega);
        }
    }
    return table;
}

Array<float> OmegaTables::get(Queue& queue, std::span<const double> damping, int lanes, int64_t passes) {
    std::vector<double> all(static_cast<size_t>(lanes), damping.front());
    std::copy(damping.begin(), damping.end(), all.begin());
    const auto differs = [&](double other) { return other != damping.front(); };
    // A recording has its own table, because this one may be dropped before it is made.
    if (queue.fixed() || std::any_of(damping.begin(), damping.end(), differs))
        return queue.upload(omega_table(all, passes));
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto is_same = [&](const Table& table) { return table.damping == damping.front() && table.lanes == lanes; };
    const auto found = std::find_if(tables_.begin(), tables_.end(), is_same);
    if (found != tables_.end() && found->passes >= passes) return found->omega;
    if (found != tables_.end()) tables_.erase(found);
    if (tables_.size() == MOST_TABLES) tables_.pop_front();
    const int64_t made = std::max(passes, LEAST_PASSES);
    const Queue::Resident resident(queue);  // other streams read it too
    tables_.push_back({damping.front(), lanes, made, queue.upload(omega_table(all, made))});
    return tables_.back().omega;
}

int64_t GraphRows::num_tiles() const { return (num_nodes + PPR_TILE - 1) / PPR_TILE; }

std::shared_ptr<const GraphRows> upload_rows(Queue& queue, const HostGraph& graph) {
    const Segments segments(graph.rows.indptr, graph.num_nodes);
    const PackedRows packed(graph.rows, graph.num_nodes, queue.sizes().most_codes);
    const HostRows stored = packed.stored(graph.rows);
    HostRows sliced = stored;
    if (packed.code_shift != 0) sliced.weight = {};  // slices have the same codes
    const HostSlices slices(sliced, graph.num_nodes);
    const size_t nodes = graph.node_of.size_bytes() + graph.internal_of.size_bytes();
    queue.device().require(bytes_of(stored) + graph.degree.size_bytes() + nodes + segments.bytes() + slices.bytes(),
                           "the graph");
    const Queue::Resident resident(queue);
    auto made = std::make_shared<GraphRows>();
    made->device = queue.device().shared_from_this();
    made->num_nodes = graph.num_nodes, made->num_stored = graph.num_stored;
    made->num_types = graph.num_types, made->directed = graph.directed;
    made->rows = upload_arrays(queue, stored, packed.code_shift);
    made->degree = upload_some(queue, graph.degree);
    made->node_of = upload_some(queue, graph.node_of);
    made->internal_of = upload_some(queue, graph.internal_of);
    made->longest_row = queue.upload_one(static_cast<uint64_t>(graph.longest_row));
    made->joined_nodes = queue.upload_one(static_cast<uint64_t>(graph.joined_nodes));
    made->long_words = queue.upload(segments.words);
    made->long_rank = queue.upload(segments.rank);
    made->num_long = segments.rows();
    made->num_segments = static_cast<int64_t>(segments.begin.size());
    made->first_of = queue.upload(segments.first_of);
    made->segment_begin = queue.upload(segments.begin);
    made->segment_end = queue.upload(segments.end);
    made->row_of = queue.upload(segments.row_of);
    std::vector<int32_t> rank(segments.words.size());
    for (size_t word = 0; word < rank.size(); ++word) rank[word] = static_cast<int32_t>(64 * word);
    made->every_word = queue.upload(std::vector<uint64_t>(rank.size(), ~uint64_t{0}));
    made->every_rank = queue.upload(rank);
    made->slices = upload_slices(queue, slices, made->rows.stored);
    made->spread = mean_spread(graph.rows.indptr, graph.num_stored);
    return made;
}

std::shared_ptr<const DeviceGraph> upload_graph(Queue& queue, std::shared_ptr<const GraphRows> rows,
                                                const HostDegrees& degrees, const HostRows* out) {
    const size_t scales = degrees.scale64.size_bytes() + degrees.scale32.size_bytes();
    const size_t unscales = degrees.unscale64.size_bytes() + degrees.unscale32.size_bytes();
    queue.device().require(scales + unscales + (out == nullptr ? 0 : bytes_of(*out)), "the graph");
    const Queue::Resident resident(queue);
    auto made = std::make_shared<DeviceGraph>();
    made->rows = std::move(rows);
    made->scale64 = upload_some(queue, degrees.scale64);
    made->scale32 = upload_some(queue, degrees.scale32);
    made->unscale64 = upload_some(queue, degrees.unscale64);
    made->unscale32 = upload_some(queue, degrees.unscale32);
    made->volume = queue.upload_one(degrees.volume);
    made->total_degree = degrees.volume;
    const auto largest = std::max_element(degrees.scale64.begin(), degrees.scale64.end());
    const bool walks = largest != degrees.scale64.end() && *largest > 0.0;
    made->least_degree = walks ? 1.0 / *largest : 1.0;
    made->has_out = out != nullptr;
    if (out != nullptr) made->out = upload_arrays(queue, *out, 0);
    return made;
}

}  // namespace hopfuse::device
