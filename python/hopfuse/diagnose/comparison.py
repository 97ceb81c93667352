"""Compare recipes on the same questions: their quality, time and memory."""

from __future__ import annotations

import resource
import sys
import time
import tracemalloc
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_names, check_needs, check_unused
from ..encoders import Encoder
from ..encoders.protocol import WrappedEncoder
from ..errors import FormatError, HopfuseError, InputError
from ..evaluate.evaluation import Evaluation, evaluate
from ..evaluate.qrels import Qrels
from ..evaluate.runs import Run, join_hits
from ..index import Index
from ..io.files import read_npy, write_whole
from ..retriever import Retriever
from ..types import Hits
from .rankings import RANKINGS, Questions, Search, baseline_of, retriever_of

#: Questions per batch.
BATCH = 32
#: Timings per median.
REPEATS = 5
#: Rankings that weigh the walk for each question; their traces say how.
WEIGHED = ("guided-walk+words", "guided-walk", "hybrid-rrf")


@dataclass(frozen=True, eq=False)
class RecipeComparison:
    """Results of :func:`compare_recipes`.

    Attributes
    ----------
    evaluation : Evaluation
        Of every ranking; the baseline is the dense one or, without vectors, that by words.
    left_out : mapping of str to HopfuseError
        Rankings that were not run, and what the index or the arguments lack.
    words : str or None
        The class of the lexical leg.
    milliseconds : mapping of str to mapping of int to float
        For each ranking, the time per question by batch size: 1, and a full batch; empty unless timed.
    batch_milliseconds : mapping of str to float
        For each ranking, the time per question in the batches that were compared, their median.
    walks : frozenset of str
        Rankings that walk the graph from the names in a question.
    walk_weight : float or None
        How far the names of the first 256 questions lead: the mean of 1 - w, with w the weight of vectors and words in
        the trace of guided-walk or hybrid-rrf. None unless weighed, or if neither is compared and walks.
    search_bytes : mapping of str to int
        Peak allocation of Python and NumPy during the search of a batch; empty unless timed.
    index_bytes, array_bytes, process_bytes : int
        Size of the index, of its arrays without texts and names, and the process's largest resident set.
    """

    evaluation: Evaluation
    left_out: Mapping[str, HopfuseError]
    words: str | None
    milliseconds: Mapping[str, Mapping[int, float]]
    batch_milliseconds: Mapping[str, float]
    walks: frozenset[str]
    walk_weight: float | None
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
            "words": self.words,
            "memory": memory,
            **timed,
            "left out": {name: str(why) for name, why in self.left_out.items()},
            **self.evaluation.to_dict(per_query=per_query),
        }


