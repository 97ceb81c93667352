"""``import hopfuse`` takes at most twice the processor's time that ``import numpy`` alone takes.

The package's names load when they are first used, so the operations that every search needs are named too: they count.
Fresh processes take turns, and of eleven the quickest counts: other work on the machine adds to a time, and never takes
from it.
"""

from __future__ import annotations

import subprocess
import sys

MOST = 2.0
TURNS = 11
CODE = "from time import process_time as now; t = now(); import {}; print((now() - t) * 1e3)"
OURS = "hopfuse; hopfuse.Graph, hopfuse.Corpus, hopfuse.Hits, hopfuse.ppr_topk, hopfuse.dense_topk"


def import_ms(module: str) -> float:
    command = [sys.executable, "-c", CODE.format(module)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    import_ms(OURS)  # the disk's cache
    turns = [(import_ms(OURS), import_ms("hopfuse"), import_ms("numpy")) for _ in range(TURNS)]
    ours, bare, numpys = map(min, zip(*turns, strict=True))
    ratio = ours / numpys
    print(f"import hopfuse, PPR and dense top-k: {ours:.0f} ms, import numpy: {numpys:.0f} ms; ", end="")
    print(f"ratio {ratio:.2f} (at most {MOST:.2f}); import hopfuse alone: {bare:.0f} ms")
    if ratio > MOST:
        raise SystemExit("import hopfuse is too slow")


if __name__ == "__main__":
    main()
