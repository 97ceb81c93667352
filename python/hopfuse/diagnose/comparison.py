"""Compare recipes on the same questions: their quality, time and memory."""

from __future__ import annotations

import resource
import sys
import time
import tracemalloc
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import check_names
from ..encoders import Encoder
from ..errors import InputError
from ..evaluate.evaluation import Evaluation, evaluate
from ..evaluate.qrels import Qrels
from ..evaluate.runs import Run, join_hits
from ..index import Index
from ..ops.dense import dense_topk
from ..ops.projection import project_topk
from ..recipes import GuidedWalk, HybridRRF, PhaseGraph, PolicyRAG, TripleHybrid
from ..types import Hits, Incidence

if TYPE_CHECKING:
    from ..extract import Match

BASELINE = "dense"
#: Names of the rankings that are compared: single legs, then recipes.
RANKINGS = (
    BASELINE,
    "words",
    "graph",
    "graph-else-dense",
    "triple-vector",
    "triple-graph",
    "guided-walk",
    "guided-walk+words",
    "phase-graph",
    "phase-graph+words",
    "hybrid-rrf",
    "hybrid-convex",
    "policy-rag",
    "triple-hybrid",
)
#: The mode of TripleHybrid of a ranking.
_MODES = {"triple-vector": "vector", "triple-graph": "graph", "triple-hybrid": "hybrid"}
_READ_WORDS = frozenset(("words", "guided-walk+words", "phase-graph+words", "hybrid-rrf", "hybrid-convex"))
#: Hits per ranking, and questions per batch.
DEPTH = 10
BATCH = 32
#: Timings per median.
REPEATS = 5
#: Entities whose scores are added to the passages that mention them.
ENTITIES = 100


class Questions(NamedTuple):
    """Questions with their vectors and entities, a row for each.

    Attributes
    ----------
    texts : sequence of str
    vectors : ndarray of float, shape (B, d)
        By the encoder of the passages' vectors.
    entities : sequence of sequences of str, int or Match
        Names as the questions have them, numbers of the index's entities, or matches.
    """

    texts: Sequence[str]
    vectors: NDArray[Any]
    entities: Sequence[Sequence[str | int | Match]]

    def slice(self, first: int, last: int) -> Questions:
        """Return the questions first .. last - 1."""
        return Questions(self.texts[first:last], self.vectors[first:last], self.entities[first:last])


Search = Callable[[Questions], Hits]


@dataclass(frozen=True, eq=False)
class RecipeComparison:
    """Results of :func:`compare_recipes`.

    Attributes
    ----------
    evaluation : Evaluation
        Of every ranking, with the dense one as baseline.
    left_out : mapping of str to str
        Rankings that were not run, and what the index or the arguments lack.
    milliseconds : mapping of str to mapping of int to float
        For each ranking, the time per question by batch size: 1, and a full batch; empty unless timed.
    search_bytes : mapping of str to int
        Peak allocation of Python and NumPy during the search of a batch; empty unless timed.
    index_bytes, array_bytes, process_bytes : int
        Size of the index, of its arrays without texts and names, and the process's largest resident set.
    """

    evaluation: Evaluation
    left_out: Mapping[str, str]
    milliseconds: Mapping[str, Mapping[int, float]]
    search_bytes: Mapping[str, int]
    index_bytes: int
    array_bytes: int
    process_bytes: int

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """Return a JSON-serialisable form, optionally with the values of each question."""
        memory = {
            "index bytes": self.index_bytes,
            "index array bytes": self.array_bytes,
            "process peak bytes": self.process_bytes,
        }
        timed = {"ms per query": dict(self.milliseconds)} if self.milliseconds else {}
        if self.search_bytes:
            memory["search peak bytes"] = dict(self.search_bytes)  # type: ignore[assignment]
        return {
            "memory": memory,
            **timed,
            "left out": dict(self.left_out),
            **self.evaluation.to_dict(per_query=per_query),
        }


