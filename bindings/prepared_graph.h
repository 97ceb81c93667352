// A prepared graph beside the arrays that it reads.
#pragma once

#include "../kernels/cpu/prepared_graph.h"
#include "common.h"

struct Prepared {
    In<int64_t> indptr;
    In<int32_t> indices;
    std::optional<In<float>> weight;
    std::optional<In<uint8_t>> edge_type;
    In<double> degree;
    In<int32_t> node_of, row_of;
    hopfuse::PreparedGraph graph;
};

// Runs a call that makes tables of a prepared graph, without the GIL.
template <class Make>
void make_tables(int32_t threads, const Make& make) {
    hopfuse::Execution execution{threads};
    Call(execution).run([&](const CpuKernels&) { return make(execution); });
}