def compare_recipes(
    retriever: Retriever | Index,
    questions: Sequence[str],
    qrels: Qrels,
    metrics: Sequence[str],
    *,
    vectors: Any = None,
    entities: Sequence[Sequence[Any] | None] | None = None,
    words: Any = None,
    rankings: Collection[str] = tuple(RANKINGS),
    timed: bool = False,
    weighed: bool = False,
    cache: Path | None = None,
    runs: Mapping[str, Hits | Run] | None = None,
) -> RecipeComparison:
    """Run every leg and every recipe, with default options, on the same questions.

    Parameters
    ----------
    retriever : Retriever or Index
        A retriever shares the encoder, names and threads of the rankings, and has the options of its own recipe. With
        an encoder, PolicyRAG also searches facts by vectors.
    questions : sequence of str, B entries
    qrels : Qrels
        Judgements of the same questions, by rows of the index.
    metrics : sequence of str
        Names of :func:`hopfuse.evaluate.parse_metric`.
    vectors : array_like of float (B, d), optional
        Vectors of the questions in the passages' space, by default the encoder's.
    entities : sequence of B (sequence of str, int or Match, or None), optional
        As of :meth:`hopfuse.Retriever.search`.
    words : optional
        The lexical leg, as of :class:`hopfuse.Retriever`; by default the retriever's, else the index's own or one over
        its texts.
    rankings : collection of str
        Which of :data:`RANKINGS` to run; the baseline is always run.
    timed : bool
        Also measure the time, after an untimed first search, and the memory of searches.
    weighed : bool
        Also trace a search, for :attr:`RecipeComparison.walk_weight`.
    cache : Path, optional
        A folder that keeps the encoder's vectors (:class:`CachedEncoder`).
    runs : mapping of str to Hits or Run, optional
        Runs of other systems on the same questions, judged beside the rankings. Their hits are rows of the index.

    Returns
    -------
    RecipeComparison

    Raises
    ------
    InputError
        The index has neither vectors nor words to rank, or none to compare given vectors with. A ranking is unknown, or
        a run has the name of one. Vectors or an encoder have another dimension than the index, or
        :func:`hopfuse.evaluate.evaluate` raises it.

    Examples
    --------
    >>> import hopfuse as hf
    >>> import numpy as np
    >>> from hopfuse.diagnose import compare_recipes
    >>> from hopfuse.evaluate import Qrels
    >>> passages = [{"text": "Ada wrote."}, {"text": "The sea."}]
    >>> edges, vectors = [{"src": 0, "dst": 2}], np.eye(2)
    >>> index = hf.Index.build(passages=passages, vectors=vectors, entities=["Ada"], graph=edges)
    >>> gold, own = Qrels(["q"], [[0]]), np.array([[0.5, 1.0]])
    >>> found = compare_recipes(index, ["Who is Ada?"], gold, ["hit@1"], vectors=own, rankings=["graph"])
    >>> found.evaluation.runs, found.evaluation.estimate("graph", "hit@1").mean
    (('dense', 'graph'), 1.0)
    """
    check_names(sorted(set(rankings)), "rankings", tuple(RANKINGS))
    others = dict(runs or {})
    taken = set(others) & set(RANKINGS)
    if taken:
        raise InputError(
            "duplicate", "runs", "{field} has {given!r}, the name of a ranking; give it another name", given=min(taken)
        )
    whole = retriever_of(retriever)
    check_needs("cache", cache, "encoder", whole.encoder, "whose vectors it keeps")
    if whole.encoder is not None:
        whole = whole.variant(encoder=CachedEncoder(whole.encoder, cache))
    asked = _asked(whole, questions, vectors, entities)
    if asked.vectors is None and vectors is not None and any(row is not None for row in vectors):
        check_unused("vectors", vectors, "the index has none to compare them with")
    dim = None if asked.vectors is None else asked.vectors.shape[1]
    leg, made, left_out = _retrievers(whole, words, rankings, dim)
    searches = {name: RANKINGS[name].search(one) for name, one in made.items()}
    ranked, seconds = dict[str, Hits](), dict[str, float]()
    for name in list(searches):
        try:
            ranked[name], seconds[name] = _ranked(searches[name], asked)
        except HopfuseError as error:  # such as a package of a recipe that is not installed
            left_out[name] = error
            del searches[name]
    baseline = baseline_of(whole.index)
    if baseline not in searches:
        if baseline in left_out and baseline != "words":
            raise left_out[baseline].at("dense retrieval cannot run")
        raise InputError(
            "missing",
            "words",
            "{field} is 'none', and the index has no vectors, so there is no baseline; leave {field} out",
        )
    evaluation = evaluate(qrels, {**ranked, **others}, metrics, baseline=baseline)
    size = min(BATCH, asked.size)
    timings = {n: {b: _milliseconds(s, asked, b) for b in (1, size)} for n, s in searches.items()} if timed else {}
    first = next(asked.batches(BATCH))
    peaks = {name: search_peak(search, first) for name, search in searches.items()} if timed else {}
    info = whole.index.info()
    arrays = sum(s["bytes"] for name, s in info["sections"].items() if not name.endswith((".offsets", ".bytes")))
    memory = info["bytes"], int(arrays), process_peak()
    walks = frozenset(name for name in searches if made[name].needs.entities)
    traced = next((made[name] for name in WEIGHED if name in walks), None) if weighed else None
    weight = None if traced is None else _walk_weight(traced, asked)
    took = {name: 1e3 * one for name, one in seconds.items()}
    return RecipeComparison(evaluation, left_out, leg, timings, took, walks, weight, peaks, *memory)


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


def _asked(retriever: Retriever, texts: Sequence[str], vectors: Any, entities: Any) -> Questions:
    """Return the questions with their vectors and entities; refuse an encoder that does not fit the entities."""
    encoder, names = retriever.encoder, retriever.index.entity_corpus
    if encoder is not None and names is not None:
        _check_dim("encoder", encoder.dim, names.dim, "entities")
    # The recipe that reads whatever the index has; its leg of words, which costs time, is not needed to prepare.
    reader = retriever.variant("hybrid-rrf", words="none" if retriever.index.corpus is not None else None)
    return Questions(texts, *reader.prepare(texts, vectors=vectors, entities=entities))


def _check_dim(field: str, given: int, allowed: int | None, owner: str) -> None:
    if allowed not in (None, given):
        raise InputError(
            "shape",
            field,
            "{field} has {given} dimensions, the vectors of the index's {owner} have {allowed}; give the encoder that "
            "made those, or vectors by it",
            given=given,
            allowed=allowed,
            owner=owner,
        )


