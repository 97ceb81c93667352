// Copies and memsets.
#include <cstring>

#include "arena.h"
#include "capture.h"
#include "memory.h"
#include "queue.h"

namespace simt::driver {

namespace {

uint64_t address_of(const Touch& touch) { return touch.allocation->begin + touch.begin; }

void note(Op& op, const Touch& touch) {
    const bool writes = touch.use == Touch::writes;
    if (writes) settle(touch.allocation);
    else settle_before(op, touch.allocation);
    record_access(op.shared_from_this(), touch, touch.begin, touch.begin + touch.size, writes);
    if (writes) forget_hashes(*touch.allocation, touch.begin, touch.begin + touch.size);
}

// What an asynchronous copy of pageable memory needs: that the host does nothing but wait for it.
struct Pageable {
    std::shared_ptr<uint64_t> calls = this_thread().calls;
    uint64_t submitted = *calls;
    bool is_valid() const { return *calls <= submitted + (calls == this_thread().calls ? 1 : 0); }
};

struct HostCopy : Work {
    bool is_upload;
    char* host;
    PinnedPtr pinned;
    Pageable pageable;

    HostCopy(bool is_upload, uintptr_t host, const Touch& touch, PinnedPtr pinned)
        : is_upload(is_upload), host(reinterpret_cast<char*>(host)), pinned(std::move(pinned)) {
        touches = {touch};
    }
    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEMCPY; }
    const char* name() const override { return is_upload ? "an upload" : "a download"; }

    void run(Op& op) override {
        const Touch& touch = touches[0];
        note(op, touch);
        if (pinned != nullptr && pinned->is_free) find("pinned", "pinned memory was freed before a copy of it ran");
        unsigned char* const device = bytes_at(address_of(touch));
        if (pinned == nullptr && !pageable.is_valid()) {
            find("pageable", "a copy of pageable memory was queued, and the host went on before it ran");
            if (is_upload) fill(device, touch.size, fresh_word);
            return;
        }
        if (is_upload) {
            memcpy(device, host, touch.size);
        } else {
            find_unwritten(touch);
            memcpy(host, device, touch.size);
        }
    }

    // Alignment may leave bytes between arrays of one allocation that nobody writes: such a run ends at a multiple of some power
    // of two up to 256, and is shorter. At the end of the allocation it is not that.
    static bool is_padding(const Touch& touch, uint64_t begin, uint64_t end) {
        if (end == touch.begin + touch.size) return false;
        for (uint64_t unit = 8; unit <= 256; unit *= 2)
            if (end % unit == 0 && end - begin < unit) return true;
        return false;
    }

    static void find_unwritten(const Touch& touch) {
        const unsigned char* const data = bytes_at(touch.allocation->begin);
        const uint64_t last = touch.begin + touch.size;
        const auto holds = [&](uint64_t i) {
            uint32_t word;
            memcpy(&word, data + i, 4);
            return word == fresh_word || word == freed_word;
        };
        for (uint64_t i = (touch.begin + 3) / 4 * 4; i + 4 <= last;) {
            if (!holds(i)) {
                i += 4;
                continue;
            }
            uint64_t end = i + 4;
            while (end + 4 <= last && holds(end)) end += 4;
            if (!is_padding(touch, i, end))
                return find("uninitialised",
                            text("%llu bytes at byte %llu of an allocation of %llu are read that nothing has written",
                                 static_cast<unsigned long long>(end - i), static_cast<unsigned long long>(i),
                                 static_cast<unsigned long long>(touch.allocation->size)));
            i = end;
        }
    }
};

struct DeviceCopy : Work {
    DeviceCopy(const Touch& target, const Touch& source) { touches = {target, source}; }
    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEMCPY; }
    const char* name() const override { return "a copy"; }
    void run(Op& op) override {
        for (const Touch& touch : touches) note(op, touch);
        memmove(bytes_at(address_of(touches[0])), bytes_at(address_of(touches[1])), touches[0].size);
    }
};

