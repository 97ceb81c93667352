// Inclusive sums within each warp, and the place of each kept value among the warp's kept ones.

extern "C" __global__ void warp_scan_i64(const long long* __restrict__ x, long long* sums, int* place) {
    const unsigned all = 0xffffffffu;
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const unsigned lane = threadIdx.x % 32;
    long long sum = x[i];
    for (unsigned step = 1; step < 32; step *= 2) {
        const long long before = __shfl_up_sync(all, sum, step);
        if (lane >= step) sum += before;
    }
    sums[i] = sum;
    const unsigned kept = __ballot_sync(all, x[i] > 0);
    place[i] = x[i] > 0 ? __popc(kept & ((1u << lane) - 1u)) : -1;
}