def _retrievers(
    retriever: Retriever, words: Any, wanted: Collection[str], dim: int | None
) -> tuple[str | None, dict[str, Retriever], dict[str, HopfuseError]]:
    """Return the name of the lexical leg, the retrievers of the wanted rankings, and why the others are left out.

    ``dim`` is the dimension of the questions' vectors, None without any.
    """
    chosen = {
        name: ranking for name, ranking in RANKINGS.items() if name in wanted or name == baseline_of(retriever.index)
    }
    leg = RANKINGS["words"].over(retriever, words).words if any(one.words for one in chosen.values()) else None
    found, left_out = dict[str, Retriever](), dict[str, HopfuseError]()
    for name, ranking in chosen.items():
        try:
            if ranking.leg == "dense" and retriever.index.corpus is None:
                raise InputError("missing", "index", "{field} has no vectors; build it with an encoder")
            made = ranking.over(retriever, leg)
            if ranking.words and leg is None:
                raise InputError("missing", "words", "{field} is 'none', and the ranking needs a lexical leg")
            if made.encoder is None and dim is not None:
                _check_dim("vectors", dim, made.dim, made.recipe.ranks)
        except HopfuseError as error:
            left_out[name] = error
        else:
            found[name] = made
    return None if leg is None else type(leg).__name__, found, left_out


def _ranked(search: Search, questions: Questions) -> tuple[Hits, float]:
    """Return the hits of all questions, and the seconds per question, the median over batches.

    The first batch makes what is made once, so its time does not count; a single batch is searched again.
    """
    parts = list(questions.batches(BATCH))
    found, seconds = [], []
    for part in parts if len(parts) > 1 else parts * 2:
        start = time.perf_counter()
        found.append(search(part))
        seconds.append((time.perf_counter() - start) / part.size)
    return join_hits(found[-len(parts) :]), median(seconds[1:])


def _walk_weight(retriever: Retriever, questions: Questions) -> float | None:
    """Return the mean weight of the walk over the first questions, None without any."""
    first = next(questions.batches(), None)
    traces = () if first is None else first.by(retriever, 1, trace=True).traces or ()
    return mean(1.0 - trace["direct"]["weight"] for trace in traces) if traces else None


def _milliseconds(search: Search, questions: Questions, size: int) -> float:
    """Return the time per question in batches of this size, the median over batches of different questions."""
    seconds = []
    for turn in range(REPEATS + 1):
        first = turn * size % max(1, questions.size - size + 1)
        part = next(questions.batches(size, first))
        start = time.perf_counter()
        search(part)
        seconds.append((time.perf_counter() - start) / part.size)
    return 1e3 * median(seconds[1:])


_Vectors = NDArray[np.float32]


# ---- An encoder whose vectors are kept -------------------------------------------------------------------------------


class CachedEncoder(WrappedEncoder):
    """An encoder that caches the vectors of another.

    Vectors of queries are cached in memory. With a folder, vectors of queries and passages are also cached there, in a
    file for each list of texts, which later runs with the same encoder and texts read.

    Parameters
    ----------
    encoder : Encoder
    folder : Path, optional
        Created if it does not exist. The files are named by the SHA-256 hash of the encoder's name and the texts.

    Raises
    ------
    FormatError
        When encoding, if a file of the folder does not have the shape or type of its texts' vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.diagnose import CachedEncoder
    >>> class Lengths:
    ...     name, dim, normalize = "lengths", 1, False
    ...     def encode_queries(self, texts):
    ...         print("encodes", texts)
    ...         return np.array([[len(text)] for text in texts], np.float32)
    >>> cached = CachedEncoder(Lengths())
    >>> cached.encode_queries(["a", "bb"]).tolist(), cached.encode_queries(["bb"]).tolist()
    encodes ['a', 'bb']
    ([[1.0], [2.0]], [[2.0]])
    """

    def __init__(self, encoder: Encoder, folder: Path | None = None) -> None:
        super().__init__(encoder)
        self._folder = folder
        self._queries: dict[str, _Vectors] = {}

    def encode_passages(self, texts: Sequence[str]) -> _Vectors:
        """Return the vectors of passages: float32, shape (n, dim)."""
        return self._cached("passages", list(texts), self._encoder.encode_passages)

    def encode_queries(self, texts: Sequence[str]) -> _Vectors:
        """Return the vectors of queries: float32, shape (n, dim)."""
        new = list(dict.fromkeys(text for text in texts if text not in self._queries))
        if new:
            self._queries.update(zip(new, self._cached("queries", new, self._encoder.encode_queries), strict=True))
        rows = [self._queries[text] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dim), np.float32)

    def _cached(self, kind: str, texts: list[str], encode: Callable[[Sequence[str]], _Vectors]) -> _Vectors:
        if self._folder is None:
            return encode(texts)
        digest = sha256(repr((self.name, self.dim, self.normalize, kind, texts)).encode())
        path = self._folder / f"{digest.hexdigest()}.npy"
        if path.exists():
            vectors = np.asarray(read_npy(path, "cache"))
            if vectors.dtype != np.float32 or vectors.shape != (len(texts), self.dim):
                raise FormatError(
                    "damaged",
                    None,
                    "{path} holds {given} of shape {shape}; delete it",
                    path=path,
                    given=vectors.dtype,
                    shape=vectors.shape,
                )
            return vectors
        vectors = np.asarray(encode(texts), np.float32)
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda file: np.save(file, vectors))
        return vectors
