// dense_topk for one instruction set. Contract: hopfuse/dense_topk.h.
#include <algorithm>
#include <atomic>
#include <new>

#include "dense_rows.h"
#include "dense_scan.h"
#include "dense_search.h"
#include "kernels.h"
#include "threads.h"
#include "vec.h"
#include "workspace.h"

namespace hopfuse::HOPFUSE_ISA_NS {

namespace {

// The codes of a query: a number of vectors of `stride` elements. An odd number of cache lines keeps the vectors of several
// queries in different sets of a cache.
struct QueryLayout {
    int32_t vectors;
    int64_t stride;

    explicit QueryLayout(int32_t dim) : vectors(vectors_of_query(dim)) {
        constexpr int64_t line = 64;
        stride = (dim + QUERY_STEP - 1) / QUERY_STEP * QUERY_STEP;
        if (stride % (2 * line) == 0) stride += line;
    }
};

// Codes the queries; for cosine, q / ||q||.
void encode_queries(const Search& search, const Vec<int64_t>& chosen, const QueryLayout& layout, WorkspaceLease& lease,
                    Vec<QueryCode>& out) {
    const DenseVectors& v = search.corpus.vectors;
    const size_t size = size_t(layout.stride) * size_t(layout.vectors);
    QueryElement* const codes = lease ? lease->reserve<QueryElement>(0, size * chosen.size()) : nullptr;
    if (codes == nullptr) throw std::bad_alloc();
    out.resize(chosen.size());
    parallel_for(int64_t(chosen.size()), 8, search.queries.execution, [&](int64_t at, int) {
        const int64_t b = chosen[size_t(at)];
        const float* query = search.query(b);
        QueryElement* mine = codes + size * size_t(at);
        std::fill_n(mine, size, QueryElement{0});
        int32_t sum = 0;
        const CodeNorms norms = encode_vector(query, v.dim, levels_of(query, v.dim), [&](int32_t i, int c) {
            put_query_code(mine, layout.stride, layout.vectors, i, c);
            sum += c;
        });
        const double unit = v.cosine ? double(search.query_norm(b)) : 1.0;
        const float scale = static_cast<float>(double(norms.scale) / unit);
        out[size_t(at)] = {mine,
                           scale,
                           float_above(double(norms.norm) / unit),
                           float_above(double(norms.error) / unit),
                           inverse_of(scale),
                           128 * sum,
                           search.mask(b)};
    });
}

// Converts id lists to masks for the scan: one for all queries, or one per query.
void mask_lists(const Search& search, const Vec<int64_t>& chosen, Vec<uint8_t>& masks, Vec<QueryCode>& queries) {
    const int64_t n = search.corpus.vectors.count;
    const size_t lists = search.queries.allow_shared ? 1 : chosen.size();
    masks.assign(size_t(n) * lists, 0);
    for (size_t i = 0; i < chosen.size(); ++i) {
        uint8_t* mine = masks.data() + size_t(n) * (i < lists ? i : 0);
        queries[i].mask = mine;
        if (i >= lists) continue;
        const int64_t* ids = search.list(chosen[i]);
        for (int64_t j = 0; j < search.list_length(chosen[i]); ++j) mine[ids[j]] = 1;
    }
}

// The number of tiles that are scanned for all queries before the next ones, so that their codes stay in a core's cache.
int64_t tiles_in_block(int32_t groups) {
#if defined(HOPFUSE_ISA_AMX)
    constexpr int64_t bytes = 1 << 20;  // of 2 MiB in every processor with AMX
#else
    constexpr int64_t bytes = 384 << 10;
#endif
    constexpr int64_t most = 5 * DENSE_STEP, least = DENSE_BLOCK_STEP;
    const int64_t fit = bytes / (int64_t{groups} * DENSE_TILE * DENSE_GROUP) / least * least;
    return fit < least ? least : fit > most ? most : fit;
}

// Buffers for the codes of some tiles, one per thread.
class CodeRoom {
public:
    CodeRoom(int64_t tiles, int32_t dim, int threads) : tiles_(tiles), dim_(dim) {
        const int64_t rows = tiles * DENSE_TILE * threads;
        codes_ = lease_ ? lease_->reserve<uint8_t>(0, size_t(rows * group_count(dim) * DENSE_GROUP)) : nullptr;
        floats_ = lease_ ? lease_->reserve<float>(1, size_t(rows * 4)) : nullptr;
        if (codes_ == nullptr || floats_ == nullptr) throw std::bad_alloc();
    }

