// OpenMP, or one thread where the compiler has none.
#pragma once

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace hopfuse {

[[maybe_unused]] static inline int thread_index() {
#if defined(_OPENMP)
    return omp_get_thread_num();
#else
    return 0;
#endif
}

}  // namespace hopfuse
