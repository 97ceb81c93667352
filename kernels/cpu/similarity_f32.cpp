// similarity_f32 for one instruction set: cosines in register blocks, their spread, weights. Contract: hopfuse/similarity.h.
#include "hopfuse/similarity.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <type_traits>

#include "dense_panels.h"
#include "dense_search.h"
#include "kernels.h"
#include "threads.h"
#include "workspace.h"

namespace hopfuse::HOPFUSE_ISA_NS {

namespace {

constexpr int64_t PART = 1 << 13;           // passages of a query that a thread sums or weights together
constexpr int64_t ROW_BYTES = 192 << 10;    // bytes of rows that are packed together
constexpr int64_t PACKED_PANELS = 16;       // at most
constexpr int64_t AHEAD_ROWS = BLOCK_ROWS;  // distance of prefetches

enum SimilaritySlot {
    slot_queries,
    slot_norms,
    slot_ids,
    slot_wanted,
    slot_rooms,
    slot_largest,
    slot_sums,
    slot_scales
};

// A thread's buffers for the pass over the rows: some rows as float32, and the sums of a block.
struct CosineRoom {
    float* packed;   // (panels, BLOCK_ROWS, steps, 16)
    float* squares;  // (panels, BLOCK_ROWS, 16), and padding for reads past the end
    float* norms;    // (panels, BLOCK_ROWS)
    float* sums;     // (BLOCK_ROWS, BLOCK_QUERIES, 16), and the same padding
    float* largest;  // (B,)
};

// Writes the canonical cosines of listed rows with all queries to the output.
template <class Row>
class CosinePass {
public:
    CosinePass(const SimilarityArgs& args, const QueryPanels& queries, const RowList& rows, float* out)
        : args_(args), queries_(queries), rows_(rows), out_(out), panels_(panels_at_once(queries.steps)) {}

    static int64_t panels_at_once(int32_t steps) {
        const int64_t fit = ROW_BYTES / (int64_t{BLOCK_ROWS} * steps * 64);
        return std::clamp(fit, int64_t{1}, PACKED_PANELS);
    }

    int64_t parts() const { return (rows_.count + panels_ * BLOCK_ROWS - 1) / (panels_ * BLOCK_ROWS); }

    void run(int64_t part, const CosineRoom& room) const {
        const int64_t begin = part * panels_ * BLOCK_ROWS, end = std::min(begin + panels_ * BLOCK_ROWS, rows_.count);
        const int64_t panels = (end - begin + BLOCK_ROWS - 1) / BLOCK_ROWS;
        const float* rows[PACKED_PANELS * BLOCK_ROWS];
        for (int64_t panel = 0; panel < panels; ++panel) read_panel(begin, end, panel, room, rows + panel * BLOCK_ROWS);
        for (int64_t group = 0; group < queries_.groups(); ++group)
            for (int64_t panel = 0; panel < panels; ++panel) {
                block_sums<BLOCK_QUERIES>(queries_.size(group), rows + panel * BLOCK_ROWS, queries_.piece(group, 0),
                                          queries_.steps, true, room.sums);
                write(group, begin, end, panel, room);
            }
    }

private:
    // Whether blocks read rows in place: float32 rows that need no padding.
    bool is_read_in_place() const { return std::is_same_v<Row, Float32Row> && args_.vectors.dim % 16 == 0; }

    // Computes the norms of a panel's rows and the pointers that blocks read. The last row is repeated to fill the panel.
    void read_panel(int64_t begin, int64_t end, int64_t panel, const CosineRoom& room, const float** rows) const {
        const int64_t first = begin + panel * BLOCK_ROWS;
        const int64_t ahead = rows_.at(std::min(first + AHEAD_ROWS, end - 1)) - rows_.at(std::min(first, end - 1));
        for (int r = 0; r < BLOCK_ROWS; ++r) {
            const typename Row::Element* x = row_of<Row>(args_.vectors, rows_.at(std::min(first + r, end - 1)));
            float* packed = is_read_in_place() ? nullptr : room.packed + (panel * BLOCK_ROWS + r) * queries_.steps * 16;
            read_steps<Row>(x, args_.vectors.dim, 0, queries_.steps, 16, row_bytes<Row>(args_.vectors) * ahead, packed,
                            room.squares + r * 16);
            rows[r] = packed == nullptr ? reinterpret_cast<const float*>(x) : packed;
        }
        float norms[4];
        F<4>::store(norms, add_trees(room.squares));
        for (int r = 0; r < BLOCK_ROWS; ++r) room.norms[panel * BLOCK_ROWS + r] = std::sqrt(norms[r]);
    }

