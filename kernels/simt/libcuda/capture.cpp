#include "capture.h"

#include <algorithm>

#include "memory.h"
#include "queue.h"

namespace simt::driver {

CUresult invalidate(const std::shared_ptr<Capture>& capture, CUresult code) {
    capture->is_invalid = true;
    return code;
}

CUresult record(const QueuePtr& queue, std::shared_ptr<Work> work) {
    Capture& capture = *queue->capture;
    if (capture.is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    auto node = std::make_shared<Node>();
    node->work = std::move(work);
    node->before = queue->tips;
    queue->tips = {static_cast<int>(capture.graph->nodes.size())};
    capture.graph->nodes.push_back(std::move(node));
    return CUDA_SUCCESS;
}

CUresult check_unsafe() {
    const ThreadState& self = this_thread();
    if (self.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
    bool is_forbidden = false;
    for (const auto& capture : machine.captures) {
        const bool own = capture->thread == self.number && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        const bool global =
            self.capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (!own && !global) continue;
        capture->is_invalid = is_forbidden = true;
    }
    if (!is_forbidden) return CUDA_SUCCESS;
    return refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "capture", "not allowed while a stream is captured");
}

CUresult check_implicit(const QueuePtr& queue) {
    if (queue != queue->context->legacy) return CUDA_SUCCESS;
    bool is_forbidden = false;
    for (const auto& capture : machine.captures) {
        const bool is_blocking = std::any_of(capture->queues.begin(), capture->queues.end(),
                                             [](const QueuePtr& captured) { return captured->is_blocking; });
        if (capture->context == queue->context && is_blocking) capture->is_invalid = is_forbidden = true;
    }
    if (!is_forbidden) return CUDA_SUCCESS;
    return refuse(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "capture",
                  "the legacy stream is used while a blocking stream is captured");
}

CUresult check_wait(const QueuePtr& queue) {
    if (queue->capture != nullptr)
        return refuse(invalidate(queue->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED), "capture",
                      "a wait for a stream that is captured");
    return check_implicit(queue);
}

CUresult check_wait(const Context& context) {
    bool is_forbidden = false;
    for (const auto& capture : machine.captures)
        if (capture->context == &context) capture->is_invalid = is_forbidden = true;
    if (!is_forbidden) return CUDA_SUCCESS;
    return refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "capture", "a wait for a context with a captured stream");
}

bool is_capturing_here() {
    const uint64_t number = this_thread().number;
    return std::any_of(machine.captures.begin(), machine.captures.end(),
                       [&](const auto& capture) { return capture->thread == number; });
}

namespace {

// Whether the queue's last captured work is before the origin's.
bool is_joined(const Capture& capture, const Queue& queue) {
    std::vector<bool> before(capture.graph->nodes.size(), false);
    std::vector<int> stack = capture.origin->tips;
    while (!stack.empty()) {
        const auto at = static_cast<size_t>(stack.back());
        stack.pop_back();
        if (before[at]) continue;
        before[at] = true;
        const auto& earlier = capture.graph->nodes[at]->before;
        stack.insert(stack.end(), earlier.begin(), earlier.end());
    }
    return std::all_of(queue.tips.begin(), queue.tips.end(),
                       [&](int tip) { return static_cast<bool>(before[static_cast<size_t>(tip)]); });
}

void end(const std::shared_ptr<Capture>& capture) {
    for (const QueuePtr& queue : capture->queues) {
        queue->capture.reset();
        queue->tips.clear();
    }
    std::erase(machine.captures, capture);
}

// Which nodes come before a node, of a graph with branches; empty if all are in one row.
using Order = std::vector<std::vector<bool>>;

Order order_of(const Graph& graph) {
    bool is_row = true;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
        const auto& before = graph.nodes[i]->before;
        is_row = is_row && (i == 0 || (before.size() == 1 && before[0] == static_cast<int>(i) - 1));
    }
    Order order;
    if (is_row) return order;
    for (const auto& node : graph.nodes) {
        std::vector<bool> all(graph.nodes.size(), false);
        for (const int one : node->before) {
            const auto at = static_cast<size_t>(one);
            all[at] = true;
            for (size_t i = 0; i < at; ++i) all[i] = all[i] || order[at][i];
        }
        order.push_back(std::move(all));
    }
    return order;
}

struct GraphExec : Object {
    std::vector<std::shared_ptr<Work>> works;
    std::shared_ptr<const Order> order;
    std::vector<Touch> touches;
    OpPtr last;  // launches of one graph run one after another
    GraphExec() : Object(Kind::graph_exec) {}
};

struct Replay : Work {
    std::vector<std::shared_ptr<Work>> works;
    std::shared_ptr<const Order> order;
    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_GRAPH; }
    const char* name() const override { return "a replay"; }

    void run(Op& op) override {
        std::vector<NodeAccess> accesses;
        for (size_t i = 0; i < works.size(); ++i) {
            if (!order->empty()) observe_accesses(&accesses, i);
            if (op.queue->context->error == CUDA_SUCCESS) works[i]->run(op);
            if (!order->empty()) settle(*op.queue);
        }
        observe_accesses(nullptr, 0);
        for (size_t i = 0; i < accesses.size(); ++i)
            for (size_t j = 0; j < i; ++j)
                if (races(accesses[j], accesses[i]))
                    return find("race", "two branches of a graph use the same memory, and one writes");
    }

private:
    bool races(const NodeAccess& first, const NodeAccess& second) const {
        return first.allocation == second.allocation && (first.writes || second.writes) && first.begin < second.end &&
               second.begin < first.end && first.node != second.node &&
               !(*order)[std::max(first.node, second.node)][std::min(first.node, second.node)];
    }
};

}  // namespace

