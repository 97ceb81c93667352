// Linked before the kernels: static shared memory begins here, on its own page.
namespace simt {
alignas(4096) __attribute__((section(".simt_shared"))) char shared_begin[4096];
}