def compare_recipes(
    index: Index,
    questions: Questions,
    qrels: Qrels,
    metrics: Sequence[str],
    *,
    lexical: Any = None,
    encoder: Encoder | None = None,
    rankings: Collection[str] = RANKINGS,
    timed: bool = False,
    threads: int | None = None,
    runs: Mapping[str, Hits | Run] | None = None,
) -> RecipeComparison:
    """Run every leg and every recipe, with default options, on the same questions.

    Parameters
    ----------
    index : Index
        Must have vectors and a graph.
    questions : Questions
    qrels : Qrels
        Judgements of the same questions, by rows of the index.
    metrics : sequence of str
        Names of :func:`hopfuse.evaluate.parse_metric`.
    lexical : optional
        The lexical leg over the index's passages; without it, lexical rankings are left out.
    encoder : Encoder, optional
        The encoder of the entities' vectors. With it, PolicyRAG also searches facts by vectors.
    rankings : collection of str
        Which of :data:`RANKINGS` to run; the dense one is always run.
    timed : bool
        Also measure the time, after an untimed first search, and the memory of searches.
    threads : int, optional
    runs : mapping of str to Hits or Run, optional
        Runs of other systems on the same questions, judged beside the rankings. Their hits are rows of the index.

    Returns
    -------
    RecipeComparison

    Raises
    ------
    InputError
        The index has no vectors or no graph, a ranking is unknown, a run has the name of a ranking, or
        :func:`hopfuse.evaluate.evaluate` raises it.

    Examples
    --------
    >>> import hopfuse as hf
    >>> import numpy as np
    >>> from hopfuse.diagnose import Questions, compare_recipes
    >>> from hopfuse.evaluate import Qrels
    >>> passages = [{"text": "Ada wrote."}, {"text": "The sea."}]
    >>> edges, vectors = [{"src": 0, "dst": 2}], np.eye(2)
    >>> index = hf.Index.build(passages=passages, vectors=vectors, entities=["Ada"], graph=edges)
    >>> asked = Questions(["Who is Ada?"], np.array([[0.5, 1.0]]), [["Ada"]])
    >>> found = compare_recipes(index, asked, Qrels(["q"], [[0]]), ["hit@1"], rankings=["graph"])
    >>> found.evaluation.runs, found.evaluation.estimate("graph", "hit@1").mean
    (('dense', 'graph'), 1.0)
    """
    check_names(sorted(set(rankings)), "rankings", RANKINGS)
    if index.corpus is None or index.graph is None:
        raise InputError("missing", "index", "{field} has no vectors or no graph; build it with vectors and edges")
    others = dict(runs or {})
    taken = set(others) & set(RANKINGS)
    if taken:
        raise InputError(
            "duplicate", "runs", "{field} has {given!r}, the name of a ranking; give it another name", given=min(taken)
        )
    made = _makers(index, lexical, encoder, threads)
    searches: dict[str, Search] = {}
    left_out: dict[str, str] = {}
    for name in RANKINGS:
        if name in rankings or name == BASELINE:
            why = _lacks(name, index, questions, lexical, encoder)
            if why:
                left_out[name] = why
            else:
                searches[name] = made[name]()
    count = len(questions.texts)
    batches = [questions.slice(first, first + BATCH) for first in range(0, count, BATCH)]
    ranked = {name: join_hits([search(batch) for batch in batches]) for name, search in searches.items()}
    evaluation = evaluate(qrels, {**ranked, **others}, metrics, baseline=BASELINE)
    size = min(BATCH, count)
    timings = {n: {b: _milliseconds(s, questions, b) for b in (1, size)} for n, s in searches.items()} if timed else {}
    peaks = {name: search_peak(search, batches[0]) for name, search in searches.items()} if timed else {}
    info = index.info()
    arrays = sum(s["bytes"] for name, s in info["sections"].items() if not name.endswith((".offsets", ".bytes")))
    return RecipeComparison(evaluation, left_out, timings, peaks, info["bytes"], int(arrays), process_peak())


def reads_words(rankings: Collection[str]) -> bool:
    """Return whether any of these rankings needs a lexical leg.

    Examples
    --------
    >>> reads_words(["dense", "graph"]), reads_words(["hybrid-rrf"])
    (False, True)
    """
    return not _READ_WORDS.isdisjoint(rankings)


def search_peak(search: Search, questions: Questions) -> int:
    """Return the peak number of bytes that Python and NumPy allocate during a search."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        search(questions)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def process_peak() -> int:
    """Return the process's largest resident set in bytes; Linux reports KiB, macOS bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _lacks(name: str, index: Index, questions: Questions, lexical: Any, encoder: Encoder | None) -> str:
    """Return why a ranking cannot be run, or an empty string."""
    if name in _READ_WORDS and lexical is None:
        return "it needs a lexical leg, and none is given"
    if name in _MODES:
        lacking = TripleHybrid.missing(index)
        if lacking is not None:
            return str(lacking)
        assert index.entity_corpus is not None
        space, dim = index.entity_corpus.dim, questions.vectors.shape[1]
        if encoder is None and space != dim:
            return f"the entities' vectors have {space} dimensions, the questions' {dim}; also give an encoder"
    return ""


