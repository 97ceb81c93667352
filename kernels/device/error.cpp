#include "error.h"

#include "driver_types.h"

namespace hopfuse::device {

DriverError::DriverError(int code, std::string call, std::string name, std::string text)
    : std::runtime_error("the device failed at " + call + ": " + name + " (" + text + ")"), code(code),
      call(std::move(call)), name(std::move(name)), text(std::move(text)) {}

bool DriverError::is_no_memory() const { return code == driver::CUDA_ERROR_OUT_OF_MEMORY; }

bool DriverError::is_sticky() const {
    switch (code) {
        case driver::CUDA_ERROR_ECC_UNCORRECTABLE:
        case driver::CUDA_ERROR_ILLEGAL_ADDRESS:
        case driver::CUDA_ERROR_LAUNCH_TIMEOUT:
        case driver::CUDA_ERROR_CONTEXT_IS_DESTROYED:
        case driver::CUDA_ERROR_ASSERT:
        case driver::CUDA_ERROR_HARDWARE_STACK_ERROR:
        case driver::CUDA_ERROR_ILLEGAL_INSTRUCTION:
        case driver::CUDA_ERROR_MISALIGNED_ADDRESS:
        case driver::CUDA_ERROR_INVALID_ADDRESS_SPACE:
        case driver::CUDA_ERROR_INVALID_PC:
        case driver::CUDA_ERROR_LAUNCH_FAILED:
        case driver::CUDA_ERROR_MPS_CLIENT_TERMINATED: return true;
        default: return false;
    }
}

NoMemory::NoMemory(size_t asked, size_t free, size_t total)
    : std::runtime_error("the device cannot allocate " + std::to_string(asked) + " bytes; " + std::to_string(free) +
                         " of " + std::to_string(total) + " bytes are free"),
      asked(asked), free(free), total(total) {}

NoRoom::NoRoom(std::string what, size_t needed, size_t free)
    : std::runtime_error(what + " needs " + std::to_string(needed) + " bytes of device memory; " +
                         std::to_string(free) + " bytes are free"),
      what_for(std::move(what)), needed(needed), free(free) {}

NoDriver::NoDriver(const std::string& why, int version) : std::runtime_error(why), version(version) {}

InvalidSetting::InvalidSetting(std::string variable, std::string given, std::string allowed)
    : std::invalid_argument("the environment variable " + variable + " is '" + given + "'; it must be " + allowed),
      variable(std::move(variable)), given(std::move(given)), allowed(std::move(allowed)) {}

}  // namespace hopfuse::device
