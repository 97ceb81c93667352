// Nanoseconds of the host's own work on a driver on which nothing runs. Built and run by test_device_host.py.
#include <chrono>
#include <cstdio>
#include <numeric>

#include "device.h"
#include "recording.h"

using namespace hopfuse::device;

namespace {

struct Item {
    float* to;
    const float* from;
    int64_t n, rows;
};
using Work = void(Item, int64_t, float, const int32_t*);
constexpr KernelOf<Work> work{{"some_unit", "some_kernel_f32"}};

template <class Body>
void measure(const char* what, int times, const Body& body) {
    double best = 1e300;
    for (int round = 0; round < 7; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < times; ++i) body();
        const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
        best = std::min(best, taken.count() / times);
    }
    std::printf("%-40s %8.0f ns\n", what, best);
}

}  // namespace

int main() {
    const auto device =
        Device::open(counting_driver(), 0, [](const std::string& unit) { return Image{unit, "nowhere"}; });
    const Stream stream = device->own_stream();
    std::vector<float> small(256), large(1 << 18);
    measure("a queue", 10000, [&] { Queue queue(device, stream); });
    measure("a queue on a stream of its own", 10000, [&] { Queue queue(device, device->own_stream()); });
    Queue queue(device, stream);
    const auto numbers = queue.empty<int32_t>(100);
    const auto to = queue.empty<float>(100), from = queue.empty<float>(100);
    measure("a launch", 10000, [&] { queue.launch(work, Grid{64, 128}, Item{to, from, 100, 1}, 5, 1.0f, numbers); });
    measure("an allocation, freed", 10000, [&] { static_cast<void>(queue.empty<float>(1000)); });
    measure("three arrays in one allocation, freed", 10000,
            [&] { static_cast<void>(queue.arrays<float, int64_t, int32_t>(1000, 10, 10)); });
    measure("an upload of 1 KB", 10000, [&] { static_cast<void>(queue.upload(small)); });
    measure("an upload of 1 MB", 100, [&] { static_cast<void>(queue.upload(large)); });
    measure("a read of two arrays", 10000, [&] { static_cast<void>(queue.read(to, numbers)); });
    const auto [first, second] = queue.arrays<float, int32_t>(256, 256);
    measure("a read of one allocation", 10000, [&] {
        const void* const at[] = {first.data(), second.data()};
        const size_t nbytes[] = {first.nbytes(), second.nbytes()};
        const Owner* const owners[] = {&first.owner(), &second.owner()};
        size_t begins[2];
        static_cast<void>(queue.read_pinned(at, nbytes, begins, owners));
    });
    const size_t inputs[] = {4096, 4096};
    Recording recording(device, recording_memory(device), inputs);
    Array<float> result;
    const auto run = [&](Queue& on) {
        const auto place = on.empty<float>(256);
        result = on.empty<float>(256);
        const auto constant = on.upload(small);
        on.launch(work, Grid{64, 128}, Item{place, constant, 100, 1}, 5, 1.0f, numbers);
        on.launch(work, Grid{64, 128}, Item{result, place, 100, 1}, 5, 1.0f, numbers);
    };
    run(recording.begin(stream, false, false));
    recording.end_first();
    run(recording.begin(stream, true, true));
    const void* const results[] = {result.data()};
    const size_t nbytes[] = {result.nbytes()};
    recording.end_recorded(results, nbytes);
    measure("a replay on the host", 10000, [&] { static_cast<void>(recording.replay_on_host()); });
}
