// Compares the members of Driver (kernels/device/driver.h) with NVIDIA's cuda.h, whose macros rename both alike. It only has to
// compile. test_driver_types.py writes the last lines: MEMBER(...) of each.
#include <cuda.h>

#include "abi.h"
#include "driver.h"

#define MEMBER(name)                                                                                                  \
    static_assert(abi::Same<std::remove_pointer_t<decltype(hopfuse::device::Driver::name)>, decltype(::name)>::value, \
                  #name)
