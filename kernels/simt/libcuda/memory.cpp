#include "memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "arena.h"
#include "capture.h"
#include "queue.h"

namespace simt::driver {

namespace {

constexpr uint64_t kept_pinned_bytes = uint64_t{64} << 20;

Device& device_of(const Context& context) { return machine.devices[static_cast<size_t>(context.device)]; }

AllocationPtr make(Context& context, uint64_t size) {
    AllocationPtr made = allocate(context.device, size);
    if (made != nullptr) made->context = &context;
    return made;
}

// A pool gives memory out in the order of a stream: other streams may use it only after that.
struct AllocationWork : Work {
    explicit AllocationWork(const AllocationPtr& a) { touches = {{a, 0, a->size, Touch::writes}}; }
    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEM_ALLOC; }
    const char* name() const override { return "an allocation"; }
    void run(Op& op) override {
        const Touch& touch = touches[0];
        settle(touch.allocation);
        record_access(op.shared_from_this(), touch, 0, touch.size, true);
        if (!touch.allocation->of_graph) return;
        fill(bytes_at(touch.allocation->begin), touch.size, fresh_word);
        forget_hashes(*touch.allocation, 0, touch.size);
    }
};

struct FreeWork : Work {
    explicit FreeWork(const AllocationPtr& a) { touches = {{a, 0, a->size, Touch::writes}}; }
    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEM_FREE; }
    const char* name() const override { return "a free"; }
    void run(Op& op) override {
        const Touch& touch = touches[0];
        settle(touch.allocation);
        record_access(op.shared_from_this(), touch, 0, touch.size, true);
        if (!touch.allocation->of_graph) release(touch.allocation);
    }
};

// Whether the next work of the queue comes after the operation.
bool comes_after(const Queue& queue, const OpPtr& op) {
    if (op == nullptr || op->queue.get() == &queue || op->queue->is_retired) return true;
    const auto has = [&](const Clock& clock) { return count_of(clock, op->queue->number) >= op->number; };
    if (has(machine.known) || (queue.last != nullptr && has(queue.last->clock))) return true;
    return std::any_of(queue.waits.begin(), queue.waits.end(), [&](const OpPtr& wait) { return has(wait->clock); });
}

bool is_over(const OpPtr& op) {
    return op == nullptr ||
           (op->done && (op->queue->is_retired || count_of(machine.known, op->queue->number) >= op->number));
}

// Gives cached bytes whose last use is over back to the device, until the pool holds no more than this.
void trim(Pool& pool, uint64_t keep) {
    for (size_t i = 0; i < pool.cached.size() && pool.reserved > keep;) {
        CachedBytes& one = pool.cached[i];
        if (!is_over(one.freed_by)) {
            ++i;
            continue;
        }
        const uint64_t size = std::min(one.size, pool.reserved - keep);
        pool.reserved -= size;
        machine.devices[static_cast<size_t>(pool.device)].used -= size;
        one.size -= size;
        if (one.size == 0) pool.cached.erase(pool.cached.begin() + static_cast<ptrdiff_t>(i));
    }
}

// Takes bytes that the pool has, or more of the device.
bool take(Pool& pool, const Queue& queue, uint64_t size) {
    CachedBytes* best = nullptr;
    for (CachedBytes& one : pool.cached) {
        const bool follows = one.freed_by == nullptr || one.freed_by->queue.get() == &queue ||
                             (pool.follow_events != 0 && comes_after(queue, one.freed_by)) ||
                             (pool.opportunistic != 0 && is_over(one.freed_by));
        if (one.size >= size && follows && (best == nullptr || one.size < best->size)) best = &one;
    }
    if (best != nullptr) {
        best->size -= size;
        if (best->size == 0) pool.cached.erase(pool.cached.begin() + (best - pool.cached.data()));
    } else {
        Device& device = machine.devices[static_cast<size_t>(pool.device)];
        if (device.used + size > device.memory && pool.used < pool.reserved) trim(pool, pool.used);
        if (device.used + size > device.memory) return false;
        if (pool.most > 0 && pool.reserved + size > pool.most) return false;
        device.used += size;
        pool.reserved += size;
        pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
    }
    pool.used += size;
    pool.used_high = std::max(pool.used_high, pool.used);
    return true;
}

