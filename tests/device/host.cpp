// Cases of the host side of a device on the emulated driver, one a process: test_device_host.py.
#include "host.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <optional>

namespace {

using Fill = void(int*, int, int);
using Add = void(int*, const int*, int, int);
using Reverse = void(int*, const int*, int);
using Fail = void(int*, int);
constexpr KernelOf<Fill> fill{{"host", "fill_i32"}};
constexpr KernelOf<Add> add{{"host", "add_i32"}};
constexpr KernelOf<Reverse> reverse{{"host", "reverse_i32"}};
constexpr KernelOf<Reverse> rotate{{"host", "rotate_i32"}};
constexpr KernelOf<Fail> fail{{"host", "fail_i32"}};
constexpr int N = 1000;
constexpr Grid GRID{8, 128};

std::shared_ptr<Device> open(int ordinal = 0) {
    return Device::open(driver(), ordinal,
                        [](const std::string& unit) { return Image{image(), "an image of " + unit}; });
}

std::vector<int> counted(int size, int first = 0) {
    std::vector<int> made(static_cast<size_t>(size));
    std::iota(made.begin(), made.end(), first);
    return made;
}

bool all(const std::vector<int>& values, int value) {
    return std::all_of(values.begin(), values.end(), [&](int one) { return one == value; });
}

// A recording of `work`, which takes the input and returns the result.
struct Recorded {
    using Work = std::function<Array<int>(Queue&, const Array<int>&)>;
    std::shared_ptr<Device> device;
    Recording recording;
    Work work;

    static constexpr size_t INPUTS[] = {N * sizeof(int)};
    Recorded(std::shared_ptr<Device> device, std::shared_ptr<RecordingMemory> memory, Work work)
        : device(device), recording(device, std::move(memory), INPUTS), work(std::move(work)) {
        put(std::vector<int>(N, 0));
    }
    void put(const std::vector<int>& values) {
        std::memcpy(recording.staged(0), values.data(), values.size() * sizeof(int));
    }
    Array<int> run(const Stream& after, bool records, bool for_host) {
        Queue& queue = recording.begin(after, records, for_host);
        try {
            const Array<int> result = work(queue, recording.input(0).as<int>());
            const void* const results[] = {result.data()};
            const size_t nbytes[] = {result.nbytes()};
            if (records) recording.end_recorded(results, nbytes);
            else recording.end_first(results);
            return result;
        } catch (...) {
            recording.abandon();
            throw;
        }
    }
    Array<int> record(bool for_host = true) {
        const Stream stream = device->own_stream();
        if (!recording.has_run()) run(stream, false, false);
        return run(stream, true, for_host);
    }
    std::vector<int> on_host(const std::vector<int>& values) {
        put(values);
        CHECK(recording.replay_on_host());
        const int* const found = reinterpret_cast<const int*>(recording.result(0));
        return {found, found + N};
    }
};

Array<int> plus_three(Queue& queue, const Array<int>& given) {
    // The first array is dropped, and its memory is that of the third.
    Array<int> first = queue.empty<int>(N);
    queue.launch(add, GRID, first, given, N, 1);
    Array<int> second = queue.empty<int>(N);
    queue.launch(add, GRID, second, first, N, 1);
    first = {};
    const Array<int> third = queue.empty<int>(N);
    queue.launch(add, GRID, third, second, N, 1);
    return third;
}

}  // namespace

// ---- Memory and copies

CASE(arrays_go_up_and_come_down_unchanged) {
    const auto device = open();
    Queue queue(device, device->own_stream());
    const std::vector<int> given = counted(N);
    const std::vector<double> other{1.5, 2.5};
    const auto [first, second] = queue.upload(std::span<const int>(given), std::span<const double>(other));
    CHECK(reinterpret_cast<uintptr_t>(second.data()) % 256 == 0);
    CHECK(queue.read(first) == given);
    const auto [a, b] = queue.read(first, second);
    CHECK(a == given && b == other);
    CHECK(queue.read(queue.upload_one(int64_t{7}))[0] == 7);
    CHECK(queue.read(first.part(10, 5)) == counted(5, 10));
}

CASE(empty_arrays_need_no_copy) {
    const auto device = open();
    Queue queue(device, device->own_stream());
    const std::vector<int> none;
    const Array<int> made = queue.upload(none), empty = queue.zeros<int>(0);
    CHECK(made && empty);
    CHECK(queue.read(made).empty());
    CHECK(machine().calls("cuMemcpyHtoDAsync_v2") == 0 && machine().calls("cuMemcpyDtoHAsync_v2") == 0);
}

CASE(arrays_of_one_allocation_come_down_in_one_copy) {
    const auto device = open();
    Queue queue(device, device->own_stream());
    const auto [a, b, c] = queue.arrays<int, int, int>(100, 1, 300);
    for (const Array<int>& one : {a, b, c}) queue.launch(fill, GRID, one, static_cast<int>(one.size()), 3);
    machine().clear();
    const auto [x, y, z] = queue.read(a, b, c);
    CHECK(all(x, 3) && all(y, 3) && all(z, 3) && x.size() == 100 && z.size() == 300);
    CHECK(machine().calls("cuMemcpyDtoHAsync_v2") == 1);
    const Array<int> other = queue.zeros<int>(10);
    const auto [v, w] = queue.read(a, other);
    CHECK(all(v, 3) && all(w, 0));
    CHECK(machine().calls("cuMemcpyDtoHAsync_v2") == 3);
    size_t begins[2];
    const void* const from[] = {c.data(), a.data()};
    const size_t nbytes[] = {c.nbytes(), a.nbytes()};
    const Owner* const owners[] = {&c.owner(), &a.owner()};
    const auto block = queue.read_pinned(from, nbytes, begins, owners);
    CHECK(reinterpret_cast<const int*>(block.get() + begins[0])[299] == 3);
    CHECK(reinterpret_cast<const int*>(block.get() + begins[1])[99] == 3);
}

CASE(what_lies_between_arrays_is_not_read) {
    const auto device = open();
    Queue queue(device, device->own_stream());
    const auto [first, between, last] = queue.arrays<int, int, int>(100, 100, 100);
    for (const Array<int>& one : {first, last}) queue.launch(fill, GRID, one, 100, 3);
    const auto [a, b] = queue.read(first, last);  // nothing has written the one between
    CHECK(all(a, 3) && all(b, 3) && between);
}

CASE(a_small_upload_has_read_its_array) {
    const auto device = open();
    Queue queue(device, device->own_stream());
    std::vector<int> given = counted(N);
    const Array<int> made = queue.upload(given);
    std::fill(given.begin(), given.end(), -1);
    CHECK(machine().calls("cuStreamSynchronize") == 0);
    CHECK(queue.read(made) == counted(N));
}

CASE(a_large_upload_has_read_its_array) {
    const auto device = open();
    Queue queue(device, device->own_stream());
    std::vector<int> given = counted(1100000);
    const Array<int> made = queue.upload(given);
    std::fill(given.begin(), given.end(), -1);
    CHECK(queue.read(made) == counted(1100000));
}

