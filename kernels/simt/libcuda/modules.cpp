// Modules, functions and launches.
#include <algorithm>
#include <cstring>

#include "arena.h"
#include "capture.h"
#include "code.h"
#include "memory.h"
#include "queue.h"

namespace simt::driver {

namespace {

constexpr uint64_t shared_without_opt_in = 48 * 1024;
constexpr uint64_t most_blocks_together = 64;  // of the emulator

struct Module;

struct Function : Object {
    std::shared_ptr<Code> code;
    const KernelInfo* kernel = nullptr;
    uint64_t module = 0;
    uint64_t dynamic_shared_limit = shared_without_opt_in;
    bool is_loaded = false;
    Function() : Object(Kind::function) {}
};

struct Module : Object {
    std::shared_ptr<Code> code;
    std::map<std::string, std::shared_ptr<Function>> functions;
    Module() : Object(Kind::module) {}
};

Device& device_of(const Context& context) { return machine.devices[static_cast<size_t>(context.device)]; }

// A kernel's error, as a device reports it.
CUresult code_of(const std::string& report) {
    const std::string kind = report.substr(0, report.find(':'));
    if (kind == "fault" || kind == "address") return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (kind == "trap") return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    if (kind == "deadlock" || kind == "livelock" || kind == "barrier") return CUDA_ERROR_LAUNCH_TIMEOUT;
    return CUDA_ERROR_LAUNCH_FAILED;
}

struct Launch : Work {
    std::shared_ptr<Code> code;
    const KernelInfo* kernel;
    uint32_t grid[3], block[3];
    uint64_t shared, shared_limit;
    bool is_cooperative;
    std::vector<uint64_t> arguments;  // the bytes of all parameters

    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_KERNEL; }
    const char* name() const override { return kernel->kept_name; }

    CUresult check_again(const Context& context) const override {
        const uint64_t blocks = uint64_t{grid[0]} * grid[1] * grid[2];
        if (!is_cooperative || blocks <= static_cast<uint64_t>(device_of(context).blocks_at_once)) return CUDA_SUCCESS;
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    }