    DenseCodes operator[](int thread) const {
        const int64_t rows = tiles_ * DENSE_TILE;
        float* mine = floats_ + thread * rows * 4;
        return {codes_ + thread * rows * group_count(dim_) * DENSE_GROUP, mine, mine + rows, mine + 2 * rows,
                mine + 3 * rows};
    }

private:
    WorkspaceLease lease_;
    int64_t tiles_;
    int32_t dim_;
    uint8_t* codes_;
    float* floats_;
};

// Finds the candidates of queries per thread: (threads, batch). An array without codes is coded block by block, and each
// block is scanned while in cache; false if a row cannot be scored.
bool find_candidates(const Search& search, const Vec<int64_t>& chosen, Vec<Candidates>& candidates) {
    const DenseVectors& v = search.corpus.vectors;
    const int32_t groups = group_count(v.dim);
    const Execution& execution = search.queries.execution;
    const int64_t tiles = tile_count(v.count);
    const QueryLayout layout(v.dim);
    const int64_t batch = int64_t(chosen.size()), block = tiles_in_block(groups);
    const bool is_coded = search.corpus.codes.codes != nullptr;
    WorkspaceLease lease;
    Vec<uint8_t> masks;
    Vec<QueryCode> queries;
    encode_queries(search, chosen, layout, lease, queries);
    if (search.has_list()) mask_lists(search, chosen, masks, queries);
    const CodeRoom room(is_coded ? 0 : block, v.dim, execution.threads);
    std::atomic<bool> is_sound{true};
    parallel_for((tiles + block - 1) / block, 1, execution, [&](int64_t at, int thread) {
        const int64_t tile = at * block, end = tile + block < tiles ? tile + block : tiles;
        Candidates* mine = &candidates[size_t(thread) * size_t(batch)];
        CodedRows rows{is_coded ? codes_from(search.corpus.codes, tile, v.dim) : room[thread], tile * DENSE_TILE,
                       v.count};
        if (!is_coded && !HOPFUSE_ROWS_NS::encode_some(v, tile, end, rows.codes)) {
            is_sound = false;
            return;
        }
        if (layout.vectors < MOST_VECTORS)
            BlockScan<1>(rows, queries.data(), batch, layout.stride, groups, mine).run(end - tile);
        else BlockScan<MOST_VECTORS>(rows, queries.data(), batch, layout.stride, groups, mine).run(end - tile);
    });
    return is_sound;
}

void scan(const Search& search, const Vec<int64_t>& chosen) {
    const DenseQueries& q = search.queries;
    Vec<Candidates> candidates(size_t(q.execution.threads) * chosen.size(), Candidates(q.k));
    if (!find_candidates(search, chosen, candidates)) {
        for (const int64_t b : chosen) search.write(b, nullptr, 0, 0);
        return search.mark_unsound();
    }
    Vec<Vec<Candidate>> rows(chosen.size());
    Vec<HOPFUSE_ROWS_NS::CandidateList> lists(chosen.size());
    for (size_t i = 0; i < chosen.size(); ++i) {
        rows[i].swap(candidates[i].rows());
        for (size_t part = 1; part < size_t(q.execution.threads); ++part) {
            const Vec<Candidate>& more = candidates[part * chosen.size() + i].rows();
            rows[i].insert(rows[i].end(), more.begin(), more.end());
        }
        lists[i] = {rows[i].data(), int64_t(rows[i].size())};
    }
    HOPFUSE_ROWS_NS::rescore(search.corpus, q, search.hits, chosen.data(), int64_t(chosen.size()), lists.data());
}

// Scans queries together, as many as the masks of their lists allow, and as few as let a call be stopped soon.
void search_all(const Search& search) {
    constexpr int64_t mask_bytes = 1 << 26, candidates = 1 << 20, least = 16, largest = 2048;
    const int64_t n = search.corpus.vectors.count, batch = search.queries.batch;
    const bool has_masks = search.has_list() && !search.queries.allow_shared;
    const int64_t together = std::clamp(candidates / search.queries.k, least, largest);
    const int64_t most = !has_masks ? together : n < mask_bytes ? std::min(together, mask_bytes / n) : 1;
    Vec<int64_t> scanned, others;
    for (int64_t b = 0; b < batch; ++b) {
        if (!search.is_scanned(b)) {
            others.push_back(b);
            continue;
        }
        scanned.push_back(b);
        if (int64_t(scanned.size()) < most) continue;
        scan(search, scanned);
        scanned.clear();
    }
    if (!scanned.empty()) scan(search, scanned);
    if (others.empty()) return;
    HOPFUSE_ROWS_NS::exhaustive(search.corpus, search.queries, search.hits, others.data(), int64_t(others.size()));
}

}  // namespace

Status dense_topk(const DenseCorpus& corpus, const DenseQueries& queries, const DenseHits& hits) {
    if (queries.k < 1 || queries.execution.threads < 1 || !is_known(corpus.vectors.type)) return Status::bad_argument;
    return status_of([&] {
        constexpr int64_t grain = 1 << 20;  // products of codes
        DenseQueries limited = queries;
        const int64_t products = queries.batch * corpus.vectors.count * corpus.vectors.dim;
        limited.execution.threads = threads_worth(products, grain, queries.execution.threads);
        if (hits.is_sound != nullptr) *hits.is_sound = true;
        search_all(Search{corpus, limited, hits});
        return Status::ok;
    });
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
