"""One question of PolicyRAG as an HTML page that needs nothing else: no script, no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from ..errors import InputError
from .html_parts import figure, table
from .html_style import STYLE
from .path_words import fact_words, path_words
from .subgraph import subgraph
from .svg_bars import stacked_bars
from .svg_subgraph import drawn_subgraph, edge_legend

#: Seeds whose shares have a colour of their own; the others share one.
NAMED_SEEDS = 5
OTHERS = "other seeds"
_SEEDS = ("seed", "matched by", "in the question", "align", "names", "vectors", "specificity", "aliasOK", "share")
_HITS = ("rank", "passage", "id", "score", "projected", "terms")
_PATHS = ("hit", "strength", "path", "facts behind it")
_WORDS = ("passage", "terms", "hit", "path", "facts behind it", "head", "relation", "tail", "reason")


def policy_page(trace: Mapping[str, Any]) -> str:
    """A page on one question: its seeds with their factors, the facts, what each hit's score is made of and comes from.

    Parameters
    ----------
    trace : mapping
        One of :attr:`hopfuse.recipes.PolicyRAGResult.traces`.

    Returns
    -------
    str
        HTML; all text of the trace is escaped, and the same trace gives the same page.

    Raises
    ------
    InputError
        A trace of something else, or one that an older version made.

    Examples
    --------
    >>> from hopfuse.evaluate import policy_page
    >>> hit = {"passage": 0, "id": "p0", "title": "A <b>", "score": 0.5}
    >>> trace = {"query": "Who?", "ranked_by": "vectors", "seeds": [], "facts": [], "passage_seeds": [], "hits": [hit]}
    >>> page = policy_page(trace)
    >>> page.startswith("<!doctype html>"), "A &lt;b&gt;" in page, "<b>" in page
    (True, True, False)
    """
    missing = [name for name in ("query", "ranked_by", "seeds", "facts", "passage_seeds", "hits") if name not in trace]
    if missing:
        raise InputError(f"the trace has no {missing[0]!r}; give one of PolicyRAG's: search(..., explain=True).traces")
    if trace["ranked_by"] == "policy" and not all(map(_has_paths, trace["hits"])):
        raise InputError("the trace was made by an older version: search again with explain=True")
    question = str(trace["query"])
    sections = [f"<h1>{escape(question)}</h1>", *_seeds(trace), *_facts(trace["facts"]), *_hits(trace)]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(question)}</title><style>{STYLE}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(sections) + "\n</body></html>\n"


def _has_paths(hit: Mapping[str, Any]) -> bool:
    """Whether a hit has its paths, and their relations say whether all of their edges were walked."""
    steps = (step for path in hit.get("paths", ()) for step in path)
    return "paths" in hit and all("walked" in step for step in steps if step.get("edge") == "relation")


def _seeds(trace: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2>Seeds</h2><p>{escape(_SAID_SEEDS)}</p>"
    seeds = trace["seeds"]
    rows = [
        [
            one["name"],
            one["match"],
            one["surface"] or "-",
            *(f"{one[key]:.4g}" for key in ("align", "lexical", "cosine", "specificity")),
            "yes" if one["alias_ok"] else "no",
            f"{one['share']:.4g}" if one["share"] > 0 else "dropped",
        ]
        for one in seeds
    ]
    dropped = {at for at, one in enumerate(seeds) if one["share"] == 0}
    yield table("Entities", _SEEDS, rows, soft=dropped) if rows else "<p>None: the question has no candidate.</p>"
    if trace["passage_seeds"]:
        rows = [[one["name"], str(one["number"]), f"{one['mass']:.4g}"] for one in trace["passage_seeds"]]
        inside = table("Nearest to the question", ("passage", "row", "share of the restart"), rows)
        yield f"<details><summary>{len(rows)} passages start, too</summary>{inside}</details>"


def _facts(facts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "<h2>Facts</h2>"
    rows = [
        [
            *(one[end] for end in ("head", "relation", "tail")),
            f"{one['score']:.4g}",
            "kept" if one["kept"] else "dropped",
            one["reason"],
            str(one["fact"]),
        ]
        for one in facts
    ]
    columns = ("head", "relation", "tail", "score", "gate", "reason", "fact")
    dropped = {at for at, one in enumerate(facts) if not one["kept"]}
    yield table("Facts that the gate saw", columns, rows, soft=dropped, words=_WORDS) if rows else "<p>None.</p>"


def _hits(trace: Mapping[str, Any]) -> Iterator[str]:
    hits = trace["hits"]
    if trace["ranked_by"] != "policy":
        yield "<h2>Hits</h2><p>Without a seed, or a passage that one reaches, the ranking is that by vectors.</p>"
        rows = [[str(at), _name(hit), hit["id"], f"{hit['score']:.4f}"] for at, hit in enumerate(hits, 1)]
        yield table("Passages", ("rank", "passage", "id", "score"), rows, words=_WORDS)
        return
    yield f"<h2>Hits</h2><p>{escape(_SAID_TERMS)}</p>"
    named = [(f"{at}. {_name(hit)}", hit) for at, hit in enumerate(hits, 1)]
    yield figure(stacked_bars([(name, hit["terms"]) for name, hit in named], "score"), "Terms of each hit's score.")
    yield table("Passages", _HITS, [_row(at, hit) for at, hit in enumerate(hits, 1)], words=_WORDS)
    yield f"<h2>Where the scores come from</h2><p>{escape(_SAID_SHARES)}</p>"
    yield figure(stacked_bars(_attributed(named), "percent"), "Percent of each hit's projected score, by seed.")
    yield f"<h2>The paths</h2><p>{escape(_SAID_PATHS)}</p><figure>{edge_legend()}</figure>"
    yield f'<div class="wide graph">{drawn_subgraph(subgraph(hits))}</div>'
    yield table(
        "The strongest paths",
        _PATHS,
        [_path(name, hit, path) for name, hit in named for path in hit["paths"]],
        words=_WORDS,
    )


def _row(at: int, hit: Mapping[str, Any]) -> list[str]:
    terms = ", ".join(f"{name} {value + 0.0:+.3f}" for name, value in hit["terms"].items())
    return [str(at), _name(hit), hit["id"], f"{hit['score']:.4f}", f"{hit['projected']:.3g}", terms]


def _path(name: str, hit: Mapping[str, Any], path: Sequence[Mapping[str, Any]]) -> list[str]:
    facts = "; ".join(fact_words(path))
    return [name, f"{path[-1]['strength']:.3g}", path_words(path, hit["passage"]), facts or "-"]


def _attributed(named: Sequence[tuple[str, Mapping[str, Any]]]) -> list[tuple[str, dict[str, float]]]:
    """Percent of each hit's score by seed: of the largest seeds by name, and of the others together."""
    total: dict[tuple[str, int], float] = {}
    for _, hit in named:
        for one in hit["attribution"]:
            key = one["kind"], one["number"]
            total[key] = total.get(key, 0.0) + one["score"]
    largest = sorted(total, key=lambda key: (-total[key], key))[:NAMED_SEEDS]
    return [(name, _shares(hit["attribution"], largest)) for name, hit in named]


