// An incidence on a device, as Python holds it: hopfuse._native.DeviceIncidence.
#pragma once

#include <memory>

#include "../kernels/device/incidence.h"

struct Incidence {
    std::shared_ptr<const hopfuse::device::DeviceIncidence> there;
};