    void write(int64_t group, int64_t begin, int64_t end, int64_t panel, const CosineRoom& room) const {
        const int size = queries_.size(group);
        const int64_t first = queries_.first(group), row = begin + panel * BLOCK_ROWS, n = args_.vectors.count;
        float cosines[BLOCK_QUERIES] = {};
        for (int r = 0; r < BLOCK_ROWS && row + r < end; ++r) {
            const float* sums = room.sums + r * size * 16;
            const float norm = room.norms[panel * BLOCK_ROWS + r];
            const int64_t id = rows_.at(row + r);
            for (int j = 0; j < size; j += 4) F<4>::store(cosines + j, add_trees(sums + j * 16));
            for (int j = 0; j < size; ++j) {
                const int64_t b = first + j;
                if (!is_allowed(b, id)) continue;
                const float cosine = cosines[j] / (queries_.norms[b] * norm);
                out_[b * n + id] = cosine;
                room.largest[b] = cosine > room.largest[b] ? cosine : room.largest[b];
            }
        }
    }

    // A mask that all queries share has already selected the rows.
    bool is_allowed(int64_t b, int64_t id) const {
        return args_.allow_mask == nullptr || args_.allow_shared || args_.allow_mask[b * args_.vectors.count + id] != 0;
    }

    const SimilarityArgs& args_;
    const QueryPanels& queries_;
    const RowList& rows_;
    float* out_;
    const int64_t panels_;
};

SimilaritySums sum_gaps(const float* cosines, int64_t count, float largest) {
    SimilaritySums sums{0, 0, 0, 0};
    for (int64_t i = 0; i < count; ++i) {
        const bool is_there = is_similarity(cosines[i]);
        const uint64_t grains = is_there ? similarity_grains(largest - cosines[i]) : 0, square = grains * grains;
        sums.count += is_there ? 1 : 0, sums.gaps += grains;
        sums.low += square & 0xffffffffu, sums.high += square >> 32;
    }
    return sums;
}

// The same bits as hf_exp for SIMILARITY_LEAST_EXPONENT <= x <= 0, without the parts that compilers do not vectorise: its
// range checks, floor, and 2^n in two factors, which only subnormal results need.
HF_INLINE float exp_of_exponent(float x) {
    const float t = fmaf(x, 1.44269502f, 0.5f);
    const int32_t toward_0 = static_cast<int32_t>(t);
    const int32_t whole = toward_0 - (static_cast<float>(toward_0) > t ? 1 : 0);
    const float n = static_cast<float>(whole);
    const float r = fmaf(-n, -2.12194440e-4f, fmaf(-n, 0.693359375f, x));
    float p = 1.0f / 5040.0f;
    p = fmaf(p, r, 1.0f / 720.0f);
    p = fmaf(p, r, 1.0f / 120.0f);
    p = fmaf(p, r, 1.0f / 24.0f);
    p = fmaf(p, r, 1.0f / 6.0f);
    p = fmaf(p, r, 0.5f);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    return p * bits_to_float(static_cast<uint32_t>(whole + 127) << 23);
}

// Like similarity_weight, for a part's cosines.
void weigh(float* cosines, int64_t count, float largest, float scale, float floor) {
    for (int64_t i = 0; i < count; ++i) {
        const float cosine = cosines[i], exponent = -(largest - cosine) / scale;
        const float weight =
            exp_of_exponent(exponent > SIMILARITY_LEAST_EXPONENT ? exponent : SIMILARITY_LEAST_EXPONENT);
        const float bounded = weight > floor ? weight : floor;
        cosines[i] = is_similarity(cosine) ? bounded : 0.0f;
    }
}

class PassageWeights {
public:
    PassageWeights(const SimilarityArgs& args, float* out)
        : args_(args), out_(out), n_(args.vectors.count), parts_((n_ + PART - 1) / PART) {
        if (!lease_) throw std::bad_alloc();
    }

    template <class Row>
    void run() {
        const RowList rows = mark_allowed();
        measure<Row>(rows);
        find_scales();
        for_parts([&](int64_t b, int64_t begin, int64_t count, int64_t) {
            weigh(out_ + b * n_ + begin, count, largest_[b], scales_[b], args_.floor);
        });
    }

private:
    template <class T>
    T* take(int slot, int64_t count) {
        T* memory = lease_->template reserve<T>(slot, size_t(count));
        if (memory == nullptr && count > 0) throw std::bad_alloc();
        return memory;
    }

    // Calls body(query, first passage, passages, part) for all queries and parts.
    template <class Body>
    void for_parts(const Body& body) const {
        parallel_for(args_.batch * parts_, 1, args_.execution, [&](int64_t i, int) {
            const int64_t b = i / parts_, begin = i % parts_ * PART;
            body(b, begin, std::min(PART, n_ - begin), i);
        });
    }

