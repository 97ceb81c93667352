"""Check that ``import hopfuse`` takes at most 1.6 times the CPU time of ``import numpy``.

The package loads its names at first use, so the operations that every search needs are imported too. Times are the
minimum of eleven fresh processes, in turns, since other work on the machine can only add to a time; if the ratio is too
large, of more of them. All processes read bytecode, as after an installation by pip, whatever
``PYTHONDONTWRITEBYTECODE`` is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

MOST = 1.6
TURNS, ROUNDS = 11, 6
CODE = "from time import process_time as now; t = now(); import {}; print((now() - t) * 1e3)"
OURS = "hopfuse; hopfuse.Graph, hopfuse.Corpus, hopfuse.Hits, hopfuse.ppr_topk, hopfuse.dense_topk"


def import_ms(module: str, environment: dict[str, str]) -> float:
    command = [sys.executable, "-c", CODE.format(module)]
    run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return float(run.stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as bytecode:
        environment = os.environ | {"PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        import_ms(OURS, environment)  # writes the bytecode, and fills the disk cache
        turns: list[tuple[float, ...]] = []
        for _ in range(ROUNDS):
            turns += [tuple(import_ms(one, environment) for one in (OURS, "hopfuse", "numpy")) for _ in range(TURNS)]
            ours, bare, numpys = map(min, zip(*turns, strict=True))
            if (ratio := ours / numpys) <= MOST:
                break
    print(f"import hopfuse, PPR and dense top-k: {ours:.0f} ms, import numpy: {numpys:.0f} ms; ", end="")
    print(f"ratio {ratio:.2f} (at most {MOST:.2f}); import hopfuse alone: {bare:.0f} ms")
    if ratio > MOST:
        raise SystemExit("import hopfuse is too slow")


if __name__ == "__main__":
    main()
