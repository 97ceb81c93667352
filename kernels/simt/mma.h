// The arithmetic of matrix units.
#pragma once

#include "api.h"
#include "runtime.h"

namespace simt {

// Adds the products of a warp's 32 lanes to their sums.
void multiply_add(const MatrixParts* const* lanes, simt_mma unit);
void multiply_add(const ByteMatrixParts* const* lanes);

}  // namespace simt
