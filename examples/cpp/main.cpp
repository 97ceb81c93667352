// Personalized PageRank and exact dense search on plain arrays: the example of docs/operations.md, without Python.
#include <hopfuse/cpu/csr_graph.h>
#include <hopfuse/cpu/kernels.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace hopfuse;

void check(Status status) {
    if (status == Status::ok) return;
    std::fprintf(stderr, "hopfuse: status %d\n", static_cast<int>(status));  // hopfuse/status.h says what each means
    std::exit(1);
}

int main() {
    const Execution two_threads{2};

    // Passages are nodes 0 to 2, entities 3 to 5. The row of a node has its neighbours, in ascending order.
    const std::vector<int64_t> indptr{0, 2, 4, 6, 8, 10, 12};
    const std::vector<int32_t> neighbours{3, 4, 4, 5, 3, 5, 0, 2, 0, 1, 1, 2};
    CsrGraph graph;
    check(graph.open({6, indptr.data(), neighbours.data(), nullptr, false}));

    // Question 0 names entity 3, question 1 names 4 and 5.
    const std::vector<int64_t> restart_indptr{0, 1, 3};
    const std::vector<int32_t> restart_node{3, 4, 5};
    const std::vector<double> restart_value{1.0, 0.5, 0.5}, damping{0.5, 0.5};
    PprQueries walks{};
    walks.batch = 2;
    walks.restart_indptr = restart_indptr.data(), walks.restart_node = restart_node.data();
    walks.restart_value = restart_value.data(), walks.damping = damping.data();
    walks.tol = 1e-6, walks.execution = two_threads;
    std::vector<float> scores(2 * 6);
    std::vector<int64_t> passes(2);
    std::vector<double> residual(2), bound(2);
    std::vector<uint8_t> converged(2);
    check(graph.ppr(walks, scores.data(), {passes.data(), residual.data(), bound.data(), converged.data()}));
    for (size_t b = 0; b < 2; ++b) {
        std::printf("ppr %zu:", b);
        for (size_t node = 0; node < 6; ++node) std::printf(" %.9g", scores[6 * b + node]);
        std::printf("  error at most %.2g\n", bound[b]);
    }

    // The vectors of the passages and of the questions.
    const std::vector<float> passages{1, 0, 0, 0, 1, 0, 0, 0, 1}, questions{0.9f, 0.1f, 0.0f, 0.0f, 0.2f, 0.8f};
    const DenseCorpus corpus{{3, 3, DenseType::float32, false, passages.data()}, {}};
    const DenseQueries searches{2, questions.data(), 3, nullptr, nullptr, nullptr, true, two_threads};
    std::vector<int64_t> ids(2 * 3), counts(2), rescored(2);
    std::vector<float> best(2 * 3);
    check(best_variant().dense_topk(corpus, searches,
                                    {ids.data(), best.data(), counts.data(), rescored.data(), nullptr}));
    for (size_t b = 0; b < 2; ++b) {
        std::printf("dense_topk %zu:", b);
        for (size_t i = 3 * b; i < 3 * b + size_t(counts[b]); ++i)
            std::printf(" %lld:%.9g", (long long)ids[i], best[i]);
        std::printf("\n");
    }
    return 0;
}
