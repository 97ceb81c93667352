"""``hopfuse trace``: what one question finds, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from .._validation import check_suffix, counted
from ..errors import InputError
from ..io.files import write_all
from ..recipes import Hit
from ..report import fact_words, path_words, policy_page, printable
from ..report.text import shorten
from .console import json_text
from .options import FILE
from .outputs import check_outputs
from .recipes import read_files
from .search import ask, print_answer, print_notes, question_options


@click.command()
@question_options
@click.option("--show", type=click.IntRange(min=1), default=5, show_default=True, help="Lines per list to print.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole trace as JSON.")
@click.option("--out", type=FILE, help="Also write the trace to a .json, or (policy-rag only) a page to an .html.")
@click.option("--overwrite", is_flag=True, help="Replace the file of --out if it exists.")
def trace(show: int, as_json: bool, out: Path | None, overwrite: bool, **options: Any) -> None:
    """Show what QUESTION finds, and why."""
    if out is not None:
        _check_out(out, options, overwrite=overwrite)
    asked = ask(options, trace=True)
    traced = {"question": options["question"], **asked.found.traces[0], **asked.data()}
    if out is not None and out.suffix == ".html" and not _has_page(traced):
        raise InputError(
            "unsupported",
            "out",
            "{field} is {given!r}, but only {@recipe} policy-rag has pages; give a .json",
            given=out.name,
        )
    text = json_text(traced)
    if out is not None:
        write_all({out: policy_page(traced) if out.suffix == ".html" else text + "\n"})
    if as_json:
        click.echo(text)
        return
    print_notes(asked)
    Console().print(_tree_of(options["question"], _with_texts(traced, asked.found[0]), show))
    print_answer(asked)


def _with_texts(traced: Mapping[str, Any], found: Sequence[Hit]) -> Mapping[str, Any]:
    """Return a trace whose hits without a title have their text."""
    texts = {hit.id: hit.text for hit in found}
    hits = [{**hit, "text": texts.get(hit["id"])} if hit.get("title") == "" else hit for hit in traced["hits"]]
    return {**traced, "hits": hits}


def _check_out(out: Path, options: Mapping[str, Any], *, overwrite: bool) -> None:
    check_suffix(out, "out", ".json", ".html")
    check_outputs({"out": out}, {"vectors": options["vectors"], **read_files(options)}, overwrite=overwrite)


# ---- Trees, in the form for what a trace holds -----------------------------------------------------------------------

_LEGS = ("lexical", "dense", "graph", "exact")
#: Most characters of a text.
_TEXT = 60


def _safe(text: object) -> str:
    """Return text for a line of a tree, without control characters and with markup escaped."""
    return escape(printable(str(text)))


def _tree_of(question: str, trace: Mapping[str, Any], show: int) -> Tree:
    """Return the tree of a trace, with at most ``show`` lines of each list."""
    if _has_page(trace):
        return _policy_tree(question, trace, show)
    if "second_seeds" in trace:
        return _guided_tree(question, trace, show)
    if any(leg in trace for leg in _LEGS):
        return _fused_tree(question, trace, show)
    return _triple_tree(question, trace, show) if "seeds" in trace else _hits_tree(question, trace, show)


def _has_page(trace: Mapping[str, Any]) -> bool:
    """Return whether a trace has facts and decisions about them, which :func:`hopfuse.report.policy_page` shows."""
    return "facts" in trace


def _policy_tree(question: str, trace: Mapping[str, Any], show: int) -> Tree:
    """Return a tree of seeds with their factors, the gate's decisions, and hits with terms, paths, facts and seeds."""
    tree = Tree(f"[bold]{_safe(question)}[/bold]")
    seeds = tree.add("Seeds: align · specificity · aliasOK, shares sum to 1")
    for one in trace["seeds"]:
        seeds.add(_policy_seed(one))
    if not trace["seeds"]:
        seeds.add("none: the question names no entity")
    facts = tree.add("Facts that the gate saw")
    for one in trace["facts"]:
        said = f"{_safe(one['head'])} — {_safe(one['relation'])} → {_safe(one['tail'])}  {one['score']:.3f}"
        line = f"[bold]kept[/bold] {said}" if one["kept"] else f"[dim]dropped {said}[/dim]"
        facts.add(f"{line}: {_safe(one['reason'])}")
    if not trace["facts"]:
        facts.add("none")
    if trace["passage_seeds"]:
        mass = sum(one["mass"] for one in trace["passage_seeds"])
        tree.add(f"Passage seeds: {len(trace['passage_seeds'])}, with {mass:.3f} of the restart")
    hits = tree.add(f"Hits by {trace['ranked_by']}: the first {min(show, len(trace['hits']))}")
    for rank, hit in enumerate(trace["hits"][:show], 1):
        _policy_hit(hits, rank, hit, show)
    return tree


