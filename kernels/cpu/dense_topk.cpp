// dense_encode and dense_topk for one instruction set. Contract: hopfuse/dense_topk.h.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <new>

#include "dense_scan.h"
#include "kernels.h"
#include "threads.h"
#include "topk.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

namespace {

int32_t group_count(int32_t dim) { return (dim + DENSE_GROUP - 1) / DENSE_GROUP; }

int64_t tile_count(int64_t rows) {
    const int64_t tiles = (rows + DENSE_TILE - 1) / DENSE_TILE;
    return (tiles + DENSE_STEP - 1) / DENSE_STEP * DENSE_STEP;
}

template <class Row>
const typename Row::Element* row_of(const DenseVectors& v, int64_t row) {
    return static_cast<const typename Row::Element*>(v.data) + row * v.dim;
}

template <class Row>
void widen_row(const DenseVectors& v, int64_t row, float* out) {
    const typename Row::Element* x = row_of<Row>(v, row);
    for (int32_t i = 0; i < v.dim; ++i) out[i] = Row::widen(x[i]);
}

template <class Row>
void encode_tile(const DenseVectors& v, const DenseCodes& out, int64_t tile, float* wide) {
    const int32_t groups = group_count(v.dim);
    uint8_t* base = out.codes + tile * groups * DENSE_TILE * DENSE_GROUP;
    std::memset(base, 128, size_t(groups) * DENSE_TILE * DENSE_GROUP);
    for (int64_t r = 0; r < DENSE_TILE; ++r) {
        const int64_t row = tile * DENSE_TILE + r;
        out.scale[row] = out.error[row] = out.norm_code[row] = 0.0f;
        if (row >= v.count) continue;
        widen_row<Row>(v, row, wide);
        const CodeNorms norms = encode_vector(wide, v.dim, DENSE_LEVELS, [&](int32_t i, int c) {
            base[(int64_t{i / DENSE_GROUP} * DENSE_TILE + r) * DENSE_GROUP + i % DENSE_GROUP] = uint8_t(c + 128);
        });
        const typename Row::Element* x = row_of<Row>(v, row);
        out.norm[row] = std::sqrt(canonical_dot<Row, Row>(x, x, v.dim, x));
        const double unit = v.cosine ? double(out.norm[row]) : 1.0;
        const double error = double(norms.error) + canonical_rounding(v.dim, v.cosine) * double(norms.norm) +
                             (v.cosine ? canonical_underflow(v.dim) : 0.0);
        out.scale[row] = static_cast<float>(double(norms.scale) / unit);
        out.error[row] = round_up(error / unit);
        out.norm_code[row] = round_up(double(norms.norm_code) / unit);
    }
}

template <class Row>
void encode_all(const DenseVectors& v, const DenseCodes& out) {
    Vec<float> wide(size_t(v.threads) * size_t(v.dim));
    const int64_t tiles = tile_count(v.count);
    parallel_for(tiles, v.threads, [&](int64_t tile, int thread) {
        encode_tile<Row>(v, out, tile, wide.data() + size_t(thread) * size_t(v.dim));
    });
}

// ------------------------------------------------------------------------------------------------

template <class Row>
float score_row(const DenseCorpus& corpus, const float* query, float query_norm, int64_t row, int64_t soon) {
    const DenseVectors& v = corpus.vectors;
    const float dot = canonical_dot<Float32Row, Row>(query, row_of<Row>(v, row), v.dim, row_of<Row>(v, soon));
    return v.cosine ? dot / (query_norm * corpus.codes.norm[row]) : dot;
}

struct Search {
    const DenseCorpus& corpus;
    const DenseQueries& queries;
    const DenseHits& hits;

    const float* query(int64_t b) const { return queries.data + b * corpus.vectors.dim; }
    float query_norm(int64_t b) const {
        const float* q = query(b);
        return std::sqrt(canonical_dot<Float32Row, Float32Row>(q, q, corpus.vectors.dim, q));
    }
    const uint8_t* mask(int64_t b) const {
        if (queries.allow_mask == nullptr) return nullptr;
        return queries.allow_mask + (queries.allow_shared ? 0 : b * corpus.vectors.count);
    }
    bool has_list() const { return queries.allow_indptr != nullptr; }
    const int64_t* list(int64_t b) const {
        return queries.allow_ids + queries.allow_indptr[queries.allow_shared ? 0 : b];
    }
    int64_t list_length(int64_t b) const {
        const int64_t at = queries.allow_shared ? 0 : b;
        return queries.allow_indptr[at + 1] - queries.allow_indptr[at];
    }

