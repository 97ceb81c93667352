// A graph on a device, which Python keeps with the one on the host.
#pragma once

#include "../kernels/device/ppr_graph.h"
#include "common.h"

// Its rows.
struct Rows {
    std::shared_ptr<const hopfuse::device::GraphRows> there;
};

// Its rows with the degrees of one normalisation of edge types.
struct WalkedGraph {
    std::shared_ptr<const hopfuse::device::DeviceGraph> there;
};
