#include "slices.h"

#include <algorithm>
#include <array>
#include <bit>

#include "hopfuse/ppr.h"
#include "ppr_graph.h"

namespace hopfuse::device {

namespace {

constexpr int SEGMENT_THREADS = PPR_SEGMENT / SLICE_WIDTH;
static_assert(SEGMENT_THREADS * SLICE_SEGMENTS == SLICE_THREADS && SLICE_WINDOW <= 1 << 16);

// The threads of a row of at most PPR_SEGMENT entries.
int threads_of(int64_t length) {
    return static_cast<int>(std::bit_ceil(static_cast<unsigned>(blocks(length, SLICE_WIDTH))));
}

// Writes slices one after the other.
class Writer {
public:
    Writer(HostSlices& made, const HostRows& given) : made_(made), given_(given) {}

    // Begins a slice of rows with `threads` each, the longest of `length` entries.
    void begin(int32_t first, int32_t row, int threads, int length) {
        threads_ = threads, width_ = static_cast<int>(blocks(length, threads));
        if (length == 0) width_ = 0;
        const uint32_t shape = static_cast<uint32_t>(width_ + 16 * std::countr_zero(static_cast<unsigned>(threads)));
        made_.slices.push_back({to_line(made_.word.size()), first, row, shape});
        base_ = made_.word.size(), thread_ = 0;
        made_.word.resize(base_ + size());
        if (given_.weight.data() != nullptr) made_.weight.resize(base_ + size());
    }
    // The entries begin .. end - 1 of a row, or of its segment, by the next threads.
    void add(int64_t begin, int64_t end) {
        for (int piece = 0; piece < threads_; ++piece, ++thread_)
            for (int i = 0; i < width_; ++i) {
                const int64_t entry = std::min(begin + piece * width_ + i, end - 1);
                if (entry < begin) continue;  // an empty row
                const size_t to = base_ + static_cast<size_t>(SLICE_THREADS * i + thread_);
                made_.word[to] = given_.indices[static_cast<size_t>(entry)];
                if (given_.weight.data() != nullptr) made_.weight[to] = given_.weight[static_cast<size_t>(entry)];
            }
        made_.slices.back().shape += static_cast<uint32_t>(256 * threads_);
        last_ = end - begin;
    }
    // Of a long row: notes the entries of the last segment.
    void end_of_long() { made_.slices.back().shape += static_cast<uint32_t>(last_) << 16; }

private:
    size_t size() const { return static_cast<size_t>(SLICE_THREADS * width_); }
    static uint32_t to_line(size_t entry) {
        return static_cast<uint32_t>(to_int32(static_cast<int64_t>(entry / SLICE_THREADS)));
    }

    HostSlices& made_;
    const HostRows& given_;
    int threads_ = 1, width_ = 0, thread_ = 0;
    size_t base_ = 0;
    int64_t last_ = 0;
};

}  // namespace

HostSlices::HostSlices(const HostRows& given, int64_t num_nodes) {
    const auto length_of = [&](int64_t row) {
        return given.indptr[static_cast<size_t>(row) + 1] - given.indptr[static_cast<size_t>(row)];
    };
    word.reserve(given.indices.size() + given.indices.size() / 4);
    if (given.weight.data() != nullptr) weight.reserve(word.capacity());
    Writer writer(*this, given);
    int32_t segments = 0;  // of the long rows before
    for (int64_t row = 0; row < num_nodes; ++row) {
        if (length_of(row) <= PPR_SEGMENT) continue;
        const int64_t begin = given.indptr[static_cast<size_t>(row)], end = begin + length_of(row);
        const int32_t own = to_int32(blocks(end - begin, PPR_SEGMENT));
        for (int32_t first = 0; first < own; first += SLICE_SEGMENTS) {
            const int64_t from = begin + static_cast<int64_t>(first) * PPR_SEGMENT;
            const int longest = static_cast<int>(std::min<int64_t>(PPR_SEGMENT, end - from));
            writer.begin(first / SLICE_SEGMENTS, static_cast<int32_t>(row), SEGMENT_THREADS, longest);
            for (int64_t at = from; at < std::min<int64_t>(end, from + SLICE_SEGMENTS * PPR_SEGMENT); at += PPR_SEGMENT)
                writer.add(at, std::min<int64_t>(at + PPR_SEGMENT, end));
            writer.end_of_long();
            of_long.push_back({segments, own});
        }
        segments += own;
    }
    std::vector<int32_t> sorted;
    for (int64_t base = 0; base < num_nodes; base += SLICE_WINDOW) {
        const int64_t last = std::min<int64_t>(num_nodes, base + SLICE_WINDOW);
        std::array<int32_t, PPR_SEGMENT + 2> place{};  // of rows of each length, the longest first
        for (int64_t row = base; row < last; ++row)
            if (length_of(row) <= PPR_SEGMENT) ++place[static_cast<size_t>(PPR_SEGMENT - length_of(row) + 1)];
        for (size_t i = 1; i < place.size(); ++i) place[i] += place[i - 1];
        sorted.resize(static_cast<size_t>(place.back()));
        for (int64_t row = base; row < last; ++row)
            if (length_of(row) <= PPR_SEGMENT)
                sorted[static_cast<size_t>(place[static_cast<size_t>(PPR_SEGMENT - length_of(row))]++)] =
                    static_cast<int32_t>(row);
        for (size_t at = 0; at < sorted.size();) {
            const int longest = static_cast<int>(length_of(sorted[at])), threads = threads_of(longest);
            writer.begin(to_int32(static_cast<int64_t>(rows.size())), static_cast<int32_t>(base), threads, longest);
            for (int i = 0; i < SLICE_THREADS / threads; ++i) {
                const bool is_row = at < sorted.size() && threads_of(length_of(sorted[at])) == threads;
                if (!is_row) {
                    rows.push_back(NO_ROW);
                    continue;
                }
                const int64_t row = sorted[at++], begin = given.indptr[static_cast<size_t>(row)];
                rows.push_back(static_cast<uint32_t>(row - base) | static_cast<uint32_t>(length_of(row)) << 16);
                writer.add(begin, begin + length_of(row));
            }
        }
    }
    to_int32(static_cast<int64_t>(slices.size()));
}

size_t HostSlices::bytes() const {
    return slices.size() * sizeof(Slice) + of_long.size() * sizeof(SliceOfLong) + rows.size() * sizeof(uint32_t) +
           word.size() * sizeof(int32_t) + weight.size() * sizeof(float);
}

SliceTable DeviceSlices::table() const {
    return {.slices = slices,
            .of_long = of_long,
            .rows = rows,
            .entries = stored.entries(),
            .num_slices = static_cast<int32_t>(slices.size()),
            .num_long = static_cast<int32_t>(of_long.size())};
}

DeviceSlices upload_slices(Queue& queue, const HostSlices& given, const EntryArrays& rows) {
    DeviceSlices made;
    made.slices = queue.upload(given.slices), made.of_long = queue.upload(given.of_long);
    made.rows = queue.upload(given.rows);
    made.stored = {queue.upload(given.word), {}, rows.code_shift};
    if (rows.code_shift != 0) made.stored.weight = rows.weight;
    else if (!given.weight.empty()) made.stored.weight = queue.upload(given.weight);
    return made;
}

}  // namespace hopfuse::device