    // Whether a query's rows are found by codes. k, the corpus and the query's own list decide.
    bool is_scanned(int64_t b) const {
        const int64_t n = corpus.vectors.count;
        return queries.k < n / 8 && corpus.codes.codes != nullptr && corpus.vectors.dim <= DENSE_CODED_DIM &&
               (!has_list() || list_length(b) >= n / DENSE_SHORT_LIST);
    }

    void write(int64_t b, const Ranked* ranked, int64_t count, int64_t rescored) const {
        const int64_t k = queries.k;
        hits.counts[b] = count, hits.rescored[b] = rescored;
        for (int64_t i = 0; i < k; ++i) {
            hits.ids[b * k + i] = i < count ? ranked[i].id : -1;
            hits.scores[b * k + i] = i < count ? ranked[i].score : -std::numeric_limits<float>::infinity();
        }
    }
};

// Canonical scores of rows (or listed ids) begin .. end into a buffer.
template <class Row>
int64_t score_range(const Search& search, int64_t b, const int64_t* ids, int64_t begin, int64_t end, TopkBuffer& best) {
    const float* q = search.query(b);
    const float norm = search.query_norm(b);
    const uint8_t* mask = search.mask(b);
    int64_t scored = 0;
    for (int64_t i = begin; i < end; ++i) {
        const int64_t row = ids == nullptr ? i : ids[i];
        if (mask != nullptr && mask[row] == 0) continue;
        const int64_t soon = ids != nullptr && i + 1 < end ? ids[i + 1] : row;  // rows in order are foreseen anyway
        best.push(score_row<Row>(search.corpus, q, norm, row, soon), row);
        ++scored;
    }
    best.shrink();
    return scored;
}

// Every allowed row is scored: small corpora, large k, short id lists. Threads share a query's rows where
// there are fewer queries than threads.
template <class Row>
void exhaustive(const Search& search, const Vec<int64_t>& chosen) {
    const DenseQueries& q = search.queries;
    const int64_t n = search.corpus.vectors.count, batch = int64_t(chosen.size());
    const int threads = q.threads;
    const int64_t room = TopkBuffer::room(q.k, n);
    Vec<Ranked> memory(size_t(room) * size_t(threads));
    const auto rows = [&](int64_t b, const int64_t** ids) {
        *ids = search.has_list() ? search.list(b) : nullptr;
        return search.has_list() ? search.list_length(b) : n;
    };
    const float least = -std::numeric_limits<float>::infinity();
    if (batch >= threads) {
        return parallel_for(batch, 1, threads, [&](int64_t i, int thread) {
            const int64_t b = chosen[size_t(i)];
            const int64_t* ids;
            const int64_t count = rows(b, &ids);
            Ranked* mine = memory.data() + room * thread;
            TopkBuffer best(mine, q.k, n, least);
            const int64_t scored = score_range<Row>(search, b, ids, 0, count, best);
            search.write(b, mine, rank_best(mine, best.size(), q.k), scored);
        });
    }
    Vec<int64_t> sizes(size_t(threads) * 2);
    for (const int64_t b : chosen) {
        const int64_t* ids;
        const int64_t count = rows(b, &ids);
        parallel_for(threads, 1, threads, [&](int64_t part, int) {
            TopkBuffer best(memory.data() + room * part, q.k, n, least);
            sizes[size_t(part) * 2 + 1] =
                score_range<Row>(search, b, ids, count * part / threads, count * (part + 1) / threads, best);
            sizes[size_t(part) * 2] = best.size();
        });
        int64_t total = 0, scored = 0;
        for (int part = 0; part < threads; ++part) {
            for (int64_t i = 0; i < sizes[size_t(part) * 2]; ++i)
                memory[size_t(total++)] = memory[size_t(room * part + i)];
            scored += sizes[size_t(part) * 2 + 1];
        }
        search.write(b, memory.data(), rank_best(memory.data(), total, q.k), scored);
    }
}

// ------------------------------------------------------------------------------------------------

// The best k of the rows that were scored canonically, and how many those were.
template <class Row>
struct Rescoring {
    const Search& search;
    const int64_t k;
    const float* query;
    const float norm;
    Vec<Ranked> best;  // a heap, the worst in front
    int64_t scored = 0;

