"""``import hopfuse`` takes under 150 ms in a fresh process: the median of five, after one to warm the disk's cache.

A busy machine may spoil a round, so the best of three rounds counts.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

LIMIT_MS = 150.0
CODE = "from time import perf_counter as now; t = now(); import hopfuse; print((now() - t) * 1e3)"


def import_ms() -> float:
    return float(subprocess.run([sys.executable, "-c", CODE], check=True, capture_output=True, text=True).stdout)


def main() -> None:
    import_ms()
    medians = []
    while not medians or (medians[-1] >= LIMIT_MS and len(medians) < 3):
        medians.append(statistics.median(import_ms() for _ in range(5)))
        print(f"import hopfuse: median of 5 {medians[-1]:.0f} ms (limit {LIMIT_MS:.0f} ms)")
    if min(medians) >= LIMIT_MS:
        raise SystemExit("import hopfuse is too slow")


if __name__ == "__main__":
    main()
