"""What is measured of the machine itself, and of other ways to write a loop: cases without a call of hopfuse."""

from __future__ import annotations

from . import limits, variants

PROBES = {limits.CASE: limits.measure, variants.CASE: variants.measure}
