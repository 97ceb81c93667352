// The memory of work that runs twice, of this folder alone.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "recording.h"
#include "state.h"

namespace hopfuse::device {

// Blocks that are reused while a recording is made. A recording keeps all blocks alive, an array keeps its own.
class RecordingMemory : public std::enable_shared_from_this<RecordingMemory> {
public:
    struct Block {
        Owner owner;  // of the memory, whose address it is
        size_t nbytes;
        uint64_t number;
    };

    explicit RecordingMemory(std::shared_ptr<Device> device) : device_(std::move(device)) {}
    ~RecordingMemory();

    // A block of at least `nbytes`; it is free again when the lease is dropped.
    Block take(size_t nbytes, Owner& lease);
    uint64_t made();
    // Drops the blocks from this number on, which a failed run has made.
    void forget(uint64_t first);
    size_t nbytes();
    // A use of the memory on a stream waits for the one before, which may be on another.
    void begin_use(CUstream stream);
    // Waits for the last use.
    void wait() noexcept;
    void end_use(CUstream stream);

private:
    void release(uint64_t number);

    const std::shared_ptr<Device> device_;
    std::mutex mutex_;
    std::map<uint64_t, Block> blocks_;
    std::set<std::pair<size_t, uint64_t>> free_;  // (bytes, number)
    uint64_t made_ = 0;
    CUevent over_ = nullptr;
};

// What the first run was given, and the second is given again in the same order. In the first run, memory that is dropped is reused
// by later requests. The second run cannot do the same, because other blocks are free then.
class Tape {
public:
    Tape(std::shared_ptr<Device> device, std::shared_ptr<RecordingMemory> memory)
        : device_(std::move(device)), memory_(std::move(memory)) {}

    bool is_recording() const { return is_recording_; }
    void begin_first();
    void begin_recorded();
    // At the end of the first run: the second is given the blocks of these arrays next to each other, outside the memory that is
    // reused, so that they are read in one copy.
    void place_results(std::span<const void* const> results, CUstream stream);
    void check_end() const;  // that the second run has made all requests of the first
    void clear();            // forgets the first run; its memory stays with the RecordingMemory
    void abandon();          // gives back the memory that a failed first run has made

    Owner take(size_t nbytes);
    // Constants: in the first run the memory for arrays that are copied to it; in the second the same, if the bytes are the same.
    Owner add_constant(std::span<const void* const> data, std::span<const size_t> nbytes, size_t total);
    Owner next_constant(std::span<const void* const> data, std::span<const size_t> nbytes);
    void keep(Owner owner);
    // The number of the block that an address is in, those of results being one; or -1.
    int64_t block_of(const void* address) const;

private:
    struct Constant {
        std::vector<size_t> nbytes;
        std::string bytes;
        Owner memory;
    };
    const std::shared_ptr<Device> device_;
    const std::shared_ptr<RecordingMemory> memory_;
    bool is_recording_ = false;
    uint64_t first_ = 0;  // number of the first block that the first run made
    std::vector<std::pair<size_t, RecordingMemory::Block>> given_;
    std::vector<void*> placed_;  // of given_: where the second run has it instead, or null
    Owner results_;
    size_t results_bytes_ = 0;
    size_t next_ = 0;
    // Constants have memory of their own, because replays write to the memory of arrays that the first run dropped.
    std::vector<Constant> constants_;
    size_t next_constant_ = 0;
    Owner chunk_;
    size_t chunk_used_ = 0;
    std::vector<Owner> kept_;
};

}  // namespace hopfuse::device