    // The rows that some query allows. With a filter, all cosines are set to absent before they are computed.
    RowList mark_allowed() {
        if (args_.allow_mask == nullptr) return {nullptr, n_};
        for_parts([&](int64_t b, int64_t begin, int64_t count, int64_t) {
            std::fill_n(out_ + b * n_ + begin, count, SIMILARITY_ABSENT);
        });
        int64_t* ids = take<int64_t>(slot_ids, n_);
        uint8_t* wanted = take<uint8_t>(slot_wanted, n_);
        std::copy_n(args_.allow_mask, n_, wanted);
        for (int64_t b = 1; b < args_.batch && !args_.allow_shared; ++b) {
            check_stop(args_.execution);
            for (int64_t row = 0; row < n_; ++row) wanted[row] |= args_.allow_mask[b * n_ + row];
        }
        RowList rows{ids, 0};
        for (int64_t row = 0; row < n_; ++row)
            if (wanted[row] != 0) ids[rows.count++] = row;
        return rows;
    }

    template <class Row>
    void measure(const RowList& rows) {
        const int64_t batch = args_.batch, threads = args_.execution.threads;
        const int32_t steps = step_count(args_.vectors.dim);
        const QueryPanels queries{nullptr, batch, steps, take<float>(slot_queries, batch * steps * 16),
                                  take<float>(slot_norms, batch)};
        parallel_for(queries.groups(), 1, args_.execution,
                     [&](int64_t group, int) { queries.pack(args_.queries, args_.vectors.dim, group); });
        const int64_t held = CosinePass<Row>::panels_at_once(steps) * BLOCK_ROWS;
        const int64_t squares = (BLOCK_ROWS + 1) * 16, sums = (BLOCK_ROWS * BLOCK_QUERIES + 3) * 16;
        const int64_t norms = (held + 15) / 16 * 16, floats = held * steps * 16 + squares + sums + norms;
        float* room = take<float>(slot_rooms, floats * threads);
        largest_ = take<float>(slot_largest, batch * threads);
        for (int64_t thread = 0; thread < threads; ++thread)
            std::fill_n(room + thread * floats + held * steps * 16, floats - held * steps * 16, 0.0f);
        std::fill_n(largest_, batch * threads, SIMILARITY_ABSENT);
        const CosinePass<Row> pass(args_, queries, rows, out_);
        parallel_for(pass.parts(), 1, args_.execution, [&](int64_t part, int thread) {
            float* mine = room + thread * floats;
            float* after = mine + held * steps * 16;
            pass.run(part, {mine, after, after + squares, after + squares + norms, largest_ + thread * batch});
        });
        for (int64_t i = batch; i < batch * threads; ++i)
            largest_[i % batch] = std::max(largest_[i % batch], largest_[i]);
    }

    void find_scales() {
        SimilaritySums* sums = take<SimilaritySums>(slot_sums, args_.batch * parts_);
        scales_ = take<float>(slot_scales, args_.batch);
        for_parts([&](int64_t b, int64_t begin, int64_t count, int64_t i) {
            sums[i] = sum_gaps(out_ + b * n_ + begin, count, largest_[b]);
        });
        for (int64_t b = 0; b < args_.batch; ++b) {
            SimilaritySums total{0, 0, 0, 0};
            for (int64_t part = 0; part < parts_; ++part) total.add(sums[b * parts_ + part]);
            scales_[b] = total.count > 0 ? similarity_scale(total, args_.tau) : 1.0f;
        }
    }

    const SimilarityArgs& args_;
    float* out_;
    const int64_t n_, parts_;
    WorkspaceLease lease_;
    float* largest_ = nullptr;  // (B,), and the same for each further thread
    float* scales_ = nullptr;   // (B,)
};

}  // namespace

Status similarity_f32(const SimilarityArgs& args, float* out) {
    if (args.execution.threads < 1 || !(args.tau > 0.0) || !(args.floor > 0.0f)) return Status::bad_argument;
    if (args.batch == 0 || args.vectors.count == 0) return Status::ok;
    return status_of([&] {
        constexpr int64_t grain = 1 << 20;  // in multiplications
        SimilarityArgs limited = args;
        limited.execution.threads =
            threads_worth(args.batch * args.vectors.count * args.vectors.dim, grain, args.execution.threads);
        PassageWeights weights(limited, out);
        switch (args.vectors.type) {
            case DenseType::float32: return weights.run<Float32Row>(), Status::ok;
            case DenseType::float16: return weights.run<Float16Row>(), Status::ok;
            case DenseType::bfloat16: return weights.run<BFloat16Row>(), Status::ok;
        }
        return Status::bad_argument;
    });
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
