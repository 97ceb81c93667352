// Makes a view of an array of vectors, from the number of their type.
#pragma once

#include "common.h"

using Vectors = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

// Rows as stored: float32, or the 16-bit patterns of float16 and bfloat16.
inline hopfuse::DenseVectors view_of(const Vectors& vectors, int type, bool cosine) {
    const hopfuse::DenseType known = static_cast<hopfuse::DenseType>(type);
    const bool is_wide = known == hopfuse::DenseType::float32;
    if (vectors.dtype() != (is_wide ? nb::dtype<float>() : nb::dtype<uint16_t>()) || vectors.ndim() != 2)
        throw std::invalid_argument("vectors are (count, dim), float32 or 16-bit patterns as their type says");
    return {static_cast<int64_t>(vectors.shape(0)), static_cast<int32_t>(vectors.shape(1)), known, cosine,
            vectors.data()};
}
