// Calibration and fusion on a device. The contracts are hopfuse/calibrate.h and hopfuse/fuse.h.
#pragma once

#include "device.h"
#include "hits.h"
#include "hopfuse/fuse.h"

namespace hopfuse::device {

// Both take the arrays of a call on the host, but lists (scores and counts of calibrate, lists of fuse) on the device if
// `on_device`; they do not read its outputs. Everything that is on the host is uploaded in one copy.

// Calibrated scores, (B, width).
Array<float> calibrate(Queue& queue, const CalibrateArgs& call, bool on_device);

// The k best fused documents of each query. Lists on the host are joined there; those on the device are joined by a launch for
// each, unless there is only one.
HitArrays fuse(Queue& queue, const FuseArgs& call, bool on_device);

}  // namespace hopfuse::device
