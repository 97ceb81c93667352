// The arguments of project_f32.cu.
#pragma once

#include "hopfuse/project.h"
#include "topk.h"

namespace hopfuse {

constexpr int PROJECT_CHECK_THREADS = 256, PROJECT_THREADS = 128;
constexpr int PROJECT_QUERIES = 4;  // number of queries for which an entry is read once

using ProjectCheckKernel = void(const float* scores, int64_t columns, int32_t* status);
using ProjectKernel = void(ProjectRows rows, const float* scores, int64_t batch, int32_t* status, float* out);
using ProjectKeysKernel = void(ProjectRows rows, const float* scores, int64_t batch, int32_t* status, int64_t first_row,
                               int64_t count, KeyColumns out);

}  // namespace hopfuse
