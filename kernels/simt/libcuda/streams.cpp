// Streams, events, waits.
#include <algorithm>

#include "capture.h"
#include "memory.h"
#include "queue.h"

namespace simt::driver {

namespace {

struct Record : Work {
    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_EVENT_RECORD; }
    const char* name() const override { return "an event"; }
    void run(Op& op) override {
        settle(*op.queue);  // what comes after the event knows nothing of what comes after it here
        op.seconds = now();
    }
};

bool is_over(const Queue& queue) {
    const auto over = [](const OpPtr& op) { return op == nullptr || op->done; };
    return over(queue.last) && std::all_of(queue.waits.begin(), queue.waits.end(), over);
}

void wait_for(Context& context, const Queue& queue) {
    const std::vector<OpPtr> waits = queue.waits;
    for (const OpPtr& wait : waits) {
        finish(wait);
        merge(machine.known, wait->clock);
    }
    wait_for(context, queue.last);
}

// An event of a capture is no moment that could be waited for.
CUresult check_event(const Event& event) {
    if (event.capture == nullptr) return CUDA_SUCCESS;
    return refuse(invalidate(event.capture, CUDA_ERROR_CAPTURED_EVENT), "capture",
                  "the event was recorded in a capture");
}

CUresult wait_in_capture(const QueuePtr& queue, const Event& event) {
    const auto& capture = event.capture;
    if (capture == nullptr) {
        if (event.op == nullptr) return CUDA_SUCCESS;
        return refuse(invalidate(queue->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION), "capture",
                      "captured work waits for an event from outside the capture");
    }
    if (queue->is_default)
        return refuse(invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT), "capture",
                      "a default stream waits for captured work");
    if (capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (queue->capture == nullptr) {
        queue->capture = capture;
        queue->tips = event.tips;
        capture->queues.push_back(queue);
        return CUDA_SUCCESS;
    }
    if (queue->capture != capture) {
        invalidate(queue->capture, CUDA_SUCCESS);
        return refuse(invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_MERGE), "capture", "two captures meet");
    }
    for (const int tip : event.tips)
        if (std::find(queue->tips.begin(), queue->tips.end(), tip) == queue->tips.end()) queue->tips.push_back(tip);
    return CUDA_SUCCESS;
}

