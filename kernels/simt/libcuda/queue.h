// Queued work: it runs when something waits for it, and only as far as needed.
#pragma once

#include "state.h"

namespace simt::driver {

// Queues work, or adds it to the recording that the queue is in.
CUresult submit(const QueuePtr& queue, std::shared_ptr<Work> work, bool is_pageable = false);
// The same, without a recording; the operation. `work` may be null.
OpPtr enqueue(const QueuePtr& queue, std::shared_ptr<Work> work);

// Runs an operation and what must end before it.
void finish(const OpPtr& op);
// Runs one of them.
void advance_one(const OpPtr& op);
// The host has waited for it: whatever it queues later comes after.
void wait_for(Context& context, const OpPtr& op);
void wait_for_context(Context& context);

QueuePtr make_queue(Context& context, bool is_blocking);
// A queue that is given up; its work stays queued.
void retire(const QueuePtr& queue);
void forget_work(Queue& queue);
// Of a stream's handle in the current context, the default ones included.
CUresult queue_of(QueuePtr& out, CUstream stream, Context& context);

// Of memory that work uses: it must be alive, and of the context's device.
CUresult check(const std::vector<Touch>& touches, const Context& context);
// Notes what work did to memory, and finds whether other work did so without an order.
void record_access(const OpPtr& op, const Touch& touch, uint64_t begin, uint64_t end, bool writes);

// A kernel may have written to memory. Whether it did is looked at later, once for several kernels of a queue, as if the last one
// had: before anything else touches the memory, before the queue learns of other work, and before events and the host learn of its.
void note_writer(const OpPtr& op, const Touch& touch);
void settle_before(const Op& op, const AllocationPtr& allocation);  // unless it may stay open, if `op` does not write
void settle(const AllocationPtr& allocation);
void settle(Queue& queue);
void settle(const Context& context);

// What the nodes of a graph do to memory, while a replay of it runs.
struct NodeAccess {
    const Allocation* allocation;
    uint64_t begin, end;
    bool writes;
    size_t node;
};
void observe_accesses(std::vector<NodeAccess>* accesses, size_t node);

double now();

}  // namespace simt::driver