void give_back(Pool& pool, uint64_t size, const OpPtr& freed_by) {
    pool.used -= size;
    for (CachedBytes& one : pool.cached)
        if (one.freed_by == freed_by || (one.freed_by && freed_by && one.freed_by->queue == freed_by->queue)) {
            one.size += size;
            one.freed_by = freed_by;
            return;
        }
    pool.cached.push_back({size, freed_by});
}

// A living allocation of the current context that begins at this address.
CUresult living(AllocationPtr& out, CUdeviceptr pointer, const Context& context) {
    out = allocation_at(pointer);
    if (out == nullptr || out->begin != pointer)
        return refuse(CUDA_ERROR_INVALID_VALUE, "memory", "no allocation begins there");
    if (out->is_free) return refuse(CUDA_ERROR_INVALID_VALUE, "memory", "memory is freed twice");
    if (out->context != &context)
        return refuse(CUDA_ERROR_INVALID_CONTEXT, "context", "memory of another context than the current one");
    return CUDA_SUCCESS;
}

void account_free(const AllocationPtr& a, const OpPtr& freed_by) {
    if (a->pool != nullptr && !a->of_graph) give_back(*a->pool, a->size, freed_by);
    else machine.devices[static_cast<size_t>(a->device)].used -= a->size;
}

void quarantine(const PinnedPtr& block) {
    machine.freed_pinned.push_back(block);
    machine.freed_pinned_bytes += block->size;
    while (machine.freed_pinned_bytes > kept_pinned_bytes && machine.freed_pinned.size() > 1) {
        const PinnedPtr oldest = machine.freed_pinned.front();
        machine.freed_pinned.pop_front();
        machine.freed_pinned_bytes -= oldest->size;
        machine.pinned.erase(oldest->begin);
    }
}

}  // namespace

Pinned::~Pinned() { free(reinterpret_cast<void*>(begin)); }

CUresult touch_of(Touch& out, uint64_t address, uint64_t size, Touch::Use use) {
    const AllocationPtr found = allocation_at(address);
    if (found == nullptr)
        return refuse(CUDA_ERROR_INVALID_VALUE, "memory",
                      text("0x%llx is in no allocation", static_cast<unsigned long long>(address)));
    out = {found, address - found->begin, size, use};
    return CUDA_SUCCESS;
}

PinnedPtr pinned_at(uintptr_t address) {
    auto found = machine.pinned.upper_bound(address);
    if (found == machine.pinned.begin()) return nullptr;
    --found;
    return address - found->second->begin < found->second->size ? found->second : nullptr;
}

void release_cached(Context& context) {
    for (size_t i = 0; i < context.pools.size();) {
        Pool& pool = *context.pools[i];
        if (!pool.cached.empty()) trim(pool, pool.is_destroyed ? pool.used : std::max(pool.threshold, pool.used));
        if (pool.is_destroyed && pool.reserved == 0)
            context.pools.erase(context.pools.begin() + static_cast<ptrdiff_t>(i));
        else ++i;
    }
}

void free_all(Context& context) {
    Device& device = device_of(context);
    std::vector<AllocationPtr> own;
    for (const auto& [begin, a] : device.allocations)
        if (a->context == &context && !a->is_gone) own.push_back(a);
    for (const AllocationPtr& a : own) release(a);
    std::vector<PinnedPtr> blocks;
    for (const auto& [begin, block] : machine.pinned)
        if (block->context == &context && !block->is_free) blocks.push_back(block);
    for (const PinnedPtr& block : blocks) {
        block->is_free = true;
        fill(reinterpret_cast<void*>(block->begin), block->size, freed_word);
        quarantine(block);
    }
    context.pools.clear();
    device.used = 0;
}

