// Linked after the kernels: static shared memory ends here.
namespace simt {
alignas(4096) __attribute__((section(".simt_shared"))) char shared_end[4096];
}
