#include "queue.h"

#include <algorithm>
#include <chrono>

#include "arena.h"
#include "capture.h"
#include "memory.h"

namespace simt::driver {

// ------------------------------------------------------------------------------------------------
// Clocks

namespace {
bool before_queue(const std::pair<uint32_t, uint32_t>& entry, uint32_t queue) { return entry.first < queue; }
}  // namespace

uint32_t count_of(const Clock& clock, uint32_t queue) {
    const auto found = std::lower_bound(clock.begin(), clock.end(), queue, before_queue);
    return found != clock.end() && found->first == queue ? found->second : 0;
}

void advance(Clock& clock, uint32_t queue, uint32_t count) {
    const auto found = std::lower_bound(clock.begin(), clock.end(), queue, before_queue);
    if (found == clock.end() || found->first != queue) clock.insert(found, {queue, count});
    else found->second = std::max(found->second, count);
}

void merge(Clock& clock, const Clock& other) {
    for (const auto& [queue, count] : other) advance(clock, queue, count);
}

bool Op::is_after(const Op& other) const {
    return other.queue->is_retired || count_of(clock, other.queue->number) >= other.number;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// ------------------------------------------------------------------------------------------------
// Queues

QueuePtr make_queue(Context& context, bool is_blocking) {
    auto queue = std::make_shared<Queue>();
    queue->number = machine.next_queue++;
    queue->context = &context;
    queue->is_blocking = is_blocking;
    context.queues.push_back(queue);
    return queue;
}

void forget_work(Queue& queue) {
    queue.last.reset();
    queue.waits.clear();
    queue.unsettled.clear();
}

void retire(const QueuePtr& queue) {
    queue->is_dropped = true;
    // While its work may still run, later work may race with it.
    auto& queues = queue->context->queues;
    for (const QueuePtr& one : queues)
        one->is_retired = one->is_dropped && count_of(machine.known, one->number) >= one->length;
    std::erase_if(machine.known, [&](const auto& entry) {
        return std::any_of(queues.begin(), queues.end(),
                           [&](const QueuePtr& one) { return one->is_retired && one->number == entry.first; });
    });
    for (const QueuePtr& one : queues)
        if (one->is_retired) forget_work(*one);
    std::erase_if(queues, [](const QueuePtr& one) { return one->is_retired; });
}

CUresult queue_of(QueuePtr& out, CUstream stream, Context& context) {
    if (stream == nullptr || stream == legacy_stream()) {
        if (context.legacy == nullptr) {
            context.legacy = make_queue(context, true);
            context.legacy->is_default = true;
        }
        out = context.legacy;
    } else if (stream == per_thread_stream()) {
        QueuePtr& own = context.of_threads[this_thread().number];
        if (own == nullptr) {
            own = make_queue(context, true);
            own->is_default = true;
        }
        out = own;
    } else {
        std::shared_ptr<Stream> found;
        SIMT_TRY(get(found, stream, Kind::stream, &context));
        out = found->queue;
    }
    return CUDA_SUCCESS;
}

// ------------------------------------------------------------------------------------------------
// Queueing

CUresult check(const std::vector<Touch>& touches, const Context& context) {
    for (const Touch& touch : touches) {
        const Allocation& a = *touch.allocation;
        const std::string place =
            text("%llu bytes at byte %llu of an allocation of %llu", static_cast<unsigned long long>(touch.size),
                 static_cast<unsigned long long>(touch.begin), static_cast<unsigned long long>(a.size));
        if (a.is_free) return refuse(CUDA_ERROR_ILLEGAL_ADDRESS, "memory", "freed memory is used: " + place);
        if (touch.begin + touch.size > a.size)
            return refuse(CUDA_ERROR_ILLEGAL_ADDRESS, "memory", "beyond an allocation: " + place);
        if (a.context != &context)
            return refuse(CUDA_ERROR_ILLEGAL_ADDRESS, "memory",
                          text("memory of device %d is used on device %d: ", a.device, context.device) + place);
    }
    return CUDA_SUCCESS;
}

OpPtr enqueue(const QueuePtr& queue, std::shared_ptr<Work> work) {
    auto op = std::make_shared<Op>();
    op->queue = queue;
    op->name = work->name();
    op->work = std::move(work);
    op->number = ++queue->length;
    op->clock = machine.known;
    op->before.reserve(1 + queue->waits.size());
    const auto after = [&](const OpPtr& other) {
        if (other == nullptr) return;
        merge(op->clock, other->clock);
        if (!other->done) op->before.push_back(other);
    };
    after(queue->last);
    for (const OpPtr& wait : queue->waits) after(wait);
    queue->waits.clear();
    if (queue->is_blocking) {
        Context& context = *queue->context;
        if (queue == context.legacy) {
            for (const QueuePtr& other : context.queues)
                if (other->is_blocking && other != queue) after(other->last);
        } else if (context.legacy != nullptr) {
            after(context.legacy->last);
        }
    }
    advance(op->clock, queue->number, op->number);
    queue->last = op;
    return op;
}

CUresult submit(const QueuePtr& queue, std::shared_ptr<Work> work, bool is_pageable) {
    if (!is_pageable) ++*this_thread().calls;
    SIMT_TRY(check(work->touches, *queue->context));
    if (queue->capture != nullptr) return record(queue, std::move(work));
    SIMT_TRY(check_implicit(queue));
    if (!machine.noop) enqueue(queue, std::move(work));
    return CUDA_SUCCESS;
}

// ------------------------------------------------------------------------------------------------
// Running

namespace {

void run(const OpPtr& op) {
    op->done = true;
    op->before.clear();
    const std::shared_ptr<Work> work = std::move(op->work);
    if (work == nullptr) return;
    Context& context = *op->queue->context;
    if (context.error != CUDA_SUCCESS || context.is_destroyed) return;
    for (const Touch& touch : work->touches)
        if (touch.allocation->is_gone)
            return find("race",
                        text("work on an allocation of %llu bytes was freed before it ran, and no order is known",
                             static_cast<unsigned long long>(touch.allocation->size)));
    work->run(*op);
}

}  // namespace

void finish(const OpPtr& op) {
    if (op == nullptr || op->done) return;
    std::vector<OpPtr> stack = {op};
    while (!stack.empty()) {
        const OpPtr one = stack.back();
        const size_t size = stack.size();
        if (!one->done)
            for (const OpPtr& earlier : one->before)
                if (!earlier->done) stack.push_back(earlier);
        if (stack.size() > size) continue;
        stack.pop_back();
        if (!one->done) run(one);
    }
}

void advance_one(const OpPtr& op) {
    if (op == nullptr || op->done) return;
    OpPtr one = op;
    for (;;) {
        const auto pending =
            std::find_if(one->before.begin(), one->before.end(), [](const OpPtr& other) { return !other->done; });
        if (pending == one->before.end()) break;
        one = OpPtr(*pending);
    }
    run(one);
}

void wait_for(Context& context, const OpPtr& op) {
    ++*this_thread().calls;
    finish(op);
    settle(context);
    if (op != nullptr) merge(machine.known, op->clock);
    release_cached(context);
}

void wait_for_context(Context& context) {
    ++*this_thread().calls;
    // A copy, as work may be queued meanwhile.
    const std::vector<QueuePtr> queues = context.queues;
    for (const QueuePtr& queue : queues) {
        finish(queue->last);
        if (queue->last != nullptr) merge(machine.known, queue->last->clock);
        for (const OpPtr& wait : queue->waits) {
            finish(wait);
            merge(machine.known, wait->clock);
        }
    }
    settle(context);
    release_cached(context);
}

// ------------------------------------------------------------------------------------------------
// What kernels have written

namespace {

// Whether two operations of one queue come after the same operations of others.
bool know_the_same(const Op& first, const Op& second) {
    const uint32_t own = second.queue->number;
    return std::equal(first.clock.begin(), first.clock.end(), second.clock.begin(), second.clock.end(),
                      [&](const auto& a, const auto& b) { return a == b || (a.first == own && b.first == own); });
}

}  // namespace

void settle_before(const Op& op, const AllocationPtr& a) {
    if (a->writer != nullptr && (a->writer->queue != op.queue || !know_the_same(*a->writer, op))) settle(a);
}

void note_writer(const OpPtr& op, const Touch& touch) {
    const AllocationPtr& a = touch.allocation;
    settle_before(*op, a);
    if (a->writer == nullptr) {
        a->writer_begin = touch.begin;
        op->queue->unsettled.push_back(a);
    }
    a->writer_begin = std::min(a->writer_begin, touch.begin);
    hash_chunks(*a, a->writer_begin, a->size);
    a->writer = op;
}

void settle(const AllocationPtr& a) {
    if (a->writer == nullptr) return;
    const OpPtr op = std::move(a->writer);
    a->writer = nullptr;
    const uint64_t begin = a->writer_begin;
    const Touch touch = {a, begin, a->size - begin, Touch::may_write};
    record_access(op, touch, begin, a->size, false);
    const std::vector<uint64_t> before = a->hashes;
    forget_hashes(*a, begin, a->size);
    hash_chunks(*a, begin, a->size);
    for (uint64_t i = begin / chunk_bytes; i < before.size(); ++i) {
        if (a->hashes[i] == before[i]) continue;
        uint64_t end = i + 1;
        while (end < before.size() && a->hashes[end] != before[end]) ++end;
        record_access(op, touch, std::max(begin, i * chunk_bytes), std::min(a->size, end * chunk_bytes), true);
        i = end;
    }
}

void settle(Queue& queue) {
    const std::vector<AllocationPtr> all = std::move(queue.unsettled);
    queue.unsettled.clear();
    for (const AllocationPtr& a : all)
        if (a->writer != nullptr && a->writer->queue.get() == &queue) settle(a);
}

void settle(const Context& context) {
    for (const QueuePtr& queue : context.queues)
        if (!queue->unsettled.empty()) settle(*queue);
}

// ------------------------------------------------------------------------------------------------
// Races

namespace {
std::vector<NodeAccess>* observed = nullptr;
size_t observed_node = 0;
}  // namespace

void observe_accesses(std::vector<NodeAccess>* accesses, size_t node) {
    observed = accesses;
    observed_node = node;
}

void record_access(const OpPtr& op, const Touch& touch, uint64_t begin, uint64_t end, bool writes) {
    if (observed != nullptr) observed->push_back({touch.allocation.get(), begin, end, writes, observed_node});
    auto& accesses = touch.allocation->accesses;
    size_t kept = 0;
    const Op* rival = nullptr;
    for (size_t i = 0; i < accesses.size(); ++i) {
        Access& other = accesses[i];
        const bool overlaps = begin < other.end && other.begin < end;
        const bool is_after = other.op == op || op->is_after(*other.op);
        if (overlaps && (writes || other.writes) && !is_after && !other.op->is_after(*op)) rival = other.op.get();
        // What everything later than this comes after, too, if it comes after this.
        if (is_after && begin <= other.begin && other.end <= end && (writes || !other.writes)) continue;
        if (kept != i) accesses[kept] = std::move(other);
        ++kept;
    }
    accesses.resize(kept);
    const std::string rivals = rival == nullptr ? "" : text("%s and %s", rival->name, op->name);
    accesses.push_back({begin, end, writes, op});
    if (rival != nullptr)
        find("race",
             rivals + text(": %llu bytes of an allocation of %llu are used on two streams, and no order is known",
                           static_cast<unsigned long long>(end - begin),
                           static_cast<unsigned long long>(touch.allocation->size)));
}

}  // namespace simt::driver
