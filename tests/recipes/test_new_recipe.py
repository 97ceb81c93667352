"""A new recipe costs its class and one line in ``RECIPES``: every program runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest

SCRIPT = '''
import json, sys
from dataclasses import dataclass

import hopfuse as hf
import hopfuse.recipes as recipes
from hopfuse.recipes import Needs, SearchResult
from hopfuse.recipes._parts.base import BaseRecipe
from hopfuse.recipes._parts.config import check_options, option


@dataclass(frozen=True)
class LongestConfig:
    """Options of Longest."""

    least: int = option(1, "Characters of a passage, at least.", low=1)

    def __post_init__(self):
        check_options(self)


class Longest(BaseRecipe[SearchResult]):
    """Ranks passages by their length."""

    name, Config, collaborators = "longest", LongestConfig, ()
    needs = Needs(texts=True)

    def __init__(self, index, config=None, *, threads=None, **options):
        super().__init__(index, config, options, threads=threads)

    def _search(self, asked, view, k, trace):
        lengths = [(row, float(len(text))) for row, text in enumerate(self.index.texts)]
        ranked = sorted(lengths, key=lambda one: -one[1])[:k]
        hits = hf.Hits.from_lists([[one for one in ranked if one[1] >= self.config.least]] * asked.size)
        ids = self.index.passage_ids
        rows = [{"passage": row, "id": ids[row], "title": "", "score": score} for row, score in ranked]
        traces = [{"query": b, "hits": rows} for b in range(asked.size)]
        return SearchResult(hits, self.index, {}, traces if trace else None)


recipes.RECIPES["longest"] = Longest

from click.testing import CliRunner
from hopfuse.cli import app

for command in json.loads(sys.argv[1]):
    found = CliRunner().invoke(app.app, command)
    print(json.dumps([getattr(found.exception, "field", found.exit_code), found.output]))
'''


@pytest.mark.parametrize("with_filter", [False, True])
def test_the_command_line_runs_it(tmp_path: Path, with_filter: bool) -> None:
    pytest.importorskip("click", reason="needs the extra cli")
    rows = [{"id": id, "text": text, "metadata": {"year": year}} for id, text, year in ROWS]
    hf.Index.build(rows, vectors=np.eye(3, dtype=np.float32), graph=[{"src": 0, "dst": 3}]).save(tmp_path / "index")
    asked = [{"id": "q", "text": "Which?"}]
    (tmp_path / "queries.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in asked))
    where = ["--where", "year__ge=2000"] if with_filter else []
    index, out = str(tmp_path / "index"), str(tmp_path / "out.jsonl")
    own = ["--recipe", "longest", "--option", "least=4", *where]
    commands = [
        ["search", index, "Which?", *own, "--json"],
        ["trace", index, "Which?", *own],
        ["score", index, "--queries", str(tmp_path / "queries.jsonl"), *own, "--out", out],
        ["search", index, "Which?", "--recipe", "longest", "--option", "least=0"],
    ]
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(commands)], capture_output=True, text=True, check=True
    )
    results: list[Any] = [json.loads(line) for line in run.stdout.splitlines()]
    assert [code for code, _ in results] == [0, 0, 0, "least"], results
    expected = [id for id in ("c", "b") if not with_filter or id != "b"]
    assert [hit["id"] for hit in json.loads(results[0][1])["hits"]] == expected
    assert "1. c" in results[1][1]
    (row,) = [json.loads(line) for line in Path(out).read_text().splitlines()]
    assert [hit["id"] for hit in row["hits"]] == expected


ROWS = [("a", "Sea", 2001), ("b", "A river", 1999), ("c", "A long river", 2002)]
