// Threads on one device at once, for ThreadSanitizer, on the driver on which nothing runs: test_device_host.py.
#include <atomic>
#include <barrier>
#include <cstdio>
#include <thread>

#include "device.h"
#include "recording.h"

using namespace hopfuse::device;

namespace {

using Work = void(float*, int64_t);
constexpr KernelOf<Work> KERNELS[] = {{{"one", "a_f32"}}, {{"one", "b_f32"}}, {{"two", "a_f32"}}, {{"two", "c_f32"}}};
constexpr int THREADS = 4, ROUNDS = 1000;

}  // namespace

int main() {
    std::atomic<int> loaded{0};
    for (int round = 0; round < 10; ++round) {
        const auto device = Device::open(counting_driver(), 0, [&](const std::string& unit) {
            ++loaded;
            return Image{unit, "nowhere"};
        });
        auto memory = recording_memory(device);
        std::barrier together(THREADS);
        std::vector<std::thread> threads;
        std::atomic<int> collected{0};
        for (int t = 0; t < THREADS; ++t)
            threads.emplace_back([&, t] {
                together.arrive_and_wait();
                for (int i = 0; i < ROUNDS / 10; ++i) {
                    const Stream stream = device->own_stream();
                    Queue queue(device, stream);
                    const std::vector<float> given(static_cast<size_t>(100 + i), static_cast<float>(t));
                    Array<float> made;
                    for (int j = 0; j < 10; ++j) {
                        made = queue.upload(given);
                        std::this_thread::yield();
                    }
                    for (const auto& kernel : KERNELS) {
                        queue.launch(kernel, Grid{8, 128, size_t{60000}}, made, i);
                        queue.resident_blocks(kernel, 128, 0);
                    }
                    static_cast<void>(queue.read(made));
                    for (int j = 0; j < 20; ++j) {
                        static_cast<void>(device->pinned(10000));
                        std::this_thread::yield();
                    }
                    static_cast<void>(device->origins());
                    device->collect_with([&] { ++collected; });
                    device->require(1000, "a test");
                    if (t == 0) device->trim();
                    if (t == 1) device->start_timing();
                    if (t == 1) static_cast<void>(device->read_times());
                    const size_t inputs[] = {400};
                    Recording recording(device, memory, inputs);  // each thread its own, in memory that they share
                    Array<float> result;
                    const auto run = [&](Queue& on) {
                        result = on.empty<float>(100);
                        on.launch(KERNELS[0], Grid{8, 128}, result, 100);
                    };
                    run(recording.begin(stream, false, false));
                    recording.end_first();
                    run(recording.begin(stream, true, true));
                    const void* const results[] = {result.data()};
                    const size_t nbytes[] = {result.nbytes()};
                    recording.end_recorded(results, nbytes);
                    static_cast<void>(recording.replay_on_host());
                }
            });
        for (std::thread& thread : threads) thread.join();
        memory.reset();
        if (device->used_bytes() != 0) return std::printf("memory is left\n"), 1;
    }
    if (loaded != 20) return std::printf("%d units were loaded\n", loaded.load()), 1;
    return 0;
}
