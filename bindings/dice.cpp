#include "common.h"

namespace {

using hopfuse::DiceArgs;

void dice(In<int64_t> label_indptr, In<int32_t> label_units, int32_t units, In<int64_t> query_indptr,
          In<int32_t> query_units, In<int64_t> indptr, In<int32_t> candidates, int32_t threads, Out<float> scores) {
    DiceArgs args{{label_indptr.data(), label_units.data()}, units,         {query_indptr.data(), query_units.data()},
                  static_cast<int64_t>(indptr.shape(0)) - 1, indptr.data(), candidates.data(),
                  static_cast<int32_t>(candidates.shape(1)), scores.data(), {threads}};
    Call(args.execution).run([&](const CpuKernels& kernels) { return kernels.dice_f32(args); });
}

}  // namespace

void bind_dice(Module& m) {
    m.def("dice", &dice, nb::kw_only(), nb::arg("label_indptr"), nb::arg("label_units"), nb::arg("units"),
          nb::arg("query_indptr"), nb::arg("query_units"), nb::arg("indptr"), nb::arg("candidates"), nb::arg("threads"),
          nb::arg("scores"));
}
