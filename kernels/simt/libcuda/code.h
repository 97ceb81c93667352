// The compiled kernels of one .cu file, in this process or in a program of their own.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api.h"

namespace simt::driver {

struct ParameterInfo {
    uint32_t offset, size;
    bool is_read_only;  // a pointer to const
};

struct KernelInfo {
    std::string name;
    const char* kept_name = "";  // the same, for logs
    std::vector<ParameterInfo> parameters;
    uint32_t bytes = 0;  // of all parameters
    int max_threads = 0;
    uint64_t static_shared = 0;
};

// What an image says: SimtDriver.image makes it.
struct Image {
    std::string path, build;
    bool is_program = false;
    int capability = 0;
    std::map<std::string, uint64_t> static_shared;
};

class Code {
public:
    virtual ~Code() = default;
    // Runs a grid; returns null, or what was wrong. The call's arguments are offsets into `bytes`.
    virtual std::string launch(simt_launch_call& call, const KernelInfo& kernel, const unsigned char* bytes) = 0;
    const KernelInfo* find(const std::string& name) const;
    bool counts_bytes = false;

protected:
    std::map<std::string, KernelInfo> kernels_;
};

// False, if it is no image of this library. Nothing behind the first byte that differs is read.
bool read_image(const void* bytes, Image& out);
// The code of an image; null and the reason if it cannot be loaded. A library stays, a program ends with its last module.
std::shared_ptr<Code> load_code(const Image& image, std::string& why);

// Parameters from sizes, alignments and the signature.
void lay_out(KernelInfo& kernel, const std::vector<std::pair<uint32_t, uint32_t>>& sizes, const std::string& signature);

std::shared_ptr<Code> start_program(const Image& image, std::string& why);

}  // namespace simt::driver