    void run(Op& op) override {
        Context& context = *op.queue->context;
        const Device& device = device_of(context);
        simt_launch_call call = {};
        call.kernel = kernel->name.c_str();
        std::copy_n(grid, 3, call.grid);
        std::copy_n(block, 3, call.block);
        call.dynamic_shared = shared;
        call.static_shared = kernel->static_shared;
        call.shared_limit = shared_limit;
        call.order = device.order;
        call.seed = device.seed;
        call.mma = device.mma;
        call.cooperative = is_cooperative;
        std::vector<uintptr_t> ranges;
        if (code->counts_bytes) {
            for (const Touch& touch : touches) {
                ranges.push_back(touch.allocation->begin);
                ranges.push_back(touch.allocation->begin + touch.allocation->size);
            }
            call.num_ranges = static_cast<uint32_t>(touches.size());
            call.ranges = ranges.data();
        }

        const OpPtr self = op.shared_from_this();
        for (const Touch& touch : touches)
            if (touch.use == Touch::may_write) note_writer(self, touch);
            else settle_before(op, touch.allocation);
        const std::string report =
            code->launch(call, *kernel, reinterpret_cast<const unsigned char*>(arguments.data()));
        if (machine.launches.size() == most_entries) machine.launches.pop_front();
        machine.launches.push_back({context.device,
                                    kernel->kept_name,
                                    {grid[0], grid[1], grid[2]},
                                    {block[0], block[1], block[2]},
                                    call.counters});
        if (!report.empty()) {
            machine.report = report;
            context.error = code_of(report);
            find("kernel", report);
            return;
        }
        for (const Touch& touch : touches)
            if (touch.use == Touch::reads) record_access(self, touch, touch.begin, touch.allocation->size, false);
        for (const Touch& touch : touches) check_gaps(*touch.allocation);
    }

private:
    void check_gaps(const Allocation& a) const {
        if (gaps_are_whole(a)) return;
        find("outside", "kernel " + kernel->name +
                            text(" wrote right before or behind an allocation of %llu bytes",
                                 static_cast<unsigned long long>(a.size)));
        mend_gaps(a);
    }
};

// Every aligned word of the arguments that is a device address.
CUresult find_touches(const Launch& launch, std::vector<Touch>& touches) {
    const KernelInfo& kernel = *launch.kernel;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(launch.arguments.data());
    for (const ParameterInfo& parameter : kernel.parameters)
        for (uint32_t i = (parameter.offset + 7) / 8 * 8; i + 8 <= parameter.offset + parameter.size; i += 8) {
            uint64_t word;
            memcpy(&word, bytes + i, 8);
            if (!is_address(word)) continue;
            const AllocationPtr a = allocation_at(word);
            if (a == nullptr) {
                // An empty array may begin where an allocation ends.
                const AllocationPtr ended = allocation_at(word - 1);
                if (ended != nullptr && !ended->is_free) continue;
                return refuse(CUDA_ERROR_ILLEGAL_ADDRESS, "memory",
                              "an argument of kernel " + kernel.name + " points outside every allocation");
            }
            const Touch::Use use = parameter.is_read_only ? Touch::reads : Touch::may_write;
            const auto same =
                std::find_if(touches.begin(), touches.end(), [&](const Touch& touch) { return touch.allocation == a; });
            if (same == touches.end()) {
                touches.push_back({a, word - a->begin, 0, use});
                continue;
            }
            same->begin = std::min(same->begin, word - a->begin);
            if (use == Touch::may_write) same->use = use;
        }
    for (Touch& touch : touches) touch.size = touch.allocation->size - touch.begin;
    return CUDA_SUCCESS;
}

CUresult copy_arguments(Launch& launch, void** parameters, void** extra) {
    const KernelInfo& kernel = *launch.kernel;
    launch.arguments.assign((kernel.bytes + 7) / 8 + 1, 0);
    auto* const bytes = reinterpret_cast<unsigned char*>(launch.arguments.data());
    if (extra == nullptr) {
        if (parameters == nullptr && !kernel.parameters.empty())
            return refuse(CUDA_ERROR_INVALID_VALUE, "arguments",
                          "kernel " + kernel.name + " is launched without arguments");
        for (size_t i = 0; i < kernel.parameters.size(); ++i) {
            if (parameters[i] == nullptr)
                return refuse(CUDA_ERROR_INVALID_VALUE, "arguments",
                              "kernel " + kernel.name + text(": argument %zu is missing", i));
            memcpy(bytes + kernel.parameters[i].offset, parameters[i], kernel.parameters[i].size);
        }
        return CUDA_SUCCESS;
    }
    // CU_LAUNCH_PARAM_BUFFER_POINTER is 1, CU_LAUNCH_PARAM_BUFFER_SIZE 2, CU_LAUNCH_PARAM_END 0.
    const void* buffer = nullptr;
    const size_t* size = nullptr;
    for (; *extra != nullptr; extra += 2) {
        if (reinterpret_cast<uintptr_t>(extra[0]) == 1) buffer = extra[1];
        else if (reinterpret_cast<uintptr_t>(extra[0]) == 2) size = static_cast<const size_t*>(extra[1]);
        else return CUDA_ERROR_INVALID_VALUE;
    }
    if (parameters != nullptr || buffer == nullptr || size == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (*size != kernel.bytes)
        return refuse(
            CUDA_ERROR_INVALID_VALUE, "arguments",
            "kernel " + kernel.name + text(" takes %u bytes of arguments, and %zu are given", kernel.bytes, *size));
    memcpy(bytes, buffer, *size);
    return CUDA_SUCCESS;
}

CUresult check_geometry(const Launch& launch, const Function& function) {
    const uint32_t* grid = launch.grid;
    const uint32_t* block = launch.block;
    const uint64_t threads = uint64_t{block[0]} * block[1] * block[2];
    const std::string name = "kernel " + launch.kernel->name + ": ";
    if (threads == 0 || block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads > 1024)
        return refuse(CUDA_ERROR_INVALID_VALUE, "launch",
                      name + text("a block of (%u,%u,%u)", block[0], block[1], block[2]));
    if (threads > static_cast<uint64_t>(launch.kernel->max_threads))
        return refuse(CUDA_ERROR_INVALID_VALUE, "launch",
                      name + text("%llu threads, and __launch_bounds__(%d)", static_cast<unsigned long long>(threads),
                                  launch.kernel->max_threads));
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[0] > 2147483647u || grid[1] > 65535 || grid[2] > 65535)
        return refuse(CUDA_ERROR_INVALID_VALUE, "launch",
                      name + text("a grid of (%u,%u,%u)", grid[0], grid[1], grid[2]));
    const uint64_t limit = function.dynamic_shared_limit;
    const uint64_t whole = launch.shared + launch.kernel->static_shared;
    if (launch.shared > limit || (whole > shared_without_opt_in && limit <= shared_without_opt_in))
        return refuse(CUDA_ERROR_INVALID_VALUE, "launch",
                      name + text("%llu bytes of shared memory, and cuFuncSetAttribute allows %llu",
                                  static_cast<unsigned long long>(whole), static_cast<unsigned long long>(limit)));
    return CUDA_SUCCESS;
}

CUresult launch_kernel(Context& context, CUfunction handle, const uint32_t (&grid)[3], const uint32_t (&block)[3],
                       unsigned shared, CUstream stream, void** parameters, void** extra, bool is_cooperative) {
    std::shared_ptr<Function> function;
    SIMT_TRY(get(function, handle, Kind::function, &context));
    QueuePtr queue;
    SIMT_TRY(queue_of(queue, stream, context));
    auto work = std::make_shared<Launch>();
    work->code = function->code;
    work->kernel = function->kernel;
    std::copy_n(grid, 3, work->grid);
    std::copy_n(block, 3, work->block);
    work->shared = shared;
    work->shared_limit =
        std::max(shared_without_opt_in, function->dynamic_shared_limit + function->kernel->static_shared);
    work->is_cooperative = is_cooperative;
    SIMT_TRY(check_geometry(*work, *function));
    if (is_cooperative) {
        if (device_of(context).cooperative == 0)
            return refuse(CUDA_ERROR_NOT_SUPPORTED, "launch", "the device has no cooperative launches");
        if (work->check_again(context) != CUDA_SUCCESS)
            return refuse(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "launch",
                          "kernel " + work->kernel->name + ": too many blocks");
    }
    SIMT_TRY(copy_arguments(*work, parameters, extra));
    SIMT_TRY(find_touches(*work, work->touches));
    if (queue->capture != nullptr && !function->is_loaded)
        find("load", "kernel " + work->kernel->name + " is launched for the first time in a capture, which loads it");
    function->is_loaded = true;
    log(context, "launch", 0, work->kernel->kept_name);
    return submit(queue, std::move(work));
}

CUresult function_of(std::shared_ptr<Function>& out, CUfunction handle, Context* context) {
    SIMT_TRY(get(out, handle, Kind::function, context));
    if (!out->is_loaded && is_capturing_here()) find("load", "a function is loaded while a stream is captured");
    out->is_loaded = true;
    return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuModuleLoadData(CUmodule* out, const void* bytes) {
    SIMT_BEGIN(cuModuleLoadData, Needs::context);
    if (out == nullptr || bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (is_capturing_here()) find("load", "a module is loaded while a stream is captured");
    SIMT_TRY(check_unsafe());
    Image image;
    if (!read_image(bytes, image)) {
        const unsigned char first = *static_cast<const unsigned char*>(bytes);
        const bool is_known = first == 0x7f || first == 0x50 || first == 'f';  // a cubin, a fatbin
        return is_known ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_INVALID_IMAGE;
    }
    const int own = device_of(*context).capability;
    if (image.capability / 10 != own / 10 || image.capability > own) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    std::string why;
    auto module = std::make_shared<Module>();
    module->code = load_code(image, why);
    if (module->code == nullptr) return refuse(CUDA_ERROR_INVALID_IMAGE, "image", why);
    *out = as_handle<CUmodule>(register_object(module, context));
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule handle) {
    SIMT_BEGIN(cuModuleUnload, Needs::context);
    std::shared_ptr<Module> module;
    SIMT_TRY(get(module, handle, Kind::module, context));
    SIMT_TRY(check_unsafe());
    for (const auto& [name, function] : module->functions) forget(function->handle);
    forget(module->handle);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* out, CUmodule handle, const char* name) {
    SIMT_BEGIN(cuModuleGetFunction, Needs::context);
    if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Module> module;
    SIMT_TRY(get(module, handle, Kind::module, context));
    const KernelInfo* const kernel = module->code->find(name);
    if (kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
    std::shared_ptr<Function>& function = module->functions[name];
    if (function == nullptr) {
        function = std::make_shared<Function>();
        function->code = module->code;
        function->kernel = kernel;
        function->module = module->handle;
        register_object(function, context);
    }
    *out = as_handle<CUfunction>(function->handle);
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
    SIMT_BEGIN(cuFuncSetAttribute, Needs::context);
    std::shared_ptr<Function> function;
    SIMT_TRY(function_of(function, handle, context));
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0) return CUDA_ERROR_INVALID_VALUE;
    const auto most = static_cast<uint64_t>(opt_in_shared(device_of(*context).capability));
    if (static_cast<uint64_t>(value) + function->kernel->static_shared > most) return CUDA_ERROR_INVALID_VALUE;
    function->dynamic_shared_limit = static_cast<uint64_t>(value);
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
    SIMT_BEGIN(cuFuncGetAttribute, Needs::context);
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Function> function;
    SIMT_TRY(function_of(function, handle, context));
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = function->kernel->max_threads; break;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(function->kernel->static_shared); break;
        case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = 0; break;
        case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; break;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = device_of(*context).capability; break;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            *value = static_cast<int>(function->dynamic_shared_limit);
            break;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
    SIMT_BEGIN(cuFuncGetParamInfo, Needs::context);
    if (offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Function> function;
    SIMT_TRY(get(function, handle, Kind::function, context));
    if (index >= function->kernel->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = function->kernel->parameters[index].offset;
    if (size != nullptr) *size = function->kernel->parameters[index].size;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int block_size,
                                                     size_t dynamic_shared) {
    SIMT_BEGIN(cuOccupancyMaxActiveBlocksPerMultiprocessor, Needs::context);
    if (blocks == nullptr || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Function> function;
    SIMT_TRY(function_of(function, handle, context));
    const Device& device = device_of(*context);
    const bool fits = block_size <= function->kernel->max_threads &&
                      dynamic_shared <= std::max(shared_without_opt_in, function->dynamic_shared_limit);
    *blocks = fits ? device.blocks_at_once / device.multiprocessors : 0;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters,
                        void** extra) {
    SIMT_BEGIN(cuLaunchKernel, Needs::context);
    return launch_kernel(*context, function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes,
                         stream, parameters, extra, false);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                   CUstream stream, void** parameters) {
    SIMT_BEGIN(cuLaunchCooperativeKernel, Needs::context);
    return launch_kernel(*context, function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes,
                         stream, parameters, nullptr, true);
}
}

}  // namespace simt::driver
