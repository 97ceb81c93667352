"""``python -m experiments.fusion``: run every study, and write the results and the page.

Reranking needs a model and is a separate command (:mod:`.reranking`); its recorded results are included in the page.
"""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import version
from pathlib import Path

from hopfuse.encoders import WordLlamaEncoder

from ..corpora import page as corpora
from ..folders import add_data_option
from .design import answer
from .files import PAGE, RERANKING, RESULTS, folders_of, read_results, write_results
from .legs import open_legs
from .page import render
from .questions import questions


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.fusion", description=__doc__)
    add_data_option(parser)
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the results")
    parser.add_argument("--out", type=Path, default=PAGE, help="file of the page")
    parser.add_argument("--page-only", action="store_true", help="only write the page, from recorded results")
    args = parser.parse_args()
    if not args.page_only:
        encoder = WordLlamaEncoder()
        halves = {folder.name: open_legs(folder, encoder).halves() for folder in folders_of(args.data, parser)}
        answers = []
        for question in questions():
            print(question.title, file=sys.stderr)
            answers.append(answer(question, halves))
        versions = {name: version(name) for name in ("hopfuse", "numpy", "bm25s", "wordllama")}
        results = {
            "versions": versions,
            "folders": {name: {"tune": len(a.qrels), "test": len(b.qrels)} for name, (a, b) in halves.items()},
            "questions": answers,
        }
        write_results(args.results, results)
    reranking = read_results(RERANKING) if RERANKING.is_file() else None
    args.out.write_text(render(read_results(args.results), reranking, corpora.section()), encoding="utf-8")
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