    Rescoring(const Search& of, int64_t b) : search(of), k(of.queries.k), query(of.query(b)), norm(of.query_norm(b)) {}

    bool rules_out(const Candidate& candidate) const {
        return int64_t(best.size()) == k && candidate.upper < best.front().score;
    }

    void score(const Candidate& candidate, const Candidate& soon) {
        const Ranked hit{score_row<Row>(search.corpus, query, norm, candidate.row, soon.row), candidate.row};
        ++scored;
        if (int64_t(best.size()) == k) {
            if (!RanksBefore{}(hit, best.front())) return;
            std::pop_heap(best.begin(), best.end(), RanksBefore{});
            best.back() = hit;
        } else {
            best.push_back(hit);
        }
        std::push_heap(best.begin(), best.end(), RanksBefore{});
    }
};

// Rescores a query's candidates, most promising first, until the rest cannot enter its best k. The first k rule out most
// others before those are put in order.
template <class Row>
void rescore(const Search& search, int64_t b, Vec<Candidate>& rows) {
    Rescoring<Row> found(search, b);
    const size_t first = rows.size() < size_t(found.k) ? rows.size() : size_t(found.k);
    found.best.reserve(first);
    std::nth_element(rows.begin(), rows.begin() + std::ptrdiff_t(first), rows.end(), HigherUpper{});
    for (size_t i = 0; i < first; ++i) found.score(rows[i], rows[i + 1 < first ? i + 1 : i]);
    const auto rest = rows.begin() + std::ptrdiff_t(first);
    rows.erase(std::remove_if(rest, rows.end(), [&](const Candidate& c) { return found.rules_out(c); }), rows.end());
    std::sort(rows.begin() + std::ptrdiff_t(first), rows.end(), HigherUpper{});
    for (size_t i = first; i < rows.size() && !found.rules_out(rows[i]); ++i)
        found.score(rows[i], rows[i + 1 < rows.size() ? i + 1 : i]);
    std::sort(found.best.begin(), found.best.end(), RanksBefore{});
    search.write(b, found.best.data(), int64_t(found.best.size()), found.scored);
}

// Codes of queries; for cosine, of q / ||q||.
void encode_queries(const Search& search, const Vec<int64_t>& chosen, Vec<QueryElement>& codes, Vec<QueryCode>& out) {
    const DenseVectors& v = search.corpus.vectors;
    const size_t stride = size_t(group_count(v.dim)) * DENSE_GROUP;
    codes.assign(stride * chosen.size(), 0);
    out.resize(chosen.size());
    parallel_for(int64_t(chosen.size()), 8, search.queries.threads, [&](int64_t at, int) {
        const int64_t b = chosen[size_t(at)];
        const float* query = search.query(b);
        QueryElement* mine = codes.data() + stride * size_t(at);
        int32_t sum = 0;
        const CodeNorms norms = encode_vector(query, v.dim, query_levels(query, v.dim), [&](int32_t i, int c) {
            mine[i / DENSE_GROUP * DENSE_GROUP + place_in_group(i % DENSE_GROUP)] = QueryElement(c);
            sum += c;
        });
        const double unit = v.cosine ? double(search.query_norm(b)) : 1.0;
        out[size_t(at)] = {mine,
                           static_cast<float>(double(norms.scale) / unit),
                           round_up(double(norms.norm) / unit),
                           round_up(double(norms.error) / unit),
                           128 * sum,
                           search.mask(b)};
    });
}

// Id lists as masks of the scan: one that all share, or one for each query.
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

// Tiles that are scanned for all queries before the next: their codes stay in a core's own cache.
int64_t tiles_in_block(int32_t groups) {
    constexpr int64_t bytes = 384 << 10, most = 5 * DENSE_STEP, least = DENSE_BLOCK_STEP;
    const int64_t fit = bytes / (int64_t{groups} * DENSE_TILE * DENSE_GROUP) / least * least;
    return fit < least ? least : fit > most ? most : fit;
}

template <class Row>
void scan(const Search& search, const Vec<int64_t>& chosen) {
    const DenseQueries& q = search.queries;
    const int32_t groups = group_count(search.corpus.vectors.dim);
    const int64_t tiles = tile_count(search.corpus.vectors.count), stride = int64_t{groups} * DENSE_GROUP;
    const int64_t batch = int64_t(chosen.size());
    const int64_t block = tiles_in_block(groups);
    Vec<QueryElement> codes;
    Vec<uint8_t> masks;
    Vec<QueryCode> queries;
    encode_queries(search, chosen, codes, queries);
    if (search.has_list()) mask_lists(search, chosen, masks, queries);
    Vec<Candidates> candidates(size_t(q.threads) * size_t(batch), Candidates(q.k));
    std::atomic<bool> failed{false};
    parallel_for((tiles + block - 1) / block, 1, q.threads, [&](int64_t at, int thread) {
        try {
            const int64_t tile = at * block, end = tile + block < tiles ? tile + block : tiles;
            Candidates* mine = &candidates[size_t(thread) * size_t(batch)];
            scan_block(search.corpus, queries.data(), batch, stride, tile, end, groups, mine);
        } catch (const std::bad_alloc&) {
            failed = true;
        }
    });
    parallel_for(batch, 1, q.threads, [&](int64_t i, int) {
        try {
            Vec<Candidate>& all = candidates[size_t(i)].rows();
            for (int part = 1; part < q.threads; ++part) {
                const Vec<Candidate>& more = candidates[size_t(part) * size_t(batch) + size_t(i)].rows();
                all.insert(all.end(), more.begin(), more.end());
            }
            rescore<Row>(search, chosen[size_t(i)], all);
        } catch (const std::bad_alloc&) {
            failed = true;
        }
    });
    if (failed) throw std::bad_alloc();
}

// Scanned queries go together, as many as there is room for masks of their lists.
template <class Row>
void search_with(const Search& search) {
    constexpr int64_t mask_bytes = 1 << 26;
    const int64_t n = search.corpus.vectors.count, batch = search.queries.batch;
    const bool has_masks = search.has_list() && !search.queries.allow_shared;
    const int64_t most = !has_masks ? batch : n < mask_bytes ? mask_bytes / n : 1;
    Vec<int64_t> scanned, others;
    for (int64_t b = 0; b < batch; ++b) {
        if (!search.is_scanned(b)) {
            others.push_back(b);
            continue;
        }
        scanned.push_back(b);
        if (int64_t(scanned.size()) < most) continue;
        scan<Row>(search, scanned);
        scanned.clear();
    }
    if (!scanned.empty()) scan<Row>(search, scanned);
    if (!others.empty()) exhaustive<Row>(search, others);
}

}  // namespace

