// Where ppr_f32.cpp hands a block of queries to the solver of its width. Included once per instruction set.
#pragma once

#include "ppr_answers.h"
#include "ppr_settle.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// Solves `count` queries in a block of L lanes; advances stage[b] of those that need another attempt. Compiled in ppr_lanes_*.cpp.
template <int L>
Status solve_block(const PprGraph& graph, const PprQueries& queries, const Outputs& out, Workspace& work,
                   const int64_t* query, int count, Stage* stage);

}  // namespace hopfuse::HOPFUSE_ISA_NS
