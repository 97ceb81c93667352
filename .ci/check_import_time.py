"""``import hopfuse`` takes at most twice what ``import numpy`` alone takes, on the same machine in the same minute.

The package's names load when they are first used, so the operations that every search needs are named too: they count.
Fresh processes take turns, so that other work on the machine slows both; the median of eleven pairs counts.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

MOST = 2.0
PAIRS = 11
CODE = "from time import perf_counter as now; t = now(); import {}; print((now() - t) * 1e3)"
OURS = "hopfuse; hopfuse.Graph, hopfuse.Corpus, hopfuse.Hits, hopfuse.ppr_topk, hopfuse.dense_topk"


def import_ms(module: str) -> float:
    command = [sys.executable, "-c", CODE.format(module)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    import_ms(OURS)  # the disk's cache
    pairs = [(import_ms(OURS), import_ms("hopfuse"), import_ms("numpy")) for _ in range(PAIRS)]
    ours, bare, numpys = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(ours / numpy for ours, _, numpy in pairs)
    print(f"import hopfuse, PPR and dense top-k: {ours:.0f} ms, import numpy: {numpys:.0f} ms; ", end="")
    print(f"ratio {ratio:.2f} (at most {MOST:.2f}); import hopfuse alone: {bare:.0f} ms")
    if ratio > MOST:
        raise SystemExit("import hopfuse is too slow")


if __name__ == "__main__":
    main()
