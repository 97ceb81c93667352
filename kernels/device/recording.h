// Work that is recorded once and replayed as one graph, with fixed memory.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "device.h"

namespace hopfuse::device {

// Blocks of fixed memory of one recording, or of several that are never replayed at the same time. Replays write to the memory of
// the first run, including memory that the run dropped and reused.
class RecordingMemory;
std::shared_ptr<RecordingMemory> recording_memory(std::shared_ptr<Device> device);
size_t recording_bytes(const RecordingMemory& memory);

// Work with fixed shapes. It runs twice: first normally, which allocates memory and constants and loads functions, and then recorded,
// without allocating, uploading or waiting; both runs make the same requests in the same order. Copies of the inputs from pinned
// memory, and of the results to it, are part of the recording for the host. A recording keeps what it uses alive.
class Recording {
public:
    // An array of the inputs: its bytes.
    Recording(std::shared_ptr<Device> device, std::shared_ptr<RecordingMemory> memory,
              std::span<const size_t> input_bytes);
    ~Recording();

    // The inputs on the device, for the work.
    Array<std::byte> input(size_t number) const;
    // The same in pinned host memory; valid values must be there before the first run.
    std::byte* staged(size_t number) const;

    // A run: begin, queue work on queue(), then end with the results. The first run is begun with `records` false; in a recorded
    // run its results are next to each other, and end_recorded adds their copy to pinned memory if `for_host`.
    Queue& begin(const Stream& after, bool records, bool for_host);
    void end_first(std::span<const void* const> results = {});
    void end_recorded(std::span<const void* const> results, std::span<const size_t> nbytes);
    void abandon();  // after an exception in a run: frees what the run made

    bool has_run() const;  // whether there was a first run, of which recorded runs can be made
    bool is_recorded(bool for_host) const;
    // Replays with the inputs in staged(), and waits; results are in result(number), until the next replay. It runs after what is
    // queued on `after`, a stream on which the caller may have changed arrays that the work reads. False: grids of the recording no
    // longer run at once, because another process took its share of the device; nothing ran, and all runs must be made anew.
    bool replay_on_host(const Stream* after = nullptr);
    const std::byte* result(size_t number) const;
    // Lets a queue wait for the replay before, which may be on another stream: to be called before inputs are written to input().
    void begin_use(Queue& queue);
    // Queues a replay on a stream, with the inputs on the device in input(); results are copied to `to` there. Replays of one memory
    // wait for each other on the device, not on the host. False: as above.
    bool replay(Queue& queue, std::span<void* const> to);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace hopfuse::device