Status dense_encode(const DenseVectors& vectors, DenseCodes codes) {
    try {
        switch (vectors.type) {
            case DenseType::float32: return encode_all<Float32Row>(vectors, codes), Status::ok;
            case DenseType::float16: return encode_all<Float16Row>(vectors, codes), Status::ok;
            case DenseType::bfloat16: return encode_all<BFloat16Row>(vectors, codes), Status::ok;
        }
        return Status::bad_argument;
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory;
    }
}

Status dense_topk(const DenseCorpus& corpus, const DenseQueries& queries, const DenseHits& hits) {
    if (queries.k < 1 || queries.threads < 1) return Status::bad_argument;
    try {
        constexpr int64_t grain = 1 << 20;  // products of codes
        DenseQueries limited = queries;
        const int64_t products = queries.batch * corpus.vectors.count * corpus.vectors.dim;
        limited.threads = threads_worth(products, grain, queries.threads);
        const Search search{corpus, limited, hits};
        switch (corpus.vectors.type) {
            case DenseType::float32: return search_with<Float32Row>(search), Status::ok;
            case DenseType::float16: return search_with<Float16Row>(search), Status::ok;
            case DenseType::bfloat16: return search_with<BFloat16Row>(search), Status::ok;
        }
        return Status::bad_argument;
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory;
    }
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