CASE(staged_memory_is_used_again_after_its_copies) {
    const auto device = open();
    Queue queue(device, device->own_stream());
    std::vector<Array<int>> made;
    for (int i = 0; i < 40; ++i)
        made.push_back(queue.upload(std::vector<int>(60000, i)));  // 9.6 MB through a ring of 4 MiB
    made.push_back(queue.upload(std::vector<int>(1 << 20, 40)));   // the whole ring
    made.push_back(queue.upload(std::vector<int>(3, 41)));
    for (int i = 0; i < 42; ++i) CHECK(all(queue.read(made[static_cast<size_t>(i)]), i));
}

CASE(the_next_queue_waits_for_the_staged_copies_of_the_last) {
    const auto device = open();
    const Stream first = device->own_stream(), second = device->own_stream();
    std::vector<Array<int>> made;
    {
        Queue queue(device, first);
        for (int i = 0; i < 3; ++i) made.push_back(queue.upload(std::vector<int>(300000, i)));
    }
    {
        Queue queue(device, second);
        for (int i = 3; i < 6; ++i) made.push_back(queue.upload(std::vector<int>(300000, i)));
    }
    {
        Queue queue(device, first);
        for (int i = 0; i < 3; ++i) CHECK(all(queue.read(made[static_cast<size_t>(i)]), i));
    }
    Queue queue(device, second);
    for (int i = 3; i < 6; ++i) CHECK(all(queue.read(made[static_cast<size_t>(i)]), i));
}

CASE(staged_copies_of_several_streams_are_all_waited_for) {
    const auto device = open();
    const Stream streams[] = {device->own_stream(), device->own_stream(), device->own_stream()};
    std::vector<Array<int>> made;
    for (const int i : {0, 1, 2}) {  // the last takes the place of both
        Queue queue(device, streams[i]);
        made.push_back(queue.upload(std::vector<int>(i == 2 ? 800000 : 200000, i)));
    }
    for (const int i : {0, 1, 2}) {
        Queue queue(device, streams[i]);
        CHECK(all(queue.read(made[static_cast<size_t>(i)]), i));
    }
    CHECK(machine().get("pinned") == 3);  // one ring, and a block of each size that was read
}

CASE(two_queues_stage_apart) {
    const auto device = open();
    const Stream one = device->own_stream(), two = device->own_stream();
    {
        Queue(device, one).upload(counted(N));
    }
    Queue first(device, one), second(device, two);
    const Array<int> a = first.upload(counted(N, 1)), b = second.upload(counted(N, 2));
    CHECK(machine().get("pinned") == 2);
    CHECK(first.read(a) == counted(N, 1) && second.read(b) == counted(N, 2));
}

CASE(work_is_queued_on_the_callers_stream) {
    const auto device = open();
    Queue queue(device, device->own_stream());
    Array<int> made = queue.empty<int>(N);
    queue.launch(fill, GRID, made, N, 5);
    queue.clear(made.data(), made.nbytes());
    queue.launch(add, GRID, made, made, N, 2);
    const Array<int> copied = queue.empty<int>(N);
    queue.copy(copied, made.data());
    queue.launch(fill, GRID, made, N, 5);
    CHECK(all(queue.read(copied), 2));
    const int64_t rows[] = {3, 0, 3};
    const Array<int> table = queue.upload(counted(8));
    const Array<int> taken = queue.take_rows(table, 2, rows);
    CHECK((queue.read(taken) == std::vector<int>{6, 7, 0, 1, 6, 7}));
    const int64_t to[] = {1, 2, 0};
    queue.put_rows(table, 2, to, taken);
    CHECK((queue.read(table) == std::vector<int>{6, 7, 6, 7, 0, 1, 6, 7}));
    // Whatever was queued on another stream would race: the findings are read at the end.
}

CASE(memory_is_freed_in_the_order_of_its_stream) {
    const auto device = open();
    const Stream stream = device->own_stream();
    Array<int> result;
    {
        Queue queue(device, stream);
        result = queue.empty<int>(N);
        for (int i = 0; i < 20; ++i) {
            const Array<int> made = queue.empty<int>(N);
            queue.launch(fill, GRID, made, N, i);
            queue.launch(add, GRID, result, made, N, 1);
        }
    }
    Queue queue(device, stream);
    CHECK(all(queue.read(result), 20));
}

CASE(memory_of_a_threads_default_stream_is_freed_elsewhere) {
    const auto device = open();
    Array<int> made;
    std::thread([&] {
        Queue queue(device, {per_thread_stream(), nullptr});
        made = queue.empty<int>(N);
        queue.launch(fill, GRID, made, N, 1);
    }).join();
    made = {};
}

CASE(a_callers_stream_lives_as_long_as_its_memory) {
    const auto device = open();
    Array<int> made;
    {
        const Current current(*device);
        CUstream handle = nullptr;
        driver().cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING);
        const Owner owner(static_cast<const void*>(handle), [](const void* stream) {
            driver().cuStreamDestroy(static_cast<CUstream>(const_cast<void*>(stream)));
        });
        Queue queue(device, {handle, owner});
        made = queue.zeros<int>(N);
    }
    CHECK(machine().get("streams") == 1);
    const Current current(*device);  // in which the stream's owner destroys it
    made = {};
    CHECK(machine().get("streams") == 0);
}

CASE(one_stream_waits_for_another) {
    const auto device = open();
    const Stream one = device->own_stream(), two = device->own_stream();
    Queue first(device, one);
    const Array<int> made = first.empty<int>(N);
    first.launch(fill, GRID, made, N, 1);
    Array<int> sum;
    {
        Queue second(device, two);
        second.after(one);
        sum = second.empty<int>(N);
        second.launch(add, GRID, sum, made, N, 1);
        second.before(one);
    }
    first.launch(fill, GRID, made, N, 7);
    CHECK(all(first.read(sum), 2));
}

CASE(a_pool_keeps_an_eighth_of_the_memory_at_most) {
    machine().set("memory", 64 << 20);
    const auto device = open();
    Queue queue(device, device->own_stream());
    queue.empty<char>(32 << 20);
    queue.wait();
    CHECK(machine().get("used") <= 8 << 20);
    queue.empty<char>(4 << 20);
    queue.wait();
    CHECK(machine().get("used") >= 4 << 20);
    device->trim();
    CHECK(machine().get("used") == 0);
}

CASE(out_of_memory_frees_what_is_cached_and_collects_garbage) {
    machine().set("memory", 64 << 20);
    const auto device = open();
    Array<char> garbage = device->fixed<char>(40 << 20);
    int collected = 0;
    device->collect_with([&] {
        ++collected;
        garbage = {};
    });
    Queue queue(device, device->own_stream());
    CHECK(queue.empty<char>(50 << 20));
    CHECK(collected == 1);
    Array<char> held = queue.empty<char>(30 << 20);
    const NoMemory error = thrown<NoMemory>([&] { queue.empty<char>(40 << 20); });
    CHECK(error.asked == 40 << 20 && error.total == 64 << 20 && error.free == 34 << 20);
    CHECK(collected == 2);
    CHECK(queue.empty<char>(8 << 20));  // the device goes on
    held = {};
    CHECK(device->fixed<char>(60 << 20));  // what the pool caches is given to it
}

