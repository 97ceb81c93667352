// Walks on a graph that test_cpp_package.py writes, through the installed headers: scores and lists to OUT, as bytes. Then
// what CsrGraph must refuse.
//
//   csr_graph IN OUT
#include <hopfuse/cpu/csr_graph.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <utility>
#include <vector>

namespace {

using namespace hopfuse;

void expect(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "csr_graph: %s\n", what);
    std::exit(1);
}

// An array: the number of its elements, then these.
template <class T>
std::vector<T> read(std::istream& in) {
    int64_t size = 0;
    in.read(reinterpret_cast<char*>(&size), sizeof size);
    std::vector<T> values(size_t{in ? uint64_t(size) : 0});
    in.read(reinterpret_cast<char*>(values.data()), std::streamsize(values.size() * sizeof(T)));
    expect(bool(in), "the input ends too early");
    return values;
}

template <class T>
void write(std::ostream& out, const std::vector<T>& values) {
    out.write(reinterpret_cast<const char*>(values.data()), std::streamsize(values.size() * sizeof(T)));
}

struct Evidence {
    std::vector<int64_t> iterations;
    std::vector<double> residual, bound;
    std::vector<uint8_t> converged;

    explicit Evidence(size_t batch) : iterations(batch), residual(batch), bound(batch), converged(batch) {}
    operator PprEvidence() { return {iterations.data(), residual.data(), bound.data(), converged.data()}; }
};

void refuse(const CsrRows& rows, const PprQueries& queries, const CsrGraph& graph) {
    const auto refuses = [](CsrRows wrong) { return CsrGraph().open(wrong) == Status::bad_argument; };
    const int64_t few[] = {0, 1}, falls[] = {0, 2, 1};
    const int32_t beyond[] = {1, 0}, twice[] = {0, 0}, ones[] = {1, 1};
    const float none[] = {0.0f, 1.0f}, most = std::numeric_limits<float>::max(), large[] = {most};
    const int64_t two[] = {0, 1, 2}, both[] = {0, 2, 2};
    expect(refuses({1, few, beyond, nullptr, true}), "a source outside the graph");
    expect(refuses({2, falls, beyond, nullptr, true}), "rows that fall");
    expect(refuses({2, both, twice, nullptr, true}), "a source twice in a row");
    expect(refuses({2, two, ones, none, true}), "a weight of 0");
    expect(refuses({2, two, ones, nullptr, false}), "a directed edge in an undirected graph");
    expect(refuses({1, few, twice, large, true}), "a weight beyond half of float32");

    Evidence evidence(size_t(queries.batch));
    std::vector<float> scores(size_t(queries.batch * rows.num_nodes));
    const auto answer = [&](const CsrGraph& on, PprQueries wrong) { return on.ppr(wrong, scores.data(), evidence); };
    expect(answer(CsrGraph(), queries) == Status::bad_argument, "a graph that is not open");
    PprQueries wrong = queries;
    const std::vector<double> damping(size_t(queries.batch), 1.0);
    wrong.damping = damping.data();
    expect(answer(graph, wrong) == Status::bad_argument, "damping of 1");
    wrong = queries, wrong.eta = damping.data();
    expect(answer(graph, wrong) == Status::bad_argument, "weights of edge types");
    const std::vector<int32_t> outside(size_t(queries.restart_indptr[queries.batch]), int32_t(rows.num_nodes));
    const std::vector<int32_t> same(outside.size(), 0);
    wrong = queries, wrong.restart_node = outside.data();
    expect(answer(graph, wrong) == Status::bad_argument, "a restart outside the graph");
    wrong.restart_node = same.data();
    expect(answer(graph, wrong) == Status::bad_argument, "a node twice in a restart");
    std::vector<uint8_t> allow(size_t(rows.num_nodes), 1);
    allow[size_t(queries.restart_node[0])] = 0;
    wrong = queries, wrong.allow = allow.data(), wrong.allow_shared = true;
    expect(answer(graph, wrong) == Status::bad_argument, "a seed that allow excludes");
    wrong = queries, wrong.max_iter = -1;
    expect(answer(graph, wrong) == Status::bad_argument, "a negative pass limit");
    const std::vector<double> almost(size_t(queries.batch), 1.0 - 1e-9);
    wrong = queries, wrong.damping = almost.data();
    expect(answer(graph, wrong) == Status::bad_argument, "damping that rounds to 1");
    wrong = queries, wrong.tol = 0.0;
    expect(answer(graph, wrong) == Status::bad_argument, "a tolerance of 0");
    PprTopk top{};
    top.k = top.width = rows.num_nodes + 1;
    expect(graph.ppr_topk(queries, top, evidence) == Status::bad_argument, "a k beyond the nodes");
    top.k = top.width = 1, top.candidates = same.data(), top.num_candidates = 2;
    expect(graph.ppr_topk(queries, top, evidence) == Status::bad_argument, "a candidate twice");
}

}  // namespace

int main(int argc, char** argv) {
    expect(argc == 3, "usage: csr_graph IN OUT");
    std::ifstream in(argv[1], std::ios::binary);
    const auto directed = read<int64_t>(in), indptr = read<int64_t>(in);
    const auto indices = read<int32_t>(in);
    const auto weight = read<float>(in);
    const auto restart_indptr = read<int64_t>(in);
    const auto restart_node = read<int32_t>(in);
    const auto restart_value = read<double>(in), damping = read<double>(in);
    const auto allow = read<uint8_t>(in);
    const auto candidates = read<int32_t>(in);
    const auto k = read<int64_t>(in);

    const CsrRows rows{int64_t(indptr.size()) - 1, indptr.data(), indices.data(),
                       weight.empty() ? nullptr : weight.data(), directed.at(0) != 0};
    CsrGraph graph;
    expect(graph.open(rows) == Status::ok, "the graph is refused");
    PprQueries queries{};
    queries.batch = int64_t(damping.size());
    queries.restart_indptr = restart_indptr.data(), queries.restart_node = restart_node.data();
    queries.restart_value = restart_value.data(), queries.damping = damping.data();
    queries.allow = allow.empty() ? nullptr : allow.data();
    queries.allow_shared = allow.size() == size_t(rows.num_nodes);
    queries.tol = 1e-6, queries.execution = {3};

    const size_t batch = damping.size();
    std::ofstream out(argv[2], std::ios::binary);
    Evidence evidence(batch);
    std::vector<float> scores(batch * size_t(rows.num_nodes));
    expect(graph.ppr(queries, scores.data(), evidence) == Status::ok, "ppr fails");
    write(out, scores), write(out, evidence.bound);

    PprTopk top{};
    top.k = top.width = k.at(0), top.candidates = candidates.data(), top.num_candidates = int64_t(candidates.size());
    top.stop_when_proven = top.prove_order = true;
    std::vector<int64_t> ids(batch * size_t(top.k)), counts(batch);
    std::vector<float> best(ids.size()), bounds(ids.size());
    std::vector<uint8_t> proven(batch);
    top.ids = ids.data(), top.scores = best.data(), top.counts = counts.data(), top.score_bounds = bounds.data();
    top.proven = proven.data();
    CsrGraph moved = std::move(graph);
    expect(moved.ppr_topk(queries, top, evidence) == Status::ok, "ppr_topk fails");
    write(out, ids), write(out, best), write(out, counts);
    refuse(rows, queries, moved);
    return 0;
}
