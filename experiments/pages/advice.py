"""docs/quality.md: which recipe to use, and the recall behind the advice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bench.markdown import table

from .about import CONVERSATION, DEFAULT, GRAPHS, ONE, PLAIN, SETS, SEVERAL
from .numbers import percent, points, size

Results = Mapping[str, Any]
KINDS = {SEVERAL: "several hops", CONVERSATION: "conversation", ONE: "one passage answers"}
MISSING = "–"


def advice(results: Results) -> str:
    """Return the page."""
    recorded = results["side-by-side"]
    indexes = [found for kind in KINDS for found in _indexes(recorded, kind)]
    counts = [found["questions"] for found in indexes]
    return _PAGE.format(
        choices=table(["Your questions", "Use"], CHOICES, words=2),
        table=recall(recorded),
        several=_gain(_indexes(recorded, SEVERAL)),
        talk=_gain(_indexes(recorded, CONVERSATION)),
        one_words=_gain(_indexes(recorded, ONE, "words")),
        one_spacy=_gain(_indexes(recorded, ONE, "spacy")),
        mrr=_mrr(_indexes(recorded, ONE, "spacy")),
        without=_without_words(_indexes(recorded, ONE)),
        fewest=min(counts),
        most=max(counts),
        commits=", ".join(sorted({found["commit"] for found in indexes})),
    )


def recall(recorded: Mapping[str, Any]) -> str:
    """Return recall@5 of dense, the plain hybrid and the default, a row for each set; the best of a row is bold."""
    rows = []
    for one in (one for one in SETS if one.kind in KINDS):
        for name in (name for name in one.folders if name in recorded):
            graphs = recorded[name]
            first = next(iter(graphs.values()))["means"]
            values = [first["dense"]["recall@5"], first[PLAIN]["recall@5"]]
            values += [graphs[graph]["means"][DEFAULT]["recall@5"] if graph in graphs else None for graph in GRAPHS]
            best = max(value for value in values if value is not None)
            cells = [MISSING if v is None else f"**{percent(v)}**" if v == best else percent(v) for v in values]
            questions = str(next(iter(graphs.values()))["questions"])
            rows.append([f"[{name}](quality/{one.page}.md)", KINDS[one.kind], questions, *cells])
    head = ["set", "questions", "number", "dense", "plain hybrid", *(f"default, {name}" for name in GRAPHS.values())]
    return table(head, rows, words=2)


def _indexes(recorded: Mapping[str, Any], kind: str, graph: str | None = None) -> list[Mapping[str, Any]]:
    """Return the figures of all indexes of a kind of set, or of those with one graph."""
    names = [name for one in SETS if one.kind == kind for name in one.folders if name in recorded]
    return [found for name in names for origin, found in recorded[name].items() if graph in (None, origin)]


def _differences(indexes: Iterable[Mapping[str, Any]], metric: str, run: str = DEFAULT) -> list[float]:
    return [found["means"][run][metric] - found["means"][PLAIN][metric] for found in indexes]


def _gain(indexes: list[Mapping[str, Any]]) -> str:
    """Return the mean difference of the default from the plain hybrid in recall@5, with its range."""
    found = _differences(indexes, "recall@5")
    mean = sum(found) / len(found)
    return f"{points(mean)} points over {len(found)} indexes (from {points(min(found))} to {points(max(found))})"


def _mrr(indexes: list[Mapping[str, Any]]) -> str:
    found = _differences(indexes, "mrr")
    return f"{size(sum(found) / len(found))} points lower"


def _without_words(indexes: list[Mapping[str, Any]]) -> str:
    found = _differences(indexes, "recall@5", "guided-walk")
    mean = size(sum(found) / len(found))
    return f"{mean} points below the plain hybrid on average, and {size(min(found))} at worst"


CHOICES = (
    ('need several passages: "Where was the director of Alien born?"', "the default"),
    ("are about conversations, as in an agent's memory", "the default"),
    (
        "are each answered by one passage",
        "the default over a graph of words (`--reader words`) with BM25 (`--lexical`), or `PlainHybrid`",
    ),
    ("come to an index without vectors or without a graph", "`HybridRRF`: it runs on whatever is there"),
    ("must be answered by rules that people read and edit", "`PolicyRAG`"),
    ("ask for entities, not for passages", "`TripleHybrid`"),
)

_PAGE = """# Retrieval quality

## Which recipe to use

Use the default. Over an index with vectors, a graph and BM25 it is `GuidedWalk`: a walk over the graph that the
question steers. `hopfuse diagnose` tells you which recipe is best on your own questions.

{choices}
**What the default gains over a plain hybrid of words and vectors, in recall@5:**

- Several hops: {several}. The graph helps most where a question names something rare and the answer is elsewhere.
- Conversations: {talk}. Turns are short, and few of their words are in the question.
- One passage answers, graph of words: {one_words}. The gain is small; a plain hybrid is simpler.
- One passage answers, spaCy's graph: {one_spacy}. The first right passage also comes later: MRR is {mrr}.
- Keep BM25 in the index. Without it, where one passage answers, the default is {without}.

## recall@5

recall@5 is the share of a question's right passages that are among its first five hits, in percent.

- *dense*: only vectors.
- *plain hybrid*: words and vectors, fused by reciprocal ranks as in other systems.
- *default*: `GuidedWalk` with BM25, over the graph that comes with the set, or over one that `hopfuse build` makes
  from the texts by `--reader spacy` or `--reader words`. A dash means that this was not measured.

{table}
Each set has a page with all recipes. [MetaQA](quality/metaqa.md), whose answers are entities and which dense vectors
hardly find, is not in the means. [Performance](performance.md) has the times.

## How this was measured

- `python -m experiments.side_by_side` builds the indexes with `hopfuse build` and runs `hopfuse compare` on them
  (commits {commits}). Every recipe has its default options. [Research](guides/research.md) has the command for one
  set, and [how the sets were made](quality/sets.md) the packages behind them.
- Figures are of the test half of each set's questions, by the MD5 hash of their ids. Defaults were chosen on the
  other halves ([how](experiments.md#how-were-the-defaults-chosen)).
- Passages and questions have vectors of all-MiniLM-L6-v2, entities and facts those of WordLlama.
- Over a set's own graph, a question's names come with the set; over a reader's graph, they are found in its words.
- The indexes were measured at the commits named above. Since then, BM25 reads some words differently, which moves
  single figures a little.

**Limits.** The test half of a set has {fewest} to {most} questions, so a difference of a few points on one set may be
chance; the sets' pages have intervals. All texts are English. All vectors are of one small encoder: a stronger one
may change the order.
"""
