// Kernels as a program of their own.
#include "code.h"

namespace simt::driver {

std::shared_ptr<Code> start_program(const Image&, std::string& why) {
    why = "programs are not served yet";
    return nullptr;
}

}  // namespace simt::driver