CASE(what_is_resident_needs_room) {
    machine().set("memory", 64 << 20);
    const auto device = open();
    device->require(60 << 20, "the corpus");
    const NoRoom error = thrown<NoRoom>([&] { device->require(65 << 20, "the corpus"); });
    CHECK(error.what_for == "the corpus" && error.needed == 65 << 20 && error.free == 64 << 20);
    Queue queue(device, device->own_stream());
    const Array<char> held = queue.empty<char>(16 << 20);
    CHECK(device->free_bytes() == 48 << 20);
    CHECK(device->used_bytes() == 16 << 20);
}

CASE(the_environment_caps_the_memory) {
    setenv("HOPFUSE_CUDA_MEMORY_LIMIT", "2MiB", 1);
    const auto device = open();
    Queue queue(device, device->own_stream());
    CHECK(device->free_bytes() == 2 << 20);
    Array<char> held = queue.empty<char>(1 << 20);
    thrown<NoMemory>([&] { queue.empty<char>((1 << 20) + 1); });
    thrown<NoMemory>([&] { device->fixed<char>((1 << 20) + 1); });
    CHECK(queue.empty<char>(1 << 20));
    held = {};
    CHECK(queue.empty<char>(2 << 20));
}

CASE(a_bad_cap_is_refused) {
    for (const char* const bad : {"0", "x", "-1", "3MB", "1.5GiB", "99999999999999999999", "20000000000GiB"}) {
        setenv("HOPFUSE_CUDA_MEMORY_LIMIT", bad, 1);
        const InvalidSetting error = thrown<InvalidSetting>([] { open(); });
        CHECK(error.variable == "HOPFUSE_CUDA_MEMORY_LIMIT" && error.given == bad);
    }
    for (const char* const good : {"", "512", "3 KiB", "1GiB"}) {
        setenv("HOPFUSE_CUDA_MEMORY_LIMIT", good, 1);
        open();
    }
}

CASE(arrays_may_be_allocations_of_their_own) {
    setenv("HOPFUSE_CUDA_MEMORY", "separate", 1);
    const auto device = open();
    CHECK(!device->properties().has_pools);
    Queue queue(device, device->own_stream());
    const auto [three, none, five] = queue.arrays<char, int, char>(3, 0, 5);
    CHECK(three.owner() != five.owner() && none.data() != nullptr);
    CHECK(device->used_bytes() == 3 + 1 + 5);
    const std::vector<char> given{1, 2}, more{3};
    const auto [up, also] = queue.upload(std::span<const char>(given), std::span<const char>(more));
    CHECK(up.owner() != also.owner());
    const auto [there, here] = queue.read(up, also);
    CHECK(there == given && here == more);
    setenv("HOPFUSE_CUDA_MEMORY", "apart", 1);
    const InvalidSetting error = thrown<InvalidSetting>([] { open(); });
    CHECK(error.variable == "HOPFUSE_CUDA_MEMORY" && error.given == "apart");
}

CASE(a_device_without_pools_reuses_memory_safely) {
    machine().set("pools", 0);
    const auto device = open();
    CHECK(!device->properties().has_pools);
    const Stream one = device->own_stream(), two = device->own_stream();
    Array<int> result;
    {
        Queue first(device, one);
        result = first.empty<int>(N);
        const Array<int> made = first.empty<int>(N);
        first.launch(fill, GRID, made, N, 4);
        first.launch(add, GRID, result, made, N, 1);
    }
    {
        Queue second(device, two);  // gets the memory that the first has dropped, whose work is not over
        const Array<int> made = second.empty<int>(N);
        second.launch(fill, GRID, made, N, 9);
        CHECK(all(second.read(made), 9));
    }
    Queue first(device, one);
    CHECK(all(first.read(result), 5));
    CHECK(machine().calls("cuMemAlloc_v2") == 2);
    CHECK(machine().calls("cuMemAllocFromPoolAsync") == 0);
    device->trim();
    CHECK(machine().get("allocations") == 1);
}

CASE(pinned_memory_is_kept_for_the_next) {
    const auto device = open();
    std::byte* first = nullptr;
    {
        const auto block = device->pinned(5000);
        first = block.get();
    }
    CHECK(device->pinned(8192).get() == first);
    CHECK(device->pinned(8193).get() != first);
    CHECK(machine().calls("cuMemHostAlloc") == 2);
    device->trim();
    CHECK(machine().get("pinned") == 0);
}

CASE(pinned_memory_of_a_failed_read_is_not_used_meanwhile) {
    const auto device = open();
    const void* const kept = device->pinned(1).get();  // which the next read takes
    {
        Queue queue(device, device->own_stream());
        const Array<int> one = queue.upload(counted(N)), two = queue.upload(counted(N));
        machine().fail("cuMemcpyDtoHAsync_v2", CUDA_ERROR_INVALID_VALUE, 1);
        thrown<DriverError>([&] { queue.read(one.part(0, 100), two.part(0, 100)); });
        CHECK(device->pinned(1).get() != kept);
    }
    CHECK(device->pinned(1).get() == kept);
}

