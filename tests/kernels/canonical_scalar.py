"""exp, log and the blocked tree of scalar.h, spelled out in NumPy float32, operation by operation."""

from __future__ import annotations

import numpy as np
from hopfuse.reference import fma32
from numpy.typing import NDArray

F32 = np.float32
Array = NDArray[np.float32]


def exp32(x: Array) -> Array:
    """2^n p(r), with x = n ln 2 + r and p the Taylor polynomial of degree 7."""
    safe = np.clip(x, F32(-103.972084), F32(88.7228394))
    n = np.floor(fma32(safe, F32(1.44269502), F32(0.5)))
    r = fma32(-n, F32(-2.12194440e-4), fma32(-n, F32(0.693359375), safe))
    p = np.full_like(r, F32(1) / F32(5040))
    for factorial in (720, 120, 24, 6, 2, 1, 1):
        p = fma32(p, r, F32(1) / F32(factorial))
    whole = n.astype(np.int64)
    half = np.trunc(whole / 2).astype(np.int64)
    with np.errstate(over="ignore", under="ignore"):
        value = (p * np.ldexp(F32(1), half)) * np.ldexp(F32(1), whole - half)
    return np.where(x < F32(-103.972084), F32(0), value).astype(F32)


def log32(x: Array) -> Array:
    """e ln 2 + 2 artanh((m - 1)/(m + 1)) for finite x > 0, with x = 2^e m, sqrt(1/2) <= m < sqrt(2)."""
    subnormal = x < F32(1.17549435e-38)
    scaled = np.multiply(x, F32(16777216), out=x.copy(), where=subnormal)
    bits = scaled.view(np.int32) - np.int32(0x3F3504F3)
    m = ((bits & 0x007FFFFF) + 0x3F3504F3).astype(np.int32).view(F32)
    e = (bits >> 23).astype(F32) - np.where(subnormal, F32(24), F32(0))
    f = m - F32(1)
    s = f / (F32(2) + f)
    z = s * s
    p = np.full_like(z, F32(2) / F32(13))
    for odd in (11, 9, 7, 5, 3):
        p = fma32(p, z, F32(2) / F32(odd))
    tail = fma32(s, fma32(p, z, -f), e * F32(-2.12194440e-4))
    return fma32(e, F32(0.693359375), f + tail)


def tree_sum32(values: Array) -> np.float32:
    """32 accumulators, then halves: for at most 1024 values."""
    acc = np.zeros(32, F32)
    for i, value in enumerate(values):
        acc[i % 32] += value
    for half in (16, 8, 4, 2, 1):
        acc = acc[:half] + acc[half:]
    return F32(acc[0])


def boltzmann32(p: Array, temperature: float | None) -> Array:
    """What fusion/boltzmann.h makes of one list of calibrated scores."""
    energy = -log32(p + F32(1e-9))
    t = F32(temperature) if temperature else (F32(2) * (tree_sum32(energy) / F32(p.size))) / F32(3)
    with np.errstate(over="ignore"):
        mass = exp32((energy.min() - energy) / t) if t > 0 else np.ones_like(p)
    return (mass / tree_sum32(mass)).astype(F32)