def _policy_seed(one: Mapping[str, Any]) -> str:
    asked = f", asked for as {_safe(repr(one['surface']))}" if one["surface"] not in ("", one["name"]) else ""
    factors = f"align {one['align']:.3g}, specificity {one['specificity']:.3g}, aliasOK {int(one['alias_ok'])}"
    said = f"{_safe(one['name'])} ({one['match']}{asked}): {factors}"
    return f"{said}, share {one['share']:.3g}" if one["share"] > 0 else f"[dim]{said}, dropped[/dim]"


def _policy_hit(hits: Tree, rank: int, hit: Mapping[str, Any], show: int) -> None:
    terms = "".join(f" {value:+.4f} {name}" for name, value in hit.get("terms", {}).items())
    branch = _hit(hits, rank, hit, f" ={terms}" if terms else "")
    for path in hit.get("paths", []):
        line = f"path {path[-1]['strength']:.3g}: {path_words(path, hit['passage'])}"
        way = branch.add(_safe(line))
        for said in fact_words(path):
            way.add(_safe(said))
    if hit.get("attribution"):
        largest = sorted(hit["attribution"], key=lambda one: -one["score"])[:show]
        whole = sum(one["score"] for one in hit["attribution"])
        kinds = {"entity": "", "passage": "passage "}
        shares = (f"{kinds[one['kind']]}{one['name']} {100 * one['score'] / whole:.1f} %" for one in largest)
        branch.add(f"from: {_safe(', '.join(shares))}")


def _triple_tree(question: str, trace: Mapping[str, Any], show: int) -> Tree:
    """Return a tree of the nearest entities, and hits with their scores and the triple that leads to each."""
    tree = Tree(f"[bold]{_safe(question)}[/bold]")
    if trace["seeds"]:  # some modes have none
        seeds = tree.add("Seeds: the nearest entities by vector")
        for seed in trace["seeds"][:show]:
            seeds.add(f"{_safe(seed['name'])}  {seed['score']:.4f}")
    hits = tree.add(f"Entities: the first {min(show, len(trace['hits']))}")
    for rank, hit in enumerate(trace["hits"][:show], 1):
        own = ", ".join(f"{name} {score:.4f}" for name, score in hit["scores"].items())
        branch = hits.add(f"{rank}. [bold]{_safe(hit['name'])}[/bold]  {hit['score']:.4f} by {hit['by']} ({own})")
        if hit["triple"] is not None:
            triple = " — ".join(hit["triple"][part] for part in ("head", "relation", "tail"))
            branch.add(f"triple: {_safe(triple)}  {hit['triple']['score']:.4f}")
    return tree


def _hits_tree(question: str, trace: Mapping[str, Any], show: int) -> Tree:
    """Return a tree of the hits alone, for a trace in no other form."""
    tree = Tree(f"[bold]{_safe(question)}[/bold]")
    hits = tree.add(f"Hits: the first {min(show, len(trace['hits']))}")
    for rank, hit in enumerate(trace["hits"][:show], 1):
        _hit(hits, rank, hit, "")
    return tree


#: Quantities that a method may derive from a list's scores, with their formats.
_SCALES = {"percentile": ".2f", "calibrated": ".4g", "probability": ".4f", "share": ".4f"}


def _fused_tree(question: str, trace: Mapping[str, Any], show: int) -> Tree:
    """Return a tree of seeds, each leg's list and the fused hits."""
    tree = Tree(f"[bold]{_safe(question)}[/bold]")
    _named_seeds(tree, trace["seeds"], absent="none: the graph list is empty")
    legs = trace.get("temperatures", {leg: None for leg in _LEGS if leg in trace})
    for leg, temperature in legs.items():
        _leg(tree, leg, trace[leg], temperature, show)
    _direct(tree, trace)
    hits = tree.add(f"Fused: the first {min(show, len(trace['hits']))}")
    for rank, hit in enumerate(trace["hits"][:show], 1):
        said = _ranks(hit) if "prior" in hit else _parts(hit)
        branch = _hit(hits, rank, hit, said)
        _paths(branch, hit)
    return tree


def _hit(hits: Tree, rank: int, hit: Mapping[str, Any], terms: str) -> Tree:
    """Add a branch of a passage and its score, and the beginning of the text if there is no title."""
    branch = hits.add(f"{rank}. [bold]{_safe(hit['title'] or hit['id'])}[/bold]  {hit['score']:.4f}{terms}")
    if hit.get("text"):
        branch.add(f"text: {_safe(shorten(' '.join(hit['text'].split()), _TEXT))}")
    return branch


def _paths(branch: Tree, hit: Mapping[str, Any]) -> None:
    for path in hit.get("paths", []):
        branch.add(_safe(f"path {path[-1]['strength']:.3g}: {path_words(path, hit['passage'])}"))


