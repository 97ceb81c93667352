// An incidence on a device, which Python keeps with the one on the host.
#pragma once

#include "../kernels/device/project.h"
#include "common.h"

struct Incidence {
    std::shared_ptr<const hopfuse::device::DeviceIncidence> there;
};