struct Clear : Work {
    uint32_t word;
    Clear(const Touch& target, uint32_t word) : word(word) { touches = {target}; }
    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEMSET; }
    const char* name() const override { return "a memset"; }
    void run(Op& op) override {
        note(op, touches[0]);
        fill(bytes_at(address_of(touches[0])), touches[0].size, word);
    }
};

CUresult copy_host(Context& context, bool is_upload, uintptr_t host, CUdeviceptr device, size_t bytes,
                   CUstream stream) {
    QueuePtr queue;
    SIMT_TRY(queue_of(queue, stream, context));
    if (bytes == 0) return CUDA_SUCCESS;
    Touch touch;
    SIMT_TRY(touch_of(touch, device, bytes, is_upload ? Touch::writes : Touch::reads));
    if (host == 0 || in_arena(host))
        return refuse(CUDA_ERROR_INVALID_VALUE, "memory", "the host's side of a copy is no memory of the host");
    PinnedPtr pinned = pinned_at(host);
    if (pinned != nullptr && pinned->is_free)
        return refuse(CUDA_ERROR_INVALID_VALUE, "pinned", "freed pinned memory is copied");
    if (pinned != nullptr && host + bytes > pinned->begin + pinned->size)
        return refuse(CUDA_ERROR_INVALID_VALUE, "pinned", "beyond pinned memory");
    if (pinned == nullptr && queue->capture != nullptr)
        return refuse(invalidate(queue->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED), "capture",
                      "pageable memory is copied in a capture");
    log(context, is_upload ? "upload" : "download", bytes);
    const bool is_pageable = pinned == nullptr;
    return submit(queue, std::make_shared<HostCopy>(is_upload, host, touch, std::move(pinned)), is_pageable);
}

CUresult clear(Context& context, CUdeviceptr target, uint32_t word, size_t bytes, CUstream stream) {
    QueuePtr queue;
    SIMT_TRY(queue_of(queue, stream, context));
    if (bytes == 0) return CUDA_SUCCESS;
    Touch touch;
    SIMT_TRY(touch_of(touch, target, bytes, Touch::writes));
    log(context, "clear", bytes);
    return submit(queue, std::make_shared<Clear>(touch, word));
}

}  // namespace

extern "C" {

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void* source, size_t bytes, CUstream stream) {
    SIMT_BEGIN(cuMemcpyHtoDAsync_v2, Needs::context);
    return copy_host(*context, true, reinterpret_cast<uintptr_t>(source), target, bytes, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void* target, CUdeviceptr source, size_t bytes, CUstream stream) {
    SIMT_BEGIN(cuMemcpyDtoHAsync_v2, Needs::context);
    return copy_host(*context, false, reinterpret_cast<uintptr_t>(target), source, bytes, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream) {
    SIMT_BEGIN(cuMemcpyDtoDAsync_v2, Needs::context);
    QueuePtr queue;
    SIMT_TRY(queue_of(queue, stream, *context));
    if (bytes == 0) return CUDA_SUCCESS;
    Touch to, from;
    SIMT_TRY(touch_of(to, target, bytes, Touch::writes));
    SIMT_TRY(touch_of(from, source, bytes, Touch::reads));
    if (to.allocation == from.allocation && to.begin < from.begin + bytes && from.begin < to.begin + bytes)
        return refuse(CUDA_ERROR_INVALID_VALUE, "memory", "the two sides of a copy overlap");
    log(*context, "copy", bytes);
    return submit(queue, std::make_shared<DeviceCopy>(to, from));
}

CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t count, CUstream stream) {
    SIMT_BEGIN(cuMemsetD8Async, Needs::context);
    return clear(*context, target, value * 0x01010101u, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr target, unsigned value, size_t count, CUstream stream) {
    SIMT_BEGIN(cuMemsetD32Async, Needs::context);
    if (target % 4 != 0) return refuse(CUDA_ERROR_INVALID_VALUE, "memory", "a misaligned address");
    return clear(*context, target, value, 4 * count, stream);
}
}

}  // namespace simt::driver
