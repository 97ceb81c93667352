#include "code.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <sstream>

#include "arena.h"
#include "state.h"

namespace simt::driver {

namespace {

constexpr char magic[] = "HOPFUSE-SIMT-1\n";

std::map<std::string, std::weak_ptr<Code>>& loaded() {
    static auto& codes = *new std::map<std::string, std::weak_ptr<Code>>;
    return codes;
}

class Library : public Code {
public:
    static std::shared_ptr<Code> open(const Image& image, std::string& why) {
        void* const library = dlopen(image.path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            why = dlerror();
            return nullptr;
        }
        const auto version = reinterpret_cast<decltype(&simt_api_version)>(dlsym(library, "simt_api_version"));
        if (version == nullptr || version() != SIMT_API_VERSION) {
            why = image.path + " is of another version";
            return nullptr;
        }
        auto made = std::make_shared<Library>();
        const auto get = [&](auto& out, const char* name) {
            out = reinterpret_cast<std::decay_t<decltype(out)>>(dlsym(library, name));
        };
        decltype(&simt_num_kernels) count;
        decltype(&simt_kernel_name) name;
        decltype(&simt_kernel_signature) signature;
        decltype(&simt_kernel_max_threads) max_threads;
        decltype(&simt_kernel_parameter) parameter;
        get(count, "simt_num_kernels");
        get(name, "simt_kernel_name");
        get(signature, "simt_kernel_signature");
        get(max_threads, "simt_kernel_max_threads");
        get(parameter, "simt_kernel_parameter");
        get(made->launch_, "simt_launch");
        made->counts_bytes = image.build == "count";
        for (int i = 0; i < count(); ++i) {
            KernelInfo kernel;
            kernel.name = name(i);
            kernel.max_threads = max_threads(i);
            const auto shared = image.static_shared.find(kernel.name);
            kernel.static_shared = shared == image.static_shared.end() ? 0 : shared->second;
            std::vector<std::pair<uint32_t, uint32_t>> sizes;
            uint32_t size, alignment;
            for (int j = 0; parameter(i, j, &size, &alignment) != 0; ++j) sizes.emplace_back(size, alignment);
            lay_out(kernel, sizes, signature(i));
            made->kernels_[kernel.name] = std::move(kernel);
        }
        return made;
    }

    std::string launch(simt_launch_call& call, const KernelInfo& kernel, const unsigned char* bytes) override {
        // Where the kernel's types may lie: a parameter's alignment may be more than that of the bytes.
        alignas(64) unsigned char copy[4096];
        void* arguments[64];
        memcpy(copy, bytes, kernel.bytes);
        for (size_t i = 0; i < kernel.parameters.size(); ++i) arguments[i] = copy + kernel.parameters[i].offset;
        call.arguments = arguments;
        open_arena();
        const char* const error = launch_(&call);
        return error == nullptr ? "" : error;
    }

private:
    decltype(&simt_launch) launch_ = nullptr;
};

}  // namespace

const KernelInfo* Code::find(const std::string& name) const {
    const auto found = kernels_.find(name);
    return found == kernels_.end() ? nullptr : &found->second;
}

void lay_out(KernelInfo& kernel, const std::vector<std::pair<uint32_t, uint32_t>>& sizes,
             const std::string& signature) {
    std::istringstream types(signature);
    std::string type;
    uint32_t at = 0;
    for (const auto& [size, alignment] : sizes) {
        std::getline(types, type, ',');
        at = (at + alignment - 1) / alignment * alignment;
        kernel.parameters.push_back({at, size, type.rfind("c*", 0) == 0});
        at += size;
    }
    kernel.bytes = at;
    kernel.kept_name = kept(kernel.name);
}

bool read_image(const void* bytes, Image& out) {
    const char* const given = static_cast<const char*>(bytes);
    for (size_t i = 0; i + 1 < sizeof magic; ++i)
        if (given[i] != magic[i]) return false;
    std::istringstream lines(given + sizeof magic - 1);
    std::string line;
    if (!std::getline(lines, out.build) || !std::getline(lines, line)) return false;
    out.is_program = line == "program";
    if (!std::getline(lines, out.path) || !std::getline(lines, line)) return false;
    out.capability = atoi(line.c_str());
    std::string name;
    uint64_t shared;
    while (lines >> name >> shared) out.static_shared[name] = shared;
    return true;
}

std::shared_ptr<Code> load_code(const Image& image, std::string& why) {
    static auto& libraries = *new std::vector<std::shared_ptr<Code>>;
    std::weak_ptr<Code>& known = loaded()[image.path];
    if (std::shared_ptr<Code> code = known.lock()) return code;
    std::shared_ptr<Code> code = image.is_program ? start_program(image, why) : Library::open(image, why);
    if (code != nullptr && !image.is_program) libraries.push_back(code);
    known = code;
    return code;
}

}  // namespace simt::driver
