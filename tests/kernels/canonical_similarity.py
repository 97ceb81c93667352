"""The bits that kernels/include/hopfuse/similarity.h defines, in NumPy and whole numbers of Python."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.reference import canonical_scores
from kernels.canonical_scalar import exp32
from numpy.typing import NDArray

F32 = np.float32


def weights32(
    queries: NDArray[np.float32], corpus: hf.Corpus, tau: float, floor: float, mask: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """(B, N): cosines of float32, their spread by exact sums, one division and one exp each."""
    cosines = canonical_scores(queries, corpus.as_float32(), metric="cosine")
    out = np.zeros(cosines.shape, F32)
    for b, allowed in enumerate(mask):
        if allowed.any():
            gaps = cosines[b, allowed].max() - cosines[b, allowed]
            exponents = np.maximum(-gaps / scale_of(gaps, tau), F32(-80))
            out[b, allowed] = np.maximum(exp32(exponents), F32(floor))
    return out


def scale_of(gaps: NDArray[np.float32], tau: float) -> Any:
    """The least grain is 2^-29."""
    grains = [int(g) for g in gaps * F32(2**29)]
    n, grain = float(len(grains)), 2.0**-29
    squares = [g * g for g in grains]
    high, low = sum(s >> 32 for s in squares), sum(s & 0xFFFFFFFF for s in squares)
    mean = float(sum(grains)) * grain / n
    variance = (float(high) * 2.0**32 + float(low)) * (grain * grain) / n - mean * mean
    return F32(tau * max(np.sqrt(max(variance, 0.0)), 2.0**-16))
