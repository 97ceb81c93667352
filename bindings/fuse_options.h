// The options of calibration and fusion, as Python gives them: numbers and float32 arrays of the host, by the names of fields.
#pragma once

#include "common.h"

// They throw TypeError for a name that is none of the struct's, and ValueError for an array that has not the size for so many
// lists. Arrays are not copied, so the caller keeps them.
hopfuse::CalibrationRule calibration_rule(int method, int ties, const nb::dict& option, int64_t lists);
hopfuse::FusionOptions fusion_options(const nb::dict& option, int64_t lists);
