// Local walks of one graph, without Python: push_lists IN OUT. Both files are arrays of 8-byte numbers, one after another; the
// tests plant bugs in the kernel that this is built with (test_push_mutants.py).
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "kernels.h"

using namespace hopfuse;

namespace {

std::vector<int64_t> words;
size_t at = 0;

int64_t whole() { return words[at++]; }

double real() {
    double value;
    std::memcpy(&value, &words[at++], sizeof value);
    return value;
}

template <class T>
std::vector<T> wholes(int64_t count) {
    std::vector<T> made;
    for (int64_t i = 0; i < count; ++i) made.push_back(static_cast<T>(whole()));
    return made;
}

template <class T>
std::vector<T> reals(int64_t count) {
    std::vector<T> made;
    for (int64_t i = 0; i < count; ++i) made.push_back(static_cast<T>(real()));
    return made;
}

}  // namespace

int main(int, char** arguments) {
    std::FILE* in = std::fopen(arguments[1], "rb");
    for (int64_t word; std::fread(&word, sizeof word, 1, in) == 1;) words.push_back(word);
    std::fclose(in);
    const int64_t nodes = whole(), stored = whole(), batch = whole(), seeds = whole(), k = whole(), order = whole();
    const auto indptr = wholes<int64_t>(nodes + 1);
    const auto indices = wholes<int32_t>(stored);
    const auto weight = reals<float>(stored);
    const auto degree = reals<double>(nodes);
    const auto restart_indptr = wholes<int64_t>(batch + 1);
    const auto restart_node = wholes<int32_t>(seeds);
    const auto restart_value = reals<double>(seeds);
    const auto bits = wholes<uint64_t>(nodes / 64 + 1);
    const int64_t candidates = whole();
    const auto largest = reals<double>(1);
    const auto guide = reals<float>(batch * nodes);
    const std::vector<float> others(size_t(batch), 1.0f);
    std::vector<int32_t> own(static_cast<size_t>(nodes));
    for (int64_t v = 0; v < nodes; ++v) own[size_t(v)] = static_cast<int32_t>(v);
    PprGraph graph{};
    graph.num_nodes = nodes, graph.num_stored = stored, graph.num_types = 1;
    graph.indptr = indptr.data(), graph.indices = indices.data(), graph.weight = weight.data();
    graph.degree = degree.data(), graph.node_of = own.data();
    const std::vector<double> damping(size_t(batch), 0.5);
    PprQueries queries{};
    queries.batch = batch, queries.tol = 1e-6, queries.execution = {1};
    queries.restart_indptr = restart_indptr.data(), queries.restart_node = restart_node.data();
    queries.restart_value = restart_value.data(), queries.damping = damping.data();
    queries.node_weight = guide.data(), queries.weighted_node = own.data(), queries.num_weighted = nodes;
    queries.other_weight = others.data();
    const size_t cells = size_t(batch * k), rows = size_t(batch);
    std::vector<int64_t> ids(cells), counts(rows), iterations(rows), rounds(rows), pushed(rows), entries(rows);
    std::vector<float> scores(cells), score_bounds(cells);
    std::vector<uint8_t> proven(rows), converged(rows);
    std::vector<double> residual(rows), bound(rows);
    PprTopk top{};
    top.k = top.width = k, top.prove_order = order != 0;
    top.ids = ids.data(), top.scores = scores.data(), top.counts = counts.data();
    top.score_bounds = score_bounds.data(), top.proven = proven.data();
    const std::vector<int64_t> budget(rows, 1 << 15);
    const PprPush push{{candidates, bits.data(), largest.data()}, budget.data(), false};
    const Status status = HOPFUSE_ISA_NS::ppr_push_f64(
        graph, queries, push, top, {iterations.data(), residual.data(), bound.data(), converged.data()},
        {rounds.data(), pushed.data(), entries.data()});
    if (status != Status::ok) return 1;
    std::FILE* out = std::fopen(arguments[2], "wb");
    for (int64_t b = 0; b < batch; ++b) {
        for (int64_t i = 0; i < k; ++i) {
            const double score = scores[size_t(b * k + i)];
            std::fwrite(&ids[size_t(b * k + i)], 8, 1, out);
            std::fwrite(&score, 8, 1, out);
        }
        const int64_t is_proven = proven[size_t(b)];
        std::fwrite(&is_proven, 8, 1, out);
        std::fwrite(&rounds[size_t(b)], 8, 1, out);
        std::fwrite(&pushed[size_t(b)], 8, 1, out);
        std::fwrite(&entries[size_t(b)], 8, 1, out);
        std::fwrite(&bound[size_t(b)], 8, 1, out);
    }
    std::fclose(out);
    return 0;
}