def _shares(attribution: Sequence[Mapping[str, Any]], largest: Sequence[tuple[str, int]]) -> dict[str, float]:
    of = {(one["kind"], one["number"]): one for one in attribution}
    shares: dict[str, float] = {}
    for key in largest:
        if key in of:  # a passage may be called as an entity is
            name = of[key]["name"] if key[0] == "entity" else f"passage {key[1]}: {of[key]['name']}"
            name = f"{name} (entity {key[1]})" if name == OTHERS else name
            shares[name] = shares.get(name, 0.0) + of[key]["score"]
    others = sum(one["score"] for key, one in of.items() if key not in largest)
    whole = sum(shares.values()) + others
    return {name: 100 * share / whole for name, share in (shares | ({OTHERS: others} if others else {})).items()}


def _name(hit: Mapping[str, Any]) -> str:
    return str(hit["title"] or hit["id"])


_SAID_SEEDS = (
    "A seed's weight is align · specificity · aliasOK, and the shares of the seeds sum to 1. align weighs the likeness "
    "of the name with the question and the cosine of their vectors; aliasOK is no where too many entities share the "
    "alias. Dropped: its weight is 0, or there are enough others."
)
_SAID_TERMS = (
    "A hit's score is its projected score, divided by the question's largest, and the re-ranking terms: the words of "
    "its title that question and facts have, the seeds that it mentions, the facts that it states, and its hubs, which "
    "are subtracted."
)
_SAID_SHARES = (
    "A walk is linear in where it starts, so the shares are exact: they sum to the projected score. The five seeds "
    "that give the hits most are named."
)
_SAID_PATHS = (
    "The strongest path of each seed that is found to reach a hit, of at most three seeds: the product of the seed's "
    "share and what the walk takes at each step. An edge is wider the stronger the path is where it ends, by its "
    "logarithm over four decades. A relation is named by the fact that most passages state, its arrow from head to "
    "tail, or by its families where there is no fact or the walk leaves one of them out; in: the entity is in the "
    "passage."
)