def _named_seeds(tree: Tree, seeds: Sequence[Mapping[str, Any]], *, absent: str) -> None:
    """Add a branch of the entities that a walk starts from, or the text ``absent`` if there are none."""
    branch = tree.add("Seeds: entities that the question names")
    for line in map(_seed_line, seeds) if seeds else [absent]:
        branch.add(line)


def _direct(tree: Tree, trace: Mapping[str, Any]) -> None:
    """Add a branch of how far the question is left to direct retrieval, if its weights are its own."""
    if "direct" in trace:
        direct = trace["direct"]
        tree.add(f"Weight of direct retrieval: {direct['weight']:.2g}; {_safe(direct['reason'])}")


def _ranks(hit: Mapping[str, Any]) -> str:
    """Return the ranks that a score comes from, the contribution of each if it is a sum, and the prior."""
    given = hit.get("contributions", {})
    shares = {leg: f" {given[leg]:.4f}" if leg in given else "" for leg in hit["ranks"]}
    terms = " = " + " + ".join(f"{leg}{shares[leg]} (rank {rank})" for leg, rank in hit["ranks"].items())
    return f"{terms}, times {hit['prior']:.3g}" if hit.get("prior", 1) != 1 else terms


def _parts(hit: Mapping[str, Any]) -> str:
    """Return the terms of a score, or its ranks if it is not a sum."""
    if "contributions" not in hit:
        return f" of {', '.join(f'{leg} (rank {rank})' for leg, rank in hit['ranks'].items())}"
    bonus = f" + consensus {hit['consensus']:.4f}" if hit["consensus"] else ""
    return " = " + " + ".join(f"{leg} {share:.4f}" for leg, share in hit["contributions"].items()) + bonus


def _seed_line(seed: Mapping[str, Any]) -> str:
    """Return a line for an entity that a walk starts from."""
    name = f"[bold]{_safe(seed['name'])}[/bold]"
    surface = "" if seed["surface"] == seed["name"] else f", asked for as {_safe(repr(seed['surface']))}"
    how = "" if seed["match"] == "given" else f" ({seed['match']}{surface})"
    return f"{name}{how}: in {counted(seed['passage_frequency'], 'passage')}, weight {seed['weight']:.3g}"


def _leg(tree: Tree, leg: str, pool: Sequence[Mapping[str, Any]], temperature: float | None, show: int) -> None:
    suffix = "" if temperature is None else f", temperature {temperature:.3f}"
    branch = tree.add(f"{leg.capitalize()} list of {len(pool)}{suffix}")
    for row in pool[:show]:
        scaled = "".join(f", {name} {row[name]:{form}}" for name, form in _SCALES.items() if name in row)
        branch.add(f"{row['rank']}. {_safe(row['title'] or row['id'])}  score {row['score']:.4g}{scaled}")


def _guided_tree(question: str, trace: Mapping[str, Any], show: int) -> Tree:
    """Return a tree of seeds, second seeds, each list, and hits with their weights, seeds and paths."""
    tree = Tree(f"[bold]{_safe(question)}[/bold]")
    _named_seeds(tree, trace["seeds"], absent="none")
    second = tree.add(f"Second seeds: {counted(len(trace['second_seeds']), 'entity')} of the first answer")
    for one in trace["second_seeds"][:show]:
        of = ", ".join(_safe(passage["title"] or passage["id"]) for passage in one["passages"])
        second.add(f"[bold]{_safe(one['name'])}[/bold] of {of}: share {one['share']:.3g}")
    if "other_words" in trace:
        tree.add(f"Other words, which raise weights: {_safe((trace['other_words'] or '').strip() or 'none')}")
    for leg in ("dense", "graph", "guided", "lexical"):
        if leg in trace:
            _leg(tree, leg, trace[leg], None, show)
    _direct(tree, trace)
    hits = tree.add(f"Hits by {trace['ranked_by']}: the first {min(show, len(trace['hits']))}")
    for rank, hit in enumerate(trace["hits"][:show], 1):
        branch = _hit(hits, rank, hit, _ranks(hit))
        _paths(branch, hit)
        if hit.get("attribution"):
            boost = f", raised {hit['boost']:.3g} times by words" if "boost" in hit else ""
            branch.add(f"from: {_safe(_shares(hit['attribution'], show))}; weight {hit['weight']:.3g}{boost}")
    return tree


def _shares(attribution: Sequence[Mapping[str, Any]], show: int) -> str:
    """Return the largest shares of seeds in a hit's score, in percent, with the kind of each seed."""
    given = [(one["name"], part, one[part]) for one in attribution for part in ("named", "second") if part in one]
    whole = sum(score for _, _, score in given)
    largest = sorted(given, key=lambda one: -one[2])[:show]
    return ", ".join(f"{name} ({part}) {100 * score / whole:.1f} %" for name, part, score in largest)
