"""``import hopfuse`` takes under 150 ms in a fresh process: the median of five, after one to warm the disk's cache.

Other work on the machine only ever adds time, so a round above the limit is repeated, up to ten in all with a pause
between them, and the best counts.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

LIMIT_MS = 150.0
ROUNDS = 10
PAUSE_S = 4.0
CODE = "from time import perf_counter as now; t = now(); import hopfuse; print((now() - t) * 1e3)"


def import_ms() -> float:
    return float(subprocess.run([sys.executable, "-c", CODE], check=True, capture_output=True, text=True).stdout)


def main() -> None:
    import_ms()
    medians: list[float] = []
    for _ in range(ROUNDS):
        medians.append(statistics.median(import_ms() for _ in range(5)))
        print(f"import hopfuse: median of 5 {medians[-1]:.0f} ms (limit {LIMIT_MS:.0f} ms)")
        if medians[-1] < LIMIT_MS:
            break
        time.sleep(PAUSE_S)
    if min(medians) >= LIMIT_MS:
        raise SystemExit("import hopfuse is too slow")


if __name__ == "__main__":
    main()
