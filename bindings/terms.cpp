#include "../kernels/cpu/terms.h"

#include "common.h"

namespace {

// Summing so many entries takes as long as to let another thread of Python run in between.
constexpr size_t FEW_ENTRIES = 1 << 15;

int64_t sum_terms(In<int64_t> indptr, In<int32_t> passages, In<float> scores, int64_t num_passages, In<int64_t> terms,
                  Out<int32_t> out_passages, Out<float> out_sums) {
    const hopfuse::TermColumns columns{num_passages, indptr.data(), passages.data(), scores.data()};
    int64_t count = 0;
    hopfuse::Execution execution{1};
    Call(execution, out_passages.size() <= FEW_ENTRIES).run([&](const CpuKernels&) {
        return hopfuse::sum_terms(columns, terms.data(), static_cast<int64_t>(terms.shape(0)), out_passages.data(),
                                  out_sums.data(), count);
    });
    return count;
}

}  // namespace

const Binding terms_binding("terms", [](Module& m) {
    m.def("sum_terms", &sum_terms, nb::kw_only(), nb::arg("indptr"), nb::arg("passages"), nb::arg("scores"),
          nb::arg("num_passages"), nb::arg("terms"), nb::arg("out_passages"), nb::arg("out_sums"),
          "Sum the columns of terms; the number of passages with a sum above 0.");
});
