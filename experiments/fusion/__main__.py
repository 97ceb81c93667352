"""``python -m experiments.fusion``: run every study, and write the results, which python -m experiments.pages reads.

Reranking needs a model and is a separate command (:mod:`.reranking`).
"""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import version
from pathlib import Path

from hopfuse.encoders import WordLlamaEncoder

from ..folders import add_data_option, question_folders
from ..published import FOLDERS
from ..record import write_results
from .design import answer
from .files import RESULTS
from .legs import open_legs
from .questions import questions


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.fusion", description=__doc__)
    add_data_option(parser)
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the results")
    args = parser.parse_args()
    encoder = WordLlamaEncoder()
    halves = {
        folder.name: open_legs(folder, encoder).halves() for folder in question_folders(args.data, FOLDERS, parser)
    }
    answers = []
    for question in questions():
        print(question.title, file=sys.stderr)
        answers.append(answer(question, halves))
    results = {
        "versions": {name: version(name) for name in ("hopfuse", "numpy", "bm25s", "wordllama")},
        "folders": {name: {"tune": len(a.qrels), "test": len(b.qrels)} for name, (a, b) in halves.items()},
        "questions": answers,
    }
    write_results(args.results, results)
    print(f"wrote {args.results}")


if __name__ == "__main__":
    main()