CASE(results_that_cannot_be_pinned_are_pageable) {
    const auto device = open();
    Queue queue(device, device->own_stream());
    const Array<int> made = queue.zeros<int>(N);
    machine().fail("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY, 0, 0);
    CHECK(all(queue.read(made), 0));
    thrown<DriverError>([&] { device->pinned(100); });
}

CASE(a_counting_device_counts) {
    const auto device = Device::counting();
    CHECK(device->is_counting() && !device->cooperative && device->properties().l2_bytes == 0);
    Queue queue(device, device->own_stream());
    CHECK(queue.fixed());
    {
        const Array<int> made = queue.empty<int>(N);
        const Array<char> other = queue.empty<char>(1);
        queue.launch(fill, GRID, made, N, 1);
        CHECK(queue.resident_blocks(fill, 128, 0) == 0);
        CHECK(device->used_bytes() == 4096 + 512);
        thrown<NotRecordable>([&] { queue.read(made); });
    }
    CHECK(device->used_bytes() == 0 && device->peak_bytes() == 4096 + 512);
    device->reset_peak();
    CHECK(device->peak_bytes() == 0);
    CHECK(machine().calls("cuInit") == 0);
}

CASE(a_counting_device_has_the_sizes_of_another) {
    const Device::Properties like = Device::properties_of(driver(), 0);
    const auto device = Device::counting(like);
    const Device::Properties& own = device->properties();
    CHECK(own.multiprocessors == like.multiprocessors && own.l2_bytes == like.l2_bytes);
    CHECK(own.total_bytes == like.total_bytes && device->free_bytes() == like.total_bytes);
    Queue queue(device, device->own_stream());
    device->require(like.total_bytes + 1, "more than there is");  // an estimate says so by its number
    const Array<char> made = queue.empty<char>(like.total_bytes + 1);
    CHECK(device->free_bytes() == 0 && device->used_bytes() > like.total_bytes);
}

// ---- Kernels

CASE(a_unit_is_loaded_at_the_first_launch_of_a_kernel) {
    int loaded = 0;
    const auto device = Device::open(driver(), 0, [&](const std::string& unit) {
        CHECK(unit == "host");
        ++loaded;
        return Image{image(), "a test"};
    });
    CHECK(loaded == 0 && device->origins().empty());
    Queue queue(device, device->own_stream());
    const Array<int> made = queue.empty<int>(N);
    for (int i = 0; i < 3; ++i) queue.launch(fill, GRID, made, N, i);
    queue.launch(add, GRID, made, made, N, 1);
    CHECK(all(queue.read(made), 3));
    CHECK(loaded == 1 && machine().calls("cuModuleGetFunction") == 2);
    CHECK(device->origins().size() == 1 && device->origins()[0].second == "a test");
}

CASE(two_threads_load_a_unit_once) {
    std::atomic<int> loaded{0};
    const auto device = Device::open(driver(), 0, [&](const std::string&) {
        ++loaded;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        return Image{image(), "a test"};
    });
    std::barrier together(4);
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            Queue queue(device, device->own_stream());
            const Array<int> made = queue.empty<int>(N);
            together.arrive_and_wait();
            queue.launch(fill, GRID, made, N, i);
            right += all(queue.read(made), i);
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(right == 4 && loaded == 1 && machine().calls("cuModuleLoadData") == 1);
}

CASE(a_unit_that_fails_to_load_is_tried_again) {
    int loaded = 0;
    const auto device = Device::open(driver(), 0, [&](const std::string&) -> Image {
        if (++loaded == 1) throw std::runtime_error("no compiler");
        return {image(), "a test"};
    });
    Queue queue(device, device->own_stream());
    const Array<int> made = queue.empty<int>(N);
    thrown<std::runtime_error>([&] { queue.launch(fill, GRID, made, N, 1); });
    queue.launch(fill, GRID, made, N, 1);
    CHECK(all(queue.read(made), 1));
}

CASE(refused_code_is_replaced) {
    const auto device = Device::open(driver(), 0, [&](const std::string&) {
        return Image{"\x7f of a newer toolkit", "a cubin", [&](const std::string& why) {
                         CHECK(why == "CUDA_ERROR_NO_BINARY_FOR_GPU");
                         return Image{image(), "compiled"};
                     }};
    });
    Queue queue(device, device->own_stream());
    const Array<int> made = queue.empty<int>(N);
    queue.launch(fill, GRID, made, N, 1);
    CHECK(all(queue.read(made), 1));
    CHECK(device->origins()[0].second == "compiled (the driver refused a cubin: CUDA_ERROR_NO_BINARY_FOR_GPU)");
}

CASE(code_that_is_refused_for_good_is_an_error) {
    const auto device =
        Device::open(driver(), 0, [&](const std::string&) { return Image{"\x7f of a newer toolkit", "a cubin"}; });
    Queue queue(device, device->own_stream());
    const DriverError error = thrown<DriverError>([&] { queue.launch(fill, GRID, queue.empty<int>(N), N, 1); });
    CHECK(error.code == CUDA_ERROR_NO_BINARY_FOR_GPU && error.call == "loading host (a cubin)" &&
          !error.is_no_memory());
}

CASE(no_memory_is_recognised_where_code_is_loaded) {
    const auto device = open();
    machine().fail("cuModuleLoadData", CUDA_ERROR_OUT_OF_MEMORY);
    Queue queue(device, device->own_stream());
    CHECK(thrown<DriverError>([&] { queue.launch(fill, GRID, queue.empty<int>(N), N, 1); }).is_no_memory());
}

CASE(a_kernel_that_is_not_there_is_named) {
    const auto device = open();
    Queue queue(device, device->own_stream());
    constexpr KernelOf<Fill> absent{{"host", "absent_f32"}};
    const DriverError error = thrown<DriverError>([&] { queue.launch(absent, GRID, queue.empty<int>(N), N, 1); });
    CHECK(error.code == CUDA_ERROR_NOT_FOUND && error.call == "looking for the kernel absent_f32 of host");
}

CASE(shared_memory_is_opted_in_to_once) {
    const auto device = open();
    Queue queue(device, device->own_stream());
    constexpr int MANY = 20000;
    const Array<int> given = queue.upload(counted(MANY)), made = queue.empty<int>(MANY);
    queue.launch(reverse, Grid{1, 128, 400 * sizeof(int)}, made, given, 400);
    CHECK(machine().calls("cuFuncSetAttribute") == 0);
    for (const int n : {15000, MANY, 16000}) queue.launch(reverse, Grid{1, 128, n * sizeof(int)}, made, given, n);
    CHECK(machine().calls("cuFuncSetAttribute") == 1);
    CHECK(queue.read(made)[0] == 15999);
    machine().findings();
}

CASE(shared_memory_that_a_kernel_declares_counts) {
    const auto device = open();
    Queue queue(device, device->own_stream());
    constexpr int MANY = 12000;  // with the kernel's own, more than 48 KiB
    const Array<int> given = queue.upload(counted(MANY)), made = queue.empty<int>(MANY);
    queue.launch(rotate, Grid{1, 128, 11264 * sizeof(int)}, made, given, 11264);
    CHECK(machine().calls("cuFuncSetAttribute") == 0);
    queue.launch(rotate, Grid{1, 128, MANY * sizeof(int)}, made, given, MANY);
    CHECK(machine().calls("cuFuncSetAttribute") == 1);
    const std::vector<int> found = queue.read(made);
    CHECK(found[0] == 1 && found[MANY - 1] == 0);
}

CASE(resident_blocks_are_asked_for_once) {
    machine().set("blocks_at_once", 12);
    machine().set("multiprocessors", 3);
    machine().set("compute_mode", 3);
    const auto device = open();
    CHECK(device->properties().multiprocessors == 3 && device->properties().is_exclusive);
    Queue queue(device, device->own_stream());
    for (int i = 0; i < 3; ++i) CHECK(queue.resident_blocks(fill, 128, 0) == 12);
    CHECK(queue.resident_blocks(reverse, 128, 100000) == 12);
    CHECK(machine().calls("cuOccupancyMaxActiveBlocksPerMultiprocessor") == 2);
}

CASE(launches_are_timed) {
    const auto device = open();
    Queue queue(device, device->own_stream());
    const Array<int> made = queue.empty<int>(N);
    queue.launch(fill, GRID, made, N, 1);
    device->start_timing();
    queue.launch(fill, GRID, made, N, 1);
    queue.launch(add, GRID, made, made, N, 1);
    std::thread([&] {
        Queue other(device, device->own_stream());
        const Array<int> own = other.empty<int>(N);
        other.launch(fill, GRID, own, N, 1);
    }).join();
    const std::vector<LaunchTime> times = device->read_times();
    CHECK(times.size() == 2 && times[0].kernel == "fill_i32" && times[1].kernel == "add_i32" && times[0].seconds >= 0);
    CHECK(device->read_times().empty());
}

CASE(a_call_is_cancelled_before_a_launch) {
    const auto device = open();
    const Stream stream = device->own_stream();
    int left = 2;
    {
        Queue queue(device, stream);
        queue.check_with(
            [](void* context) {
                if (--*static_cast<int*>(context) < 0) throw Cancelled();
            },
            &left);
        const Array<int> made = queue.empty<int>(N);
        thrown<Cancelled>([&] {
            for (int i = 0; i < 5; ++i) queue.launch(fill, GRID, made, N, i);
        });
    }
    machine().finish();
    CHECK(machine().count(machine().events(), "launch") == 2);
}

// ---- Errors

CASE(a_kernels_fault_is_final) {
    const auto device = open();
    const Stream stream = device->own_stream();
    DriverError first = [&] {
        Queue queue(device, stream);
        const Array<int> made = queue.empty<int>(N);
        queue.launch(fail, Grid{1, 32}, nullptr, N);
        return thrown<DriverError>([&] { queue.read(made); });
    }();
    CHECK(first.is_sticky() && first.name.rfind("CUDA_ERROR_", 0) == 0 && !first.text.empty());
    const DriverError later = thrown<DriverError>([&] { Queue queue(device, stream); });
    CHECK(later.code == first.code && later.call == first.call);
    machine().findings();
    _exit(0);  // what is left behind cannot be freed
}

CASE(a_failed_call_says_what_failed) {
    const auto device = open();
    Queue queue(device, device->own_stream());
    machine().fail("cuMemsetD8Async", CUDA_ERROR_INVALID_VALUE);
    const DriverError error = thrown<DriverError>([&] { queue.zeros<int>(4); });
    CHECK(error.call == "clearing memory" && error.name == "CUDA_ERROR_INVALID_VALUE" && !error.is_sticky());
    machine().fail("cuLaunchKernel", CUDA_ERROR_INVALID_VALUE);
    const DriverError launch = thrown<DriverError>([&] { queue.launch(fill, GRID, queue.empty<int>(N), N, 1); });
    CHECK(launch.call == "fill_i32 of 8 blocks of 128 threads");
}

CASE(a_driver_that_is_not_there) {
    const std::string there = std::getenv("HOPFUSE_LIBCUDA");
    setenv("HOPFUSE_LIBCUDA", "/nowhere/libcuda.so", 1);
    for (int i = 0; i < 2; ++i)
        CHECK(std::string(thrown<NoDriver>([] { driver(); }).what()).find("/nowhere/libcuda.so") != std::string::npos);
    setenv("HOPFUSE_LIBCUDA", there.c_str(), 1);  // another choice is tried
    CHECK(open()->properties().name == "SIMT emulator");
}

CASE(a_library_that_is_no_driver) {
    setenv("HOPFUSE_LIBCUDA", "libm.so.6", 1);
    CHECK(std::string(thrown<NoDriver>([] { driver(); }).what()).find("does not tell its version") !=
          std::string::npos);
}

CASE(an_old_driver_is_refused) {
    machine().set("driver_version", 11080, -1);
    CHECK(thrown<NoDriver>([] { driver(); }).version == 11080);
}

CASE(a_driver_that_cannot_be_initialised) {
    machine().fail("cuInit", CUDA_ERROR_NO_DEVICE);
    const NoDriver error = thrown<NoDriver>([] { driver(); });
    CHECK(std::string(error.what()).find("CUDA_ERROR_NO_DEVICE") != std::string::npos);
}

CASE(a_device_that_is_not_there) {
    machine().set("visible", 1, -1);
    CHECK(thrown<DriverError>([] { open(1); }).code == CUDA_ERROR_INVALID_DEVICE);
}

CASE(a_device_whose_pool_cannot_be_made_is_closed) {
    machine().fail("cuMemPoolCreate", CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(thrown<DriverError>([] { open(); }).is_no_memory());
}

CASE(properties_that_a_driver_does_not_tell) {
    machine().set("memory_clock", 0);
    CHECK(open()->properties().l2_speedup == 1);
    machine().set("memory_clock", 1000);
    machine().set("clock", 4000);
    const auto device = open();
    CHECK(device->properties().l2_speedup == 16.0 * 4000 / (2.0 * 1000 * 64 / 8));
    CHECK(device->properties().uuid.size() == 36);
    CHECK(device->properties().driver_version == 13000);
}

CASE(a_forked_child_is_told) {
    const auto device = open();
    const Stream stream = device->own_stream();
    Queue queue(device, stream);
    Array<int> made = queue.empty<int>(N);
    Array<int> fixed = device->fixed<int>(N);
    auto pinned = device->pinned(100);
    queue.launch(fill, GRID, made, N, 1);
    const pid_t child = fork();
    if (child == 0) {
        int wrong = 0;
        try {
            driver();
            wrong |= 1;
        } catch (const NoDriver&) {
        }
        try {
            std::thread([&] {
                try {
                    Queue other(device, stream);
                    wrong |= 2;
                } catch (const NoDriver&) {
                }
            }).join();
        } catch (...) {
            wrong |= 4;
        }
        made = fixed = {};
        pinned.reset();
        _exit(wrong);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(all(queue.read(made), 1));
}

CASE(a_process_forked_before_the_first_use_uses_the_driver) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = 0;
    waitpid(child, &status, 0);
    const auto device = open();
    Queue queue(device, device->own_stream());
    CHECK(all(queue.read(queue.zeros<int>(N)), 0));
}

// ---- The current device

CASE(the_callers_current_device_is_restored) {
    const auto first = open(0), second = open(1);
    const Driver& on = driver();
    CUcontext before = nullptr, found = nullptr;
    on.cuCtxGetCurrent(&before);
    Array<int> made;
    {
        Queue queue(second, second->own_stream());
        on.cuCtxGetCurrent(&found);
        CHECK(found == second->context());
        made = queue.zeros<int>(N);
        {
            Queue inner(first, first->own_stream());
            on.cuCtxGetCurrent(&found);
            CHECK(found == first->context());
            const Array<int> other = inner.zeros<int>(N);
            made = {};  // memory of the other device is freed meanwhile
        }
        on.cuCtxGetCurrent(&found);
        CHECK(found == second->context());
        CHECK(all(queue.read(queue.zeros<int>(N)), 0));
    }
    on.cuCtxGetCurrent(&found);
    CHECK(found == before);
}

CASE(everything_works_while_another_device_is_current) {
    const auto first = open(0), second = open(1);
    driver().cuCtxPushCurrent(first->context());
    {
        Recorded recorded(second, recording_memory(second), plus_three);
        recorded.record();
        CHECK(all(recorded.on_host(std::vector<int>(N, 1)), 4));
        Array<int> made;
        {
            Queue queue(second, second->own_stream());
            made = queue.zeros<int>(N);
            queue.launch(fill, GRID, made, N, 1);
        }
        made = {};
        CHECK(second->fixed<int>(N) && second->pinned(10) && second->free_bytes());
        second->trim();
        CHECK(second->resident_blocks("host", "fill_i32", 64, 0) == 2);
    }
    CUcontext popped = nullptr;
    driver().cuCtxPopCurrent(&popped);
    CHECK(popped == first->context());
}

CASE(memory_is_freed_on_a_thread_without_a_context) {
    const auto device = open();
    std::optional<Recorded> recorded;
    Array<int> made, fixed = device->fixed<int>(N);
    {
        Queue queue(device, device->own_stream());
        made = queue.zeros<int>(N);
    }
    recorded.emplace(device, recording_memory(device), plus_three);
    recorded->record(true);
    std::thread([&] {
        made = fixed = {};
        recorded.reset();
    }).join();
}

// ---- Residents

CASE(resident_arrays_may_be_read_on_any_stream) {
    const auto device = open();
    const Stream one = device->own_stream(), two = device->own_stream();
    Array<int> made, filled;
    {
        Queue queue(device, one);
        const Queue::Resident resident(queue);
        made = queue.upload(counted(N));
        filled = queue.empty<int>(N);
        queue.launch(fill, GRID, filled, N, 3);
    }
    Queue queue(device, two);
    CHECK(queue.read(made) == counted(N) && all(queue.read(filled), 3));
    CHECK(machine().calls("cuMemAllocFromPoolAsync") == 0);
}

CASE(resident_arrays_are_not_part_of_a_recording) {
    const auto device = open();
    std::shared_ptr<Array<int>> held;
    const auto memory = recording_memory(device);
    std::optional<Recorded> recorded;
    recorded.emplace(device, memory, [&](Queue& queue, const Array<int>& given) {
        if (!held) {
            const Queue::Resident resident(queue);
            held = std::make_shared<Array<int>>(queue.upload(std::vector<int>(N, 10)));
        }
        queue.keep(held);
        const Array<int> made = queue.empty<int>(N);
        queue.launch(add, GRID, made, *held, N, 5);
        queue.launch(add, GRID, made, made, N, 1);
        static_cast<void>(given);
        return made;
    });
    recorded->record();
    const std::weak_ptr<Array<int>> watched = held;
    held.reset();
    CHECK(!watched.expired());  // the recording keeps it
    CHECK(all(recorded->on_host(counted(N)), 16));
    CHECK(recording_bytes(*memory) == N * sizeof(int));
    recorded.reset();
    CHECK(watched.expired());
}

CASE(nothing_resident_is_made_in_a_recorded_run) {
    const auto device = open();
    int runs = 0;
    Recorded recorded(device, recording_memory(device), [&](Queue& queue, const Array<int>&) {
        if (++runs == 2) const Queue::Resident resident(queue);
        return queue.zeros<int>(N);
    });
    thrown<NotRecordable>([&] { recorded.record(); });
    CHECK(!recorded.recording.has_run());
}

// ---- Recordings

CASE(a_replay_reads_the_host_again) {
    const auto device = open();
    Recorded recorded(device, recording_memory(device), plus_three);
    recorded.record();
    machine().clear();
    for (const int i : {1, 7, 100}) {
        std::vector<int> expected = counted(N, i + 3);
        CHECK(recorded.on_host(counted(N, i)) == expected);
    }
    CHECK(machine().calls("cuGraphLaunch") == 3 && machine().calls("cuMemAlloc_v2") == 0);
    CHECK(machine().calls("cuMemcpyHtoDAsync_v2") == 0 && machine().calls("cuMemcpyDtoHAsync_v2") == 0);
    CHECK(machine().get("graph_allocations", -1) == 0);
}

CASE(a_replay_on_a_device_copies_its_results) {
    const auto device = open();
    Recorded recorded(device, recording_memory(device), plus_three);
    recorded.record(false);
    CHECK(recorded.recording.is_recorded(false) && !recorded.recording.is_recorded(true));
    recorded.record(true);  // beside it, of the same first run
    CHECK(recorded.recording.is_recorded(false) && recorded.recording.is_recorded(true));
    Queue queue(device, device->own_stream());
    std::vector<Array<int>> made;
    for (int i = 0; i < 3; ++i) {
        const Array<int> given = queue.upload(counted(N, i));
        queue.copy(recorded.recording.input(0).as<int>(), given.data());
        made.push_back(queue.empty<int>(N));
        void* const to[] = {made.back().data()};
        CHECK(recorded.recording.replay(queue, to));
    }
    for (int i = 0; i < 3; ++i) CHECK(queue.read(made[static_cast<size_t>(i)]) == counted(N, i + 3));
    CHECK(recorded.on_host(counted(N, 50)) == counted(N, 53));
}

CASE(calls_on_two_streams_do_not_overlap) {
    const auto device = open();
    Recorded recorded(device, recording_memory(device), [](Queue& queue, const Array<int>& given) {
        const Array<int> made = queue.empty<int>(N);
        queue.launch(add, GRID, made, given, N, 1);
        return made;
    });
    recorded.record(false);
    const Stream one = device->own_stream(), two = device->own_stream();
    const auto call = [&](const Stream& stream, int value) {
        Queue queue(device, stream);
        recorded.recording.begin_use(queue);
        queue.launch(fill, GRID, recorded.recording.input(0).as<int>(), N, value);
        const Array<int> made = queue.empty<int>(N);
        void* const to[] = {made.data()};
        CHECK(recorded.recording.replay(queue, to));
        return made;
    };
    const Array<int> first = call(one, 1), second = call(two, 2);
    recorded.run(one, true, true);
    CHECK(all(recorded.on_host(std::vector<int>(N, 3)), 4));
    {
        Queue queue(device, one);
        CHECK(all(queue.read(first), 2));
    }
    Queue queue(device, two);
    CHECK(all(queue.read(second), 3));
}

CASE(the_first_run_sees_what_the_caller_queued) {
    const auto device = open();
    const Stream stream = device->own_stream();
    Array<int> given;
    Queue queue(device, stream);
    given = queue.empty<int>(N);
    queue.launch(fill, GRID, given, N, 4);
    Array<int> seen;
    Recorded recorded(device, recording_memory(device), [&](Queue& to, const Array<int>&) {
        seen = to.empty<int>(N);
        to.launch(add, GRID, seen, given, N, 1);
        return seen;
    });
    recorded.run(stream, false, false);
    machine().clear();
    CHECK(all(queue.read(seen), 5));
}

CASE(recordings_share_memory) {
    const auto device = open();
    const auto memory = recording_memory(device);
    Recorded first(device, memory, plus_three), second(device, memory, plus_three);
    first.record();
    const size_t bytes = recording_bytes(*memory);
    CHECK(bytes == 2 * N * sizeof(int));  // of three arrays, the first and the third lie in one place
    second.record();
    CHECK(recording_bytes(*memory) == bytes);
    CHECK(all(first.on_host(std::vector<int>(N, 1)), 4) && all(second.on_host(std::vector<int>(N, 2)), 5));
    CHECK(all(first.on_host(std::vector<int>(N, 3)), 6));
}

CASE(constants_are_not_overwritten_by_replays) {
    const auto device = open();
    Recorded recorded(device, recording_memory(device), [](Queue& queue, const Array<int>& given) {
        Array<int> dropped = queue.upload(std::vector<int>(N, 10));
        const Array<int> sum = queue.empty<int>(N);
        queue.launch(add, GRID, sum, dropped, N, 1);
        dropped = {};
        const Array<int> later = queue.empty<int>(N), large = queue.upload(std::vector<int>(20000, 3));
        queue.launch(fill, GRID, later, N, 99);
        queue.launch(add, GRID, later, large, N, 0);
        queue.launch(add, GRID, later, given, N, 0);
        return sum;
    });
    recorded.record();
    for (int i = 0; i < 3; ++i) CHECK(all(recorded.on_host(counted(N)), 11));
}

CASE(what_cannot_be_replayed_is_refused) {
    const auto device = open();
    const auto refused = [&](Recorded::Work work) {
        Recorded recorded(device, recording_memory(device), std::move(work));
        thrown<NotRecordable>([&] { recorded.record(); });
        CHECK(!recorded.recording.is_recorded(true) && !recorded.recording.has_run());
    };
    int runs = 0;
    const auto second = [&] { return ++runs % 2 == 0; };
    refused([&](Queue& queue, const Array<int>&) { return queue.zeros<int>(second() ? N + 1 : N); });
    refused([&](Queue& queue, const Array<int>&) {
        if (second()) queue.empty<int>(N);
        return queue.zeros<int>(N);
    });
    refused([&](Queue& queue, const Array<int>&) {
        if (!second()) queue.empty<int>(N);
        return queue.zeros<int>(N);
    });
    refused([&](Queue& queue, const Array<int>&) { return queue.upload(counted(N, second())); });
    refused([&](Queue& queue, const Array<int>&) {
        if (second()) queue.upload(counted(3));
        return queue.zeros<int>(N);
    });
    refused([&](Queue& queue, const Array<int>&) {
        if (!second()) queue.upload(counted(3));
        return queue.zeros<int>(N);
    });
    refused([&](Queue& queue, const Array<int>&) {
        const Array<int> made = queue.zeros<int>(N);
        if (second()) queue.launch(fill, GRID, made, N, 1);  // a kernel that the first run did not load
        return made;
    });
    refused([&](Queue& queue, const Array<int>&) {
        queue.wait();
        return queue.zeros<int>(N);
    });
    refused([&](Queue& queue, const Array<int>&) {
        const Array<int> made = queue.zeros<int>(N);
        queue.read(made);
        return made;
    });
}

CASE(a_recording_that_fails_gives_its_memory_back) {
    const auto device = open();
    for (const int failing : {1, 2}) {
        const auto memory = recording_memory(device);
        Recorded good(device, memory, plus_three);
        good.record();
        const size_t bytes = recording_bytes(*memory);
        int runs = 0;
        Array<int> kept;  // as an exception's traceback would
        Recorded bad(device, memory, [&](Queue& queue, const Array<int>& given) {
            kept = queue.zeros<int>(50 * N);
            const Array<int> made = plus_three(queue, given);
            if (++runs == failing) throw std::runtime_error("as planned");
            return made;
        });
        thrown<std::runtime_error>([&] { bad.record(); });
        CHECK(recording_bytes(*memory) == bytes);
        CHECK(all(good.on_host(std::vector<int>(N, 1)), 4));  // at once, in memory that the failed run has used
        kept = {};
        bad.record();  // and it can be made anew
        CHECK(recording_bytes(*memory) == bytes + 50 * N * sizeof(int));
        CHECK(all(bad.on_host(std::vector<int>(N, 2)), 5));
        bad.recording.abandon();  // no run is under way: nothing is lost
        CHECK(all(bad.on_host(std::vector<int>(N, 3)), 6));
    }
}

CASE(a_failed_run_of_another_kind_keeps_the_recording) {
    const auto device = open();
    bool fails = false;
    Recorded recorded(device, recording_memory(device), [&](Queue& queue, const Array<int>& given) {
        const Array<int> made = plus_three(queue, given);
        if (fails) throw std::runtime_error("as planned");
        return made;
    });
    recorded.record(true);
    fails = true;
    thrown<std::runtime_error>([&] { recorded.record(false); });
    CHECK(all(recorded.on_host(std::vector<int>(N, 1)), 4));
    fails = false;
    recorded.record(false);
    CHECK(recorded.recording.is_recorded(false) && all(recorded.on_host(std::vector<int>(N, 2)), 5));
}

CASE(results_lie_side_by_side) {
    const auto device = open();
    const Stream stream = device->own_stream();
    const size_t inputs[] = {sizeof(int)};
    Recording recording(device, recording_memory(device), inputs);
    *recording.staged(0) = std::byte{0};
    Array<int> first, second;
    const auto run = [&](Queue& queue) {
        first = queue.empty<int>(N);
        queue.launch(fill, GRID, first, N, 1);
        Array<int> dropped = queue.empty<int>(2 * N + 64);  // both results fit in it
        queue.launch(fill, Grid{17, 128}, dropped, 2 * N + 64, 99);
        dropped = {};
        second = queue.empty<int>(N);
        queue.launch(fill, GRID, second, N, 2);
    };
    const size_t nbytes[] = {N * sizeof(int), N * sizeof(int), N * sizeof(int)};
    run(recording.begin(stream, false, false));
    const void* const before[] = {first.data(), second.data(), first.data()};
    recording.end_first(before);
    run(recording.begin(stream, true, true));
    const void* const results[] = {first.data(), second.data(), first.data()};
    machine().clear();
    recording.end_recorded(results, nbytes);
    CHECK(machine().calls("cuMemcpyDtoHAsync_v2") == 1);
    for (int i = 0; i < 2; ++i) {
        CHECK(recording.replay_on_host());
        for (size_t at = 0; at < N; ++at) {
            CHECK(reinterpret_cast<const int*>(recording.result(0))[at] == 1);
            CHECK(reinterpret_cast<const int*>(recording.result(1))[at] == 2);
            CHECK(reinterpret_cast<const int*>(recording.result(2))[at] == 1);
        }
    }
}

CASE(results_outlive_the_recording) {
    const auto device = open();
    Array<int> result;
    const Stream stream = device->own_stream();
    {
        Recorded recorded(device, recording_memory(device), plus_three);
        result = recorded.record(false);
        Queue queue(device, stream);
        queue.launch(fill, GRID, recorded.recording.input(0).as<int>(), N, 1);
        const Array<int> made = queue.empty<int>(N);
        void* const to[] = {made.data()};
        CHECK(recorded.recording.replay(queue, to));
    }
    // The replay ran on memory that was dropped meanwhile, and the result's is still there.
    Queue queue(device, stream);
    CHECK(all(queue.read(result), 4));
}

CASE(what_a_lost_recording_read_outlives_its_last_replay) {
    const auto device = open();
    const Stream one = device->own_stream(), two = device->own_stream();
    Array<int> result;
    {
        Array<int> read;
        {
            Queue queue(device, one);
            read = queue.upload(counted(N));
        }
        Recorded recorded(device, recording_memory(device), [&](Queue& queue, const Array<int>&) {
            queue.after(one), queue.keep(read.owner());
            const Array<int> made = queue.empty<int>(N);
            queue.launch(add, GRID, made, read, N, 1);
            return made;
        });
        recorded.record(false);
        read = {};
        Queue queue(device, two);
        result = queue.empty<int>(N);
        void* const to[] = {result.data()};
        CHECK(recorded.recording.replay(queue, to));
        machine().fail("cuGraphLaunch", CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
        CHECK(!recorded.recording.replay(queue, to));  // and keeps nothing any more
        Queue other(device, one);
        other.launch(fill, GRID, other.empty<int>(N), N, 7);
    }
    Queue queue(device, two);
    CHECK(queue.read(result) == counted(N, 1));
}

CASE(a_recording_keeps_its_pinned_memory) {
    const auto device = open();
    Recorded recorded(device, recording_memory(device), plus_three);
    recorded.record();
    std::vector<std::shared_ptr<std::byte[]>> others;
    for (int i = 0; i < 3; ++i) {
        others.push_back(device->pinned(N * sizeof(int)));
        std::memset(others.back().get(), 0x5a, N * sizeof(int));
    }
    CHECK(all(recorded.on_host(std::vector<int>(N, 1)), 4));
    for (const auto& other : others)
        for (size_t i = 0; i < N * sizeof(int); ++i) CHECK(other[i] == std::byte{0x5a});
}

CASE(a_dropped_recording_gives_its_memory_back) {
    const auto device = open();
    const int64_t before = machine().get("allocations");
    {
        Recorded recorded(device, recording_memory(device), plus_three);
        recorded.record(true);
        recorded.record(false);
    }
    CHECK(machine().get("allocations") == before && machine().get("graphs") == 0);
    CHECK(device->used_bytes() == 0);
}

CASE(a_recording_without_an_end_is_abandoned) {
    const auto device = open();
    {
        Recorded recorded(device, recording_memory(device), plus_three);
        Queue& queue = recorded.recording.begin(device->own_stream(), false, false);
        plus_three(queue, recorded.recording.input(0).as<int>());
        thrown<std::logic_error>([&] { recorded.recording.begin(device->own_stream(), false, false); });
    }
    CHECK(device->used_bytes() == 0);
    CUcontext found = nullptr;
    driver().cuCtxGetCurrent(&found);
    CHECK(found == nullptr);
}

CASE(other_threads_go_on_beside_a_recording) {
    const auto device = open();
    Recorded recorded(device, recording_memory(device), [&](Queue& queue, const Array<int>& given) {
        const Array<int> made = plus_three(queue, given);
        std::thread([&] {
            Queue other(device, device->own_stream());
            CHECK(!other.fixed());
            Array<int> own = other.upload(counted(N));
            other.launch(add, GRID, own, own, N, 1);
            CHECK(other.read(own) == counted(N, 1));
            own = {};
            device->fixed<int>(N);
            device->trim();
            static_cast<void>(device->pinned(100000));
        }).join();
        return made;
    });
    recorded.record();
    CHECK(all(recorded.on_host(std::vector<int>(N, 1)), 4));
}

CASE(no_memory_beside_a_recording_does_not_break_it) {
    machine().set("memory", 64 << 20);
    const auto device = open();
    Recorded recorded(device, recording_memory(device), [&](Queue& queue, const Array<int>& given) {
        const Array<int> made = plus_three(queue, given);
        std::thread([&] {
            Queue other(device, device->own_stream());
            thrown<NoMemory>([&] { other.empty<char>(100 << 20); });
        }).join();
        return made;
    });
    recorded.record();
    CHECK(all(recorded.on_host(std::vector<int>(N, 1)), 4));
}

CASE(a_replay_comes_after_what_the_caller_queued) {
    const auto device = open();
    const Array<int> held = device->fixed<int>(N);
    Recorded recorded(device, recording_memory(device), [&](Queue& queue, const Array<int>&) {
        const Array<int> made = queue.empty<int>(N);
        queue.launch(add, GRID, made, held, N, 1);
        return made;
    });
    const Stream stream = device->own_stream();
    Queue queue(device, stream);
    queue.launch(fill, GRID, held, N, 1);
    recorded.run(stream, false, false);
    recorded.run(stream, true, true);
    queue.launch(fill, GRID, held, N, 6);
    CHECK(recorded.recording.replay_on_host(&stream));
    CHECK(reinterpret_cast<const int*>(recorded.recording.result(0))[N - 1] == 7);
}

CASE(a_stream_that_the_caller_captures_is_refused) {
    const auto device = open();
    const Driver& on = driver();
    const Stream stream = device->own_stream();
    CUcontext popped = nullptr;
    on.cuCtxPushCurrent(device->context());
    on.cuStreamBeginCapture(stream.handle, CU_STREAM_CAPTURE_MODE_RELAXED);
    thrown<NotRecordable>([&] { Queue queue(device, stream); });
    CUgraph graph = nullptr;
    CHECK(on.cuStreamEndCapture(stream.handle, &graph) == CUDA_SUCCESS);
    on.cuGraphDestroy(graph);
    on.cuCtxPopCurrent(&popped);
    CHECK(popped == device->context());
}

CASE(captures_of_others_are_not_broken) {
    const auto device = open();
    const Driver& on = driver();
    const Stream stream = device->own_stream();
    CUcontext popped = nullptr;
    on.cuCtxPushCurrent(device->context());
    on.cuStreamBeginCapture(stream.handle, CU_STREAM_CAPTURE_MODE_GLOBAL);
    std::thread([&] {
        Queue other(device, device->own_stream());
        const Array<int> own = other.upload(counted(N));
        CHECK(other.read(own) == counted(N));
        device->fixed<int>(N);
    }).join();
    CUgraph graph = nullptr;
    CHECK(on.cuStreamEndCapture(stream.handle, &graph) == CUDA_SUCCESS);
    on.cuGraphDestroy(graph);
    on.cuCtxPopCurrent(&popped);
}

CASE(grids_that_no_longer_run_at_once_are_recorded_anew) {
    machine().set("blocks_at_once", 8);
    const auto device = open();
    Recorded recorded(device, recording_memory(device), [&](Queue& queue, const Array<int>& given) {
        const int64_t blocks = queue.resident_blocks(add, 128, 0);
        const Array<int> made = queue.empty<int>(N);
        queue.launch(add, GRID, made, given, N, static_cast<int>(blocks));
        queue.launch(add, Grid{blocks, 128, 0, true}, made, made, N, 0);
        return made;
    });
    recorded.record(true);
    recorded.record(false);
    CHECK(recorded.on_host(std::vector<int>(N, 0))[0] == 8);
    machine().set("blocks_at_once", 4);
    CHECK(!recorded.recording.replay_on_host());
    CHECK(!recorded.recording.has_run() && !recorded.recording.is_recorded(true) &&
          !recorded.recording.is_recorded(false));
    recorded.record(true);
    CHECK(recorded.on_host(std::vector<int>(N, 0))[0] == 4);
    // A second failure in a row is an error.
    machine().set("blocks_at_once", 2);
    CHECK(!recorded.recording.replay_on_host());
    recorded.record(true);
    machine().fail("cuGraphLaunch", CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    CHECK(thrown<DriverError>([&] { recorded.recording.replay_on_host(); }).code ==
          CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    CHECK(recorded.on_host(std::vector<int>(N, 0))[0] == 2);
}

CASE(recorded_launches_are_not_timed) {
    const auto device = open();
    Recorded recorded(device, recording_memory(device), plus_three);
    device->start_timing();
    recorded.record();
    CHECK(device->read_times().size() == 3);
    recorded.on_host(counted(N));
}

// ---- Threads

CASE(threads_call_one_device_at_once) {
    const auto device = open();
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 20; ++i) {
                Queue queue(device, device->own_stream());
                const Array<int> given = queue.upload(counted(N, 100 * t + i)), made = queue.empty<int>(N);
                queue.launch(add, GRID, made, given, N, 1);
                right += queue.read(made) == counted(N, 100 * t + i + 1);
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(right == 80);
    CHECK(machine().get("streams") <= 4);
}

CASE(the_driver_is_opened_by_two_threads_at_once) {
    std::barrier together(4);
    std::vector<std::thread> threads;
    std::atomic<const Driver*> found[4] = {};
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            together.arrive_and_wait();
            found[t] = &driver();
            const auto device = open();
            Queue queue(device, device->own_stream());
            static_cast<void>(queue.read(queue.zeros<int>(N)));
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(found[0] == found[1] && found[0] == found[2] && found[0] == found[3]);
    CHECK(machine().calls("cuInit") == 1);
}

int main(int count, char** arguments) { return run_case(count, arguments); }
