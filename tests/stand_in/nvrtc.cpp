// NVRTC for a machine whose GPU is the emulator: what it makes of a .cu file is the emulator's image of it, from the folder
// HOPFUSE_SIMT_IMAGES, which machine.py fills. tests/cuda compiles the kernels with the real one.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

namespace {

constexpr int SUCCESS = 0, INVALID_INPUT = 3, INVALID_OPTION = 5, COMPILATION = 6;
constexpr int ARCHITECTURES[] = {75, 80, 86, 89, 90, 100, 120};
constexpr char PTX[] = "// Cuda compilation tools, release 12.9, V12.9.86\n";

struct Program {
    std::string name, cubin, log;
};

Program* program_of(void* handle) { return static_cast<Program*>(handle); }

void put(const std::string& text, char* to) { memcpy(to, text.c_str(), text.size() + 1); }

}  // namespace

#define ENTRY extern "C" __attribute__((visibility("default")))

ENTRY const char* nvrtcGetErrorString(int status) {
    return status == COMPILATION ? "NVRTC_ERROR_COMPILATION"
           : status == SUCCESS   ? "NVRTC_SUCCESS"
                                 : "NVRTC_ERROR_INVALID_INPUT";
}

ENTRY int nvrtcGetNumSupportedArchs(int* count) {
    *count = static_cast<int>(std::size(ARCHITECTURES));
    return SUCCESS;
}

ENTRY int nvrtcGetSupportedArchs(int* numbers) {
    memcpy(numbers, ARCHITECTURES, sizeof ARCHITECTURES);
    return SUCCESS;
}

ENTRY int nvrtcCreateProgram(void** program, const char* text, const char* name, int, const char* const*,
                             const char* const*) {
    if (text == nullptr || name == nullptr) return INVALID_INPUT;
    *program = new Program{name, "", ""};
    return SUCCESS;
}

ENTRY int nvrtcCompileProgram(void* handle, int count, const char* const* options) {
    Program& program = *program_of(handle);
    bool has_target = false;
    for (int i = 0; i < count; ++i) has_target |= strncmp(options[i], "--gpu-architecture=", 19) == 0;
    if (!has_target) return INVALID_OPTION;
    if (program.name == "empty.cu") return SUCCESS;
    const char* const folder = getenv("HOPFUSE_SIMT_IMAGES");
    std::ifstream file((folder == nullptr ? "" : folder) + ("/" + program.name), std::ios::binary);
    if (!file) {
        program.log = "HOPFUSE_SIMT_IMAGES has no image of " + program.name;
        return COMPILATION;
    }
    program.cubin.assign(std::istreambuf_iterator<char>(file), {});
    return SUCCESS;
}

ENTRY int nvrtcGetProgramLogSize(void* handle, size_t* size) {
    *size = program_of(handle)->log.size() + 1;
    return SUCCESS;
}

ENTRY int nvrtcGetProgramLog(void* handle, char* log) {
    put(program_of(handle)->log, log);
    return SUCCESS;
}

ENTRY int nvrtcGetCUBINSize(void* handle, size_t* size) {
    *size = program_of(handle)->cubin.size();
    return SUCCESS;
}

ENTRY int nvrtcGetCUBIN(void* handle, char* cubin) {
    memcpy(cubin, program_of(handle)->cubin.data(), program_of(handle)->cubin.size());
    return SUCCESS;
}

ENTRY int nvrtcGetPTXSize(void*, size_t* size) {
    *size = sizeof PTX;
    return SUCCESS;
}

ENTRY int nvrtcGetPTX(void*, char* ptx) {
    memcpy(ptx, PTX, sizeof PTX);
    return SUCCESS;
}

ENTRY int nvrtcDestroyProgram(void** program) {
    delete program_of(*program);
    *program = nullptr;
    return SUCCESS;
}