extern "C" {

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
    SIMT_BEGIN(cuMemGetInfo_v2, Needs::context);
    if (free_bytes == nullptr || total_bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Device& device = device_of(*context);
    *total_bytes = device.memory;
    *free_bytes = device.memory - std::min(device.memory, device.used);
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
    SIMT_BEGIN(cuMemAlloc_v2, Needs::context);
    if (pointer == nullptr || bytes == 0) return refuse(CUDA_ERROR_INVALID_VALUE, "memory", "no bytes");
    SIMT_TRY(check_unsafe());
    Device& device = device_of(*context);
    if (device.used + bytes > device.memory) return CUDA_ERROR_OUT_OF_MEMORY;
    const AllocationPtr made = make(*context, bytes);
    if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    device.used += bytes;
    log(*context, "allocate", bytes);
    *pointer = made->begin;
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
    SIMT_BEGIN(cuMemFree_v2, Needs::context);
    if (pointer == 0) return CUDA_SUCCESS;
    SIMT_TRY(check_unsafe());
    AllocationPtr found;
    SIMT_TRY(living(found, pointer, *context));
    wait_for_context(*context);
    log(*context, "free", found->size);
    account_free(found, nullptr);
    release(found);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* properties) {
    SIMT_BEGIN(cuMemPoolCreate, Needs::context);
    if (out == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (device_of(*context).pools == 0) return CUDA_ERROR_NOT_SUPPORTED;
    if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || properties->win32SecurityAttributes != nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    if (properties->location.id != context->device)
        return refuse(CUDA_ERROR_INVALID_CONTEXT, "context", "a pool of another device than the current one");
    auto pool = std::make_shared<Pool>();
    pool->device = context->device;
    pool->most = properties->maxSize;
    context->pools.push_back(pool);
    *out = as_handle<CUmemoryPool>(register_object(pool, context));
    return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    SIMT_BEGIN(cuMemPoolDestroy, Needs::context);
    std::shared_ptr<Pool> pool;
    SIMT_TRY(get(pool, handle, Kind::pool, context));
    forget(pool->handle);
    pool->is_destroyed = true;
    release_cached(*context);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
    SIMT_BEGIN(cuMemPoolSetAttribute, Needs::context);
    std::shared_ptr<Pool> pool;
    SIMT_TRY(get(pool, handle, Kind::pool, context));
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto flag = [&] { return *static_cast<const int*>(value); };
    const auto bytes = [&] { return *static_cast<const uint64_t*>(value); };
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: pool->follow_events = flag(); break;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: pool->opportunistic = flag(); break;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: pool->internal_dependencies = flag(); break;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold = bytes(); break;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
            if (bytes() != 0) return CUDA_ERROR_INVALID_VALUE;
            pool->reserved_high = pool->reserved;
            break;
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            if (bytes() != 0) return CUDA_ERROR_INVALID_VALUE;
            pool->used_high = pool->used;
            break;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
    SIMT_BEGIN(cuMemPoolGetAttribute, Needs::context);
    std::shared_ptr<Pool> pool;
    SIMT_TRY(get(pool, handle, Kind::pool, context));
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto flag = [&](int found) { *static_cast<int*>(value) = found; };
    const auto bytes = [&](uint64_t found) { *static_cast<uint64_t*>(value) = found; };
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: flag(pool->follow_events); break;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: flag(pool->opportunistic); break;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: flag(pool->internal_dependencies); break;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: bytes(pool->threshold); break;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: bytes(pool->reserved); break;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: bytes(pool->reserved_high); break;
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: bytes(pool->used); break;
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH: bytes(pool->used_high); break;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
    SIMT_BEGIN(cuMemPoolTrimTo, Needs::context);
    std::shared_ptr<Pool> pool;
    SIMT_TRY(get(pool, handle, Kind::pool, context));
    trim(*pool, std::max<uint64_t>(keep, pool->used));
    return CUDA_SUCCESS;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, size_t bytes, CUmemoryPool handle, CUstream stream) {
    SIMT_BEGIN(cuMemAllocFromPoolAsync, Needs::context);
    if (pointer == nullptr || bytes == 0) return refuse(CUDA_ERROR_INVALID_VALUE, "memory", "no bytes");
    std::shared_ptr<Pool> pool;
    SIMT_TRY(get(pool, handle, Kind::pool, context));
    QueuePtr queue;
    SIMT_TRY(queue_of(queue, stream, *context));
    const bool of_graph = queue->capture != nullptr;
    if (of_graph && queue->capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    Device& device = device_of(*context);
    if (of_graph ? device.used + bytes > device.memory : !take(*pool, *queue, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    const AllocationPtr made = make(*context, bytes);
    if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    made->pool = pool;
    made->of_graph = of_graph;
    if (of_graph) {
        device.used += bytes;
        ++machine.graph_allocations;
    }
    log(*context, "allocate", bytes);
    SIMT_TRY(submit(queue, std::make_shared<AllocationWork>(made)));
    *pointer = made->begin;
    return CUDA_SUCCESS;
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
    SIMT_BEGIN(cuMemFreeAsync, Needs::context);
    if (pointer == 0) return CUDA_ERROR_INVALID_VALUE;
    QueuePtr queue;
    SIMT_TRY(queue_of(queue, stream, *context));
    AllocationPtr found;
    SIMT_TRY(living(found, pointer, *context));
    if (queue->capture != nullptr && !found->of_graph)
        return refuse(invalidate(queue->capture, CUDA_ERROR_INVALID_VALUE), "capture",
                      "memory from outside a capture is freed inside it");
    log(*context, "free", found->size);
    SIMT_TRY(submit(queue, std::make_shared<FreeWork>(found)));
    if (queue->capture != nullptr) return CUDA_SUCCESS;
    found->is_free = true;
    account_free(found, queue->last);
    if (machine.noop) release(found);
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
    SIMT_BEGIN(cuMemHostAlloc, Needs::context);
    if (pointer == nullptr || bytes == 0) return refuse(CUDA_ERROR_INVALID_VALUE, "memory", "no bytes");
    if (flags > (host_alloc_portable | host_alloc_devicemap | host_alloc_writecombined))
        return CUDA_ERROR_INVALID_VALUE;
    SIMT_TRY(check_unsafe());
    void* memory = nullptr;
    if (posix_memalign(&memory, 4096, bytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
    auto block = std::make_shared<Pinned>();
    block->begin = reinterpret_cast<uintptr_t>(memory);
    block->size = bytes;
    block->context = context;
    block->device = context->device;
    fill(reinterpret_cast<void*>(block->begin), bytes, fresh_word);
    machine.pinned[block->begin] = block;
    *pointer = memory;
    return CUDA_SUCCESS;
}

// Does not wait for work that uses the memory; that work finds it overwritten.
CUresult cuMemFreeHost(void* pointer) {
    SIMT_BEGIN(cuMemFreeHost, Needs::context);
    SIMT_TRY(check_unsafe());
    const PinnedPtr block = pinned_at(reinterpret_cast<uintptr_t>(pointer));
    if (block == nullptr || block->begin != reinterpret_cast<uintptr_t>(pointer))
        return refuse(CUDA_ERROR_INVALID_VALUE, "memory", "no pinned memory begins there");
    if (block->is_free) return refuse(CUDA_ERROR_INVALID_VALUE, "memory", "pinned memory is freed twice");
    block->is_free = true;
    fill(reinterpret_cast<void*>(block->begin), block->size, freed_word);
    quarantine(block);
    return CUDA_SUCCESS;
}

namespace {

CUresult attribute_of(void* value, CUpointer_attribute attribute, CUdeviceptr pointer) {
    const AllocationPtr a = allocation_at(pointer);
    const PinnedPtr host = pinned_at(static_cast<uintptr_t>(pointer));
    const bool on_device = a != nullptr && !a->is_free, on_host = host != nullptr && !host->is_free;
    if (!on_device && !on_host) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            *static_cast<CUcontext*>(value) = as_handle<CUcontext>((on_device ? a->context : host->context)->handle);
            break;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *static_cast<unsigned*>(value) = on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *static_cast<CUdeviceptr*>(value) = pointer; break;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            if (on_device) return CUDA_ERROR_INVALID_VALUE;
            *static_cast<CUdeviceptr*>(value) = pointer;
            break;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED: *static_cast<unsigned*>(value) = 0; break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *static_cast<int*>(value) = on_device ? a->device : host->device;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            *static_cast<CUdeviceptr*>(value) = on_device ? a->begin : host->begin;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *static_cast<size_t*>(value) = on_device ? a->size : host->size; break;
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            *static_cast<CUmemoryPool*>(value) =
                as_handle<CUmemoryPool>(on_device && a->pool != nullptr ? a->pool->handle : 0);
            break;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr pointer) {
    SIMT_BEGIN(cuPointerGetAttribute, Needs::initialised);
    return value == nullptr ? CUDA_ERROR_INVALID_VALUE : attribute_of(value, attribute, pointer);
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values, CUdeviceptr pointer) {
    SIMT_BEGIN(cuPointerGetAttributes, Needs::initialised);
    if (count == 0 || attributes == nullptr || values == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; ++i) {
        if (attribute_of(values[i], attributes[i], pointer) == CUDA_SUCCESS) continue;
        // Of memory that CUDA does not know, every value is null and this is no error.
        switch (attributes[i]) {
            case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            case CU_POINTER_ATTRIBUTE_IS_MANAGED: memset(values[i], 0, sizeof(unsigned)); break;
            case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int*>(values[i]) = -2; break;
            case CU_POINTER_ATTRIBUTE_CONTEXT:
            case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: memset(values[i], 0, sizeof(void*)); break;
            default: return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}
}

}  // namespace simt::driver