extern "C" {

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
    SIMT_BEGIN(cuStreamIsCapturing, Needs::context);
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    QueuePtr queue;
    SIMT_TRY(queue_of(queue, stream, *context));
    SIMT_TRY(check_implicit(queue));
    *status = queue->capture == nullptr    ? CU_STREAM_CAPTURE_STATUS_NONE
              : queue->capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                           : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
    SIMT_BEGIN(cuStreamBeginCapture_v2, Needs::context);
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    QueuePtr queue;
    SIMT_TRY(queue_of(queue, stream, *context));
    if (queue->is_default)
        return refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "capture", "a default stream cannot be captured");
    if (queue->capture != nullptr)
        return refuse(invalidate(queue->capture, CUDA_ERROR_ILLEGAL_STATE), "capture",
                      "the stream is captured already");
    auto capture = std::make_shared<Capture>();
    capture->graph = std::make_shared<Graph>();
    capture->context = context;
    capture->origin = queue;
    capture->queues = {queue};
    capture->mode = mode;
    capture->thread = this_thread().number;
    queue->capture = capture;
    queue->tips.clear();
    machine.captures.push_back(capture);
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* out) {
    SIMT_BEGIN(cuStreamEndCapture, Needs::context);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = nullptr;
    QueuePtr queue;
    SIMT_TRY(queue_of(queue, stream, *context));
    const std::shared_ptr<Capture> capture = queue->capture;
    if (capture == nullptr) return refuse(CUDA_ERROR_ILLEGAL_STATE, "capture", "the stream is not captured");
    if (capture->origin != queue)
        return refuse(invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED), "capture",
                      "a capture ends on another stream than it began on");
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != this_thread().number)
        return refuse(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "capture",
                      "a capture ends in another thread than it began in");
    const bool is_whole = std::all_of(capture->queues.begin(), capture->queues.end(),
                                      [&](const QueuePtr& joined) { return is_joined(*capture, *joined); });
    end(capture);
    if (capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!is_whole)
        return refuse(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capture",
                      "a stream that joined the capture has work behind it");
    *out = as_handle<CUgraph>(register_object(capture->graph, context));
    return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    SIMT_BEGIN(cuThreadExchangeStreamCaptureMode, Needs::initialised);
    if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, this_thread().capture_mode);
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph handle, unsigned long long flags) {
    SIMT_BEGIN(cuGraphInstantiateWithFlags, Needs::context);
    if (out == nullptr || flags > 15) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Graph> graph;
    SIMT_TRY(get(graph, handle, Kind::graph, context));
    SIMT_TRY(check_unsafe());
    auto exec = std::make_shared<GraphExec>();
    exec->order = std::make_shared<const Order>(order_of(*graph));
    for (const auto& node : graph->nodes) {
        exec->works.push_back(node->work);
        exec->touches.insert(exec->touches.end(), node->work->touches.begin(), node->work->touches.end());
    }
    *out = as_handle<CUgraphExec>(register_object(exec, context));
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream) {
    SIMT_BEGIN(cuGraphLaunch, Needs::context);
    std::shared_ptr<GraphExec> exec;
    SIMT_TRY(get(exec, handle, Kind::graph_exec, context));
    QueuePtr queue;
    SIMT_TRY(queue_of(queue, stream, *context));
    if (queue->capture != nullptr)
        return refuse(invalidate(queue->capture, CUDA_ERROR_NOT_SUPPORTED), "capture",
                      "a graph is launched in a capture");
    for (const auto& work : exec->works) SIMT_TRY(work->check_again(*context));
    log(*context, "replay", exec->works.size());
    auto replay = std::make_shared<Replay>();
    replay->works = exec->works;
    replay->order = exec->order;
    replay->touches = exec->touches;
    if (exec->last != nullptr) queue->waits.push_back(exec->last);
    SIMT_TRY(submit(queue, std::move(replay)));
    exec->last = queue->last;
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph handle) {
    SIMT_BEGIN(cuGraphDestroy, Needs::context);
    std::shared_ptr<Graph> graph;
    SIMT_TRY(get(graph, handle, Kind::graph, context));
    for (const auto& node : graph->nodes)
        if (node->handle != 0) forget(node->handle);
    forget(graph->handle);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
    SIMT_BEGIN(cuGraphExecDestroy, Needs::context);
    std::shared_ptr<GraphExec> exec;
    SIMT_TRY(get(exec, handle, Kind::graph_exec, context));
    forget(exec->handle);
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
    SIMT_BEGIN(cuGraphGetNodes, Needs::context);
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Graph> graph;
    SIMT_TRY(get(graph, handle, Kind::graph, context));
    const size_t found = graph->nodes.size();
    for (size_t i = 0; nodes != nullptr && i < *count; ++i) {
        nodes[i] = nullptr;
        if (i >= found) continue;
        const auto& node = graph->nodes[i];
        nodes[i] = as_handle<CUgraphNode>(node->handle != 0 ? node->handle : register_object(node, context));
    }
    *count = nodes == nullptr ? found : std::min(*count, found);
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
    SIMT_BEGIN(cuGraphNodeGetType, Needs::context);
    if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Node> node;
    SIMT_TRY(get(node, handle, Kind::node, context));
    *type = node->work->type();
    return CUDA_SUCCESS;
}
}

}  // namespace simt::driver