def _makers(
    index: Index, lexical: Any, encoder: Encoder | None, threads: int | None
) -> dict[str, Callable[[], Search]]:
    """Return a function for each ranking that makes its search, so that rankings not run cost nothing."""
    corpus = index.corpus
    assert corpus is not None
    common: dict[str, Any] = {"encoder": encoder, "threads": threads}

    def graph(*, dense_fallback: bool) -> Search:
        pools: dict[str, Any] = {"graph_k": DEPTH, "dense_k": DEPTH if dense_fallback else 1}
        walk = PhaseGraph(index, dense_fallback=dense_fallback, **pools, **common)
        return lambda asked: walk.search(vectors=asked.vectors, entities=asked.entities, k=1).lists["graph"]

    def policy() -> Search:
        encoded = encoder is not None and index.facts is not None
        facts = encoder.encode_passages(index.facts.texts(index.entity_names)) if encoded else None  # type: ignore[union-attr]
        return _searching(PolicyRAG(index, fact_vectors=facts, **common))

    return {
        BASELINE: lambda: lambda asked: dense_topk(asked.vectors, corpus, DEPTH, threads=threads),
        "words": lambda: lambda asked: lexical.search(list(asked.texts), DEPTH),
        "graph": lambda: graph(dense_fallback=False),
        "graph-else-dense": lambda: graph(dense_fallback=True),
        "guided-walk": lambda: _searching(GuidedWalk(index, **common)),
        "guided-walk+words": lambda: _searching(GuidedWalk(index, lexical=lexical, **common)),
        "phase-graph": lambda: _searching(PhaseGraph(index, **common)),
        "phase-graph+words": lambda: _searching(PhaseGraph(index, lexical=lexical, **common)),
        "hybrid-rrf": lambda: _searching(HybridRRF(index, lexical=lexical, **common)),
        "hybrid-convex": lambda: _searching(HybridRRF(index, lexical=lexical, fusion="convex", **common)),
        "policy-rag": policy,
        **{name: partial(by_mention, index, encoder, threads, mode=mode) for name, mode in _MODES.items()},
    }


def _searching(recipe: Any) -> Search:
    def search(asked: Questions) -> Hits:
        texts = list(asked.texts)
        hits: Hits = recipe.search(texts, vectors=asked.vectors, entities=asked.entities, k=DEPTH).hits
        return hits

    return search


def by_mention(index: Index, encoder: Encoder | None, threads: int | None = None, **options: Any) -> Search:
    """Return a search that ranks passages by the sum of TripleHybrid's scores of the entities they mention.

    Scores below 0 count as 0. ``options`` are those of the recipe.
    """
    assert index.graph is not None
    recipe = TripleHybrid(index, encoder=encoder, threads=threads, **options)
    mentions = Incidence.from_graph(index.graph, index.num_passages)
    most = min(ENTITIES, max(1, index.num_entities))

    def search(asked: Questions) -> Hits:
        texts = list(asked.texts)
        vectors = asked.vectors if encoder is None else encoder.encode_queries(texts)
        found = recipe.search(texts, vectors=vectors, k=most).hits
        scores = np.zeros((len(found), mentions.num_columns), np.float32)
        rows, columns = np.nonzero(np.arange(found.ids.shape[1]) < found.counts[:, None])
        scores[rows, index.num_passages + found.ids[rows, columns]] = np.maximum(found.scores[rows, columns], 0)
        return project_topk(scores, mentions, DEPTH, threads=threads)

    return search


def _milliseconds(search: Search, questions: Questions, size: int) -> float:
    """Return the time per question in batches of this size, the median over batches of different questions."""
    seconds = []
    for turn in range(REPEATS + 1):
        first = turn * size % max(1, len(questions.texts) - size + 1)
        part = questions.slice(first, first + size)
        start = time.perf_counter()
        search(part)
        seconds.append((time.perf_counter() - start) / len(part.texts))
    return 1e3 * median(seconds[1:])