CUresult make_stream(Context& context, CUstream* out, unsigned flags, int priority) {
    if (out == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    auto stream = std::make_shared<Stream>();
    stream->queue = make_queue(context, flags != CU_STREAM_NON_BLOCKING);
    stream->priority = priority;
    *out = as_handle<CUstream>(register_object(stream, &context));
    return CUDA_SUCCESS;
}

CUresult elapsed(float* milliseconds, CUevent begin_handle, CUevent end_handle, Context* context) {
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Event> first, last;
    SIMT_TRY(get(first, begin_handle, Kind::event, context));
    SIMT_TRY(get(last, end_handle, Kind::event, context));
    for (const auto& event : {first, last})
        if (!event->has_time || event->op == nullptr)
            return refuse(CUDA_ERROR_INVALID_HANDLE, "handle", "an event without a time");
    if (!first->op->done || !last->op->done) return CUDA_ERROR_NOT_READY;
    *milliseconds = static_cast<float>(1e3 * (last->op->seconds - first->op->seconds));
    return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
    SIMT_BEGIN(cuStreamCreate, Needs::context);
    return make_stream(*context, stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
    SIMT_BEGIN(cuStreamCreateWithPriority, Needs::context);
    return make_stream(*context, stream, flags, priority);
}

// What is queued still runs, once something waits for it.
CUresult cuStreamDestroy_v2(CUstream handle) {
    SIMT_BEGIN(cuStreamDestroy_v2, Needs::context);
    std::shared_ptr<Stream> stream;
    SIMT_TRY(get(stream, handle, Kind::stream, context));
    if (stream->queue->capture != nullptr)
        return refuse(invalidate(stream->queue->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED), "capture",
                      "the stream is captured");
    forget(stream->handle);
    retire(stream->queue);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
    SIMT_BEGIN(cuStreamSynchronize, Needs::context);
    QueuePtr queue;
    SIMT_TRY(queue_of(queue, stream, *context));
    SIMT_TRY(check_wait(queue));
    log(*context, "wait", 0, "stream");
    wait_for(*context, *queue);
    return context->error;
}

CUresult cuStreamQuery(CUstream stream) {
    SIMT_BEGIN(cuStreamQuery, Needs::context);
    QueuePtr queue;
    SIMT_TRY(queue_of(queue, stream, *context));
    SIMT_TRY(check_wait(queue));
    if (is_over(*queue)) {
        wait_for(*context, *queue);
        return context->error;
    }
    advance_one(queue->last);  // so that a loop of queries ends
    if (queue->last == nullptr || queue->last->done)
        for (const OpPtr& wait : queue->waits) finish(wait);
    return context->error != CUDA_SUCCESS ? context->error : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned flags) {
    SIMT_BEGIN(cuStreamWaitEvent, Needs::context);
    if (flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    QueuePtr queue;
    SIMT_TRY(queue_of(queue, stream, *context));
    std::shared_ptr<Event> event;
    SIMT_TRY(get(event, handle, Kind::event, nullptr));  // another device's event may be waited for
    ++*this_thread().calls;
    if (queue->capture != nullptr || event->capture != nullptr) return wait_in_capture(queue, *event);
    SIMT_TRY(check_implicit(queue));
    if (event->op != nullptr && !machine.noop) queue->waits.push_back(event->op);
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* out, unsigned flags) {
    SIMT_BEGIN(cuEventCreate, Needs::context);
    if (out == nullptr || flags > (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING)) return CUDA_ERROR_INVALID_VALUE;
    auto event = std::make_shared<Event>();
    event->has_time = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    *out = as_handle<CUevent>(register_object(event, context));
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent handle) {
    SIMT_BEGIN(cuEventDestroy_v2, Needs::context);
    std::shared_ptr<Event> event;
    SIMT_TRY(get(event, handle, Kind::event, context));
    forget(event->handle);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent handle, CUstream stream) {
    SIMT_BEGIN(cuEventRecord, Needs::context);
    std::shared_ptr<Event> event;
    SIMT_TRY(get(event, handle, Kind::event, context));
    QueuePtr queue;
    SIMT_TRY(queue_of(queue, stream, *context));
    ++*this_thread().calls;
    event->capture.reset();
    event->tips.clear();
    event->op.reset();
    if (queue->capture != nullptr) {
        if (queue->capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        event->capture = queue->capture;
        event->tips = queue->tips;
        return CUDA_SUCCESS;
    }
    SIMT_TRY(check_implicit(queue));
    if (!machine.noop) event->op = enqueue(queue, std::make_shared<Record>());
    return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent handle) {
    SIMT_BEGIN(cuEventSynchronize, Needs::context);
    std::shared_ptr<Event> event;
    SIMT_TRY(get(event, handle, Kind::event, context));
    SIMT_TRY(check_event(*event));
    log(*context, "wait", 0, "event");
    wait_for(*context, event->op);
    return context->error;
}

CUresult cuEventQuery(CUevent handle) {
    SIMT_BEGIN(cuEventQuery, Needs::context);
    std::shared_ptr<Event> event;
    SIMT_TRY(get(event, handle, Kind::event, context));
    SIMT_TRY(check_event(*event));
    SIMT_TRY(check_unsafe());
    if (event->op == nullptr || event->op->done) {
        wait_for(*context, event->op);
        return context->error;
    }
    advance_one(event->op);
    return context->error != CUDA_SUCCESS ? context->error : CUDA_ERROR_NOT_READY;
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent first, CUevent last) {
    SIMT_BEGIN(cuEventElapsedTime, Needs::context);
    return elapsed(milliseconds, first, last, context);
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent first, CUevent last) {
    SIMT_BEGIN(cuEventElapsedTime_v2, Needs::context);
    return elapsed(milliseconds, first, last, context);
}

CUresult cuCtxSynchronize() {
    SIMT_BEGIN(cuCtxSynchronize, Needs::context);
    SIMT_TRY(check_wait(*context));
    log(*context, "wait", 0, "context");
    wait_for_context(*context);
    return context->error;
}
}

}  // namespace simt::driver
