// Captures: work that is recorded and not run, and the graphs that they make.
#pragma once

#include "state.h"

namespace simt::driver {

struct Node : Object {
    std::shared_ptr<Work> work;
    std::vector<int> before;  // places in the graph
    Node() : Object(Kind::node) {}
};

struct Graph : Object {
    std::vector<std::shared_ptr<Node>> nodes;
    Graph() : Object(Kind::graph) {}
};

struct Capture {
    std::shared_ptr<Graph> graph;
    Context* context = nullptr;
    QueuePtr origin;
    std::vector<QueuePtr> queues;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    uint64_t thread = 0;
    bool is_invalid = false;
};

// Adds work to the graph of the queue's capture.
CUresult record(const QueuePtr& queue, std::shared_ptr<Work> work);
// The capture can only be ended now; returns the code.
CUresult invalidate(const std::shared_ptr<Capture>& capture, CUresult code);
// Of a call that a capture of this thread, or of another one in global mode, forbids.
CUresult check_unsafe();
// Of work on the legacy stream, which a blocking stream's capture forbids.
CUresult check_implicit(const QueuePtr& queue);
// Of a wait for a queue or for a context.
CUresult check_wait(const QueuePtr& queue);
CUresult check_wait(const Context& context);
// Whether the calling thread captures something.
bool is_capturing_here();

}  // namespace simt::driver
