"""Cases that do not call hopfuse: the limits of the machine, and variants of a loop."""

from __future__ import annotations

from . import limits, variants

PROBES = {limits.CASE: limits.measure, variants.CASE: variants.measure}
