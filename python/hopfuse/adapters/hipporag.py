"""Answer HippoRAG 2's ``retrieve`` in batches, over its own graph, embeddings and OpenIE results.

HippoRAG answers one question at a time, in loops over passages and nodes. Here the questions of a batch share dense
searches over facts and passages, and the walk. HippoRAG's encoder and language model are called as HippoRAG does.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import wrong_type
from ..errors import InputError
from ..ops.dense import dense_topk
from ..ops.ppr import ppr_topk
from ..types import Corpus, Graph, Hits
from .igraph import from_igraph

__all__ = ["KNOWN", "accelerate"]

#: Methods of HippoRAG that this adapter replaces, and functions that they call.
METHODS = (
    "prepare_retrieval_objects",
    "get_query_embeddings",
    "retrieve",
    "get_fact_scores",
    "rerank_facts",
    "dense_passage_retrieval",
    "graph_search_with_fact_entities",
    "get_top_k_weights",
    "run_ppr",
)
FUNCTIONS = ("min_max_normalize", "compute_mdhash_id")
#: Supported releases, each with the SHA-256 of the source of these methods and functions.
KNOWN: Mapping[str, str] = {
    "2.0.0a4": "bdea474d6a3e076bdd0ea37dae73ff474cc7f529b32c2165eddf81ccd4f46136",
}
#: Bound on the L1 error of a walk; the error of HippoRAG's own scores is smaller.
TOL = 1e-6
#: Limits of the questions of one walk, and of the entries of its restart matrix.
BATCH, CELLS = 64, 1 << 24

_logger = logging.getLogger(__name__)


def accelerate(rag: Any) -> Any:
    """Make ``rag.retrieve`` answer questions in batches.

    Results equal those of HippoRAG's own code. The same facts go to the same language model, one question after the
    other. Passage scores agree to 1e-6, and so does the order, except among closer scores. The graph and the embeddings
    are read once, and again after HippoRAG prepares its retrieval anew or the number of nodes or edges changes.
    ``rag_qa`` calls ``retrieve``, so it also becomes faster. ``del rag.retrieve`` undoes the change.

    Parameters
    ----------
    rag : hipporag.HippoRAG
        A release in :data:`KNOWN`.

    Returns
    -------
    hipporag.HippoRAG
        The same object.

    Raises
    ------
    InputError
        ``rag`` has another type or is from an unsupported release, or its class overrides a replaced method.

    References
    ----------
    HippoRAG 2: Gutiérrez et al., From RAG to Memory, ICML 2025. https://github.com/OSU-NLP-Group/HippoRAG

    Examples
    --------
    >>> from hopfuse.adapters.hipporag import accelerate
    >>> accelerate(3)
    Traceback (most recent call last):
    hopfuse.errors.InputError: rag is of the type int; it must be a hipporag.HippoRAG
    """
    _check_rag(rag)
    if not isinstance(vars(rag).get("retrieve"), _BatchRetrieve):
        rag.retrieve = _BatchRetrieve(rag)
    return rag


# ---- Which HippoRAG -------------------------------------------------------------------------------------------------


def _check_rag(rag: Any) -> None:
    own = next((kind for kind in type(rag).__mro__ if kind.__module__ == "hipporag.HippoRAG"), None)
    if own is None:
        raise wrong_type(rag, "rag", "a hipporag.HippoRAG")
    try:
        installed = version("hipporag")
    except PackageNotFoundError:
        installed = "without metadata"
    found = _digest(own)
    if found not in KNOWN.values():
        raise InputError(
            "version",
            "rag",
            "{field} is of hipporag {given}; supported: {allowed}. Install one of these, or accelerate only the walk: "
            "hopfuse.adapters.igraph.accelerate(rag.graph)",
            given=installed,
            allowed=", ".join(KNOWN),
        )
    for name in METHODS:
        changed = inspect.getattr_static(type(rag), name) is not inspect.getattr_static(own, name)
        if changed or (name in vars(rag) and not isinstance(vars(rag)[name], _BatchRetrieve)):
            raise InputError(
                "unsupported",
                "rag",
                "{field} has its own {method}, which this adapter would replace; accelerate only the walk: "
                "hopfuse.adapters.igraph.accelerate(rag.graph)",
                method=f"{type(rag).__name__}.{name}",
            )


def _digest(own: type) -> str:
    """Return the SHA-256 of the replaced source code, or of the empty string if the source is missing."""
    functions = import_module("hipporag.utils.misc_utils")
    try:
        parts = [inspect.getsource(getattr(own, name)) for name in METHODS]
        parts += [inspect.getsource(getattr(functions, name)) for name in FUNCTIONS]
    except (OSError, AttributeError):
        parts = []
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


# ---- Graph and embeddings --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Prepared:
    """The graph and the embeddings of a HippoRAG, and the objects that they were read from."""

    sources: tuple[Any, ...]
    sizes: tuple[int, int]
    walk: Graph
    facts: Corpus | None
    passages: Corpus
    passage_nodes: NDArray[np.int64]
    #: The passage of each node; meaningless for nodes that are not passages.
    passage_of: NDArray[np.int64]

    @classmethod
    def read(cls, rag: Any) -> _Prepared:
        passage_nodes = np.array(rag.passage_node_idxs, np.int64)
        passage_of = np.zeros(rag.graph.vcount(), np.int64)
        passage_of[passage_nodes] = np.arange(passage_nodes.size)
        return cls(
            cls._sources(rag),
            cls._sizes(rag),
            from_igraph(rag.graph, weights="weight", directed=False),
            _corpus(rag.fact_embeddings) if len(rag.fact_embeddings) else None,
            _corpus(rag.passage_embeddings),
            passage_nodes,
            passage_of,
        )

    def is_of(self, rag: Any) -> bool:
        same = zip(self.sources, self._sources(rag), strict=True)
        return self.sizes == self._sizes(rag) and all(mine is its for mine, its in same)

    @staticmethod
    def _sources(rag: Any) -> tuple[Any, ...]:
        return rag.graph, rag.fact_embeddings, rag.passage_embeddings, rag.passage_node_idxs

    @staticmethod
    def _sizes(rag: Any) -> tuple[int, int]:
        return rag.graph.vcount(), rag.graph.ecount()


def _corpus(embeddings: Any) -> Corpus:
    return Corpus.from_array(np.ascontiguousarray(embeddings, np.float32))


# ---- Retrieval ------------------------------------------------------------------------------------------------------


class _Ranked(NamedTuple):
    """Positions of passages, and their scores in descending order: (k,) for a question, (B, k) for a batch."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float64]


class _Facts(NamedTuple):
    """A question's facts after the language model's filter, with positions and scores; none means dense retrieval."""

    kept: list[Any]
    places: list[int]
    scores: dict[int, float]


class _BatchRetrieve:
    """HippoRAG's ``retrieve`` for one object."""

    def __init__(self, rag: Any) -> None:
        self.rag = rag
        self._prepared: _Prepared | None = None

    def __call__(
        self,
        queries: Sequence[str],
        num_to_retrieve: int | None = None,
        gold_docs: Sequence[Sequence[str]] | None = None,
    ) -> Any:
        """Return a QuerySolution for each question and, with ``gold_docs``, the evaluation, as HippoRAG does."""
        rag, begin = self.rag, time.time()
        config = rag.global_config
        wanted = config.retrieval_top_k if num_to_retrieve is None else num_to_retrieve
        if not rag.ready_to_retrieve:
            rag.prepare_retrieval_objects()
        if not config.linking_top_k or not rag.passage_node_keys or wanted < 0:  # special cases of HippoRAG
            return type(rag).retrieve(rag, queries, num_to_retrieve, gold_docs)
        rag.get_query_embeddings(queries)
        if self._prepared is None or not self._prepared.is_of(rag):
            self._prepared = _Prepared.read(rag)
        retrieved: list[Any] = []
        step = max(1, min(BATCH, CELLS // self._prepared.walk.num_nodes))
        for first in range(0, len(queries), step):
            retrieved += _retrieve(rag, self._prepared, list(queries[first : first + step]), wanted)
        rag.all_retrieval_time += time.time() - begin
        if gold_docs is None:
            return retrieved
        recall = import_module("hipporag.evaluation.retrieval_eval").RetrievalRecall(global_config=config)
        found = [solution.docs for solution in retrieved]
        ranks = [1, 2, 5, 10, 20, 30, 50, 100, 150, 200]
        overall, _ = recall.calculate_metric_scores(gold_docs=gold_docs, retrieved_docs=found, k_list=ranks)
        return retrieved, overall


def _retrieve(rag: Any, prepared: _Prepared, queries: list[str], wanted: int) -> list[Any]:
    """Return the solutions of a batch of questions."""
    begin = time.time()
    facts = _linked_facts(rag, prepared, queries)
    rag.rerank_time += time.time() - begin
    similar = _min_max(dense_topk(_embeddings(rag, queries, "passage"), prepared.passages, len(prepared.passage_nodes)))
    begin = time.time()
    ranked = [_Ranked(np.zeros(0, np.int64), np.zeros(0))] * len(queries)
    walks, restarts = [], []
    for row, (query, linked) in enumerate(zip(queries, facts, strict=True)):
        if not linked.kept:
            ranked[row] = _Ranked(similar.ids[row, :wanted], similar.scores[row, :wanted])
            continue
        phrases = _phrase_weights(rag, linked)
        if phrases is None:  # HippoRAG's own error, or its answer if a custom filter returns other facts
            ids, scores = _own_search(rag, query, linked)
            ranked[row] = _Ranked(np.asarray(ids[:wanted]), np.asarray(scores[:wanted]))
            continue
        walks.append(row)
        restarts.append(phrases)
    if walks and wanted:
        for row, found in zip(walks, _walk(rag, prepared, similar, walks, restarts, wanted), strict=True):
            ranked[row] = found
    rag.ppr_time += time.time() - begin
    solution = import_module("hipporag.utils.misc_utils").QuerySolution
    solutions = []
    for query, (ids, scores) in zip(queries, ranked, strict=True):
        rows = (rag.chunk_embedding_store.get_row(rag.passage_node_keys[place]) for place in ids.tolist())
        solutions.append(solution(question=query, docs=[row["content"] for row in rows], doc_scores=scores))
    return solutions


def _linked_facts(rag: Any, prepared: _Prepared, queries: list[str]) -> list[_Facts]:
    """Return those of each question's most similar facts that HippoRAG's filter, a language model, keeps."""
    none = _Facts([], [], {})
    if prepared.facts is None or not rag.fact_node_keys:
        return [none] * len(queries)
    vectors, most = _embeddings(rag, queries, "triple"), int(rag.global_config.linking_top_k)
    nearest = dense_topk(vectors, prepared.facts, most)
    lowest = -dense_topk(-vectors, prepared.facts, 1).scores.astype(np.float64)
    scores = nearest.scores.astype(np.float64)
    width = scores[:, :1] - lowest
    scores = np.where(width > 0, (scores - lowest) / np.where(width > 0, width, 1.0), 1.0)
    linked = []
    for query, places, row in zip(queries, nearest.ids.tolist(), scores.tolist(), strict=True):
        try:
            stored = rag.fact_embedding_store.get_rows([rag.fact_node_keys[place] for place in places])
            candidates = [ast.literal_eval(fact["content"]) for fact in stored.values()]
            left, kept, _ = rag.rerank_filter(query, candidates, places, len_after_rerank=most)
        except Exception as error:  # like HippoRAG, answer by dense retrieval if the filter fails
            _logger.error("the filter of facts failed for %r: %s", query, error)
            linked.append(none)
        else:
            linked.append(_Facts(list(kept), list(left), dict(zip(places, row, strict=True))))
    return linked


def _phrase_weights(rag: Any, facts: _Facts) -> dict[int, float] | None:
    """Return the restart weights of the nodes linked to a question; None if HippoRAG's own code must handle it.

    The weight of a phrase is the mean, over its occurrences in facts, of the fact's score divided by the number of
    passages with the phrase. The best ``linking_top_k`` are kept.
    """
    weight: dict[int | None, float] = {}
    occurrences: dict[int | None, int] = {}
    phrases: set[tuple[str, int | None]] = set()  # a set, as in HippoRAG, whose order decides among equal phrases
    for fact, place in zip(facts.kept, facts.places, strict=True):
        if place not in facts.scores:
            return None
        for phrase in (fact[0].lower(), fact[2].lower()):
            key = "entity-" + hashlib.md5(phrase.encode(), usedforsecurity=False).hexdigest()
            node = rag.node_name_to_vertex_idx.get(key)
            passages = len(rag.ent_node_to_chunk_ids.get(key, ()))
            weight[node] = weight.get(node, 0.0) + facts.scores[place] / (passages or 1)
            occurrences[node] = occurrences.get(node, 0) + 1
            phrases.add((phrase, node))
    means = {node: weight[node] / occurrences[node] for _, node in phrases}
    best = dict(sorted(means.items(), key=lambda one: one[1], reverse=True)[: rag.global_config.linking_top_k])
    if None in means or not all(best.values()):
        return None
    return {int(node): mean for node, mean in best.items() if node is not None}


def _own_search(rag: Any, query: str, facts: _Facts) -> tuple[Any, Any]:
    config = rag.global_config
    found: tuple[Any, Any] = rag.graph_search_with_fact_entities(
        query=query,
        link_top_k=config.linking_top_k,
        query_fact_scores=rag.get_fact_scores(query),
        top_k_facts=facts.kept,
        top_k_fact_indices=facts.places,
        passage_node_weight=config.passage_node_weight,
    )
    return found


def _walk(
    rag: Any, prepared: _Prepared, similar: _Ranked, rows: list[int], phrases: list[dict[int, float]], wanted: int
) -> list[_Ranked]:
    """Return the best passages, with scores, of the rows of a batch that have phrases."""
    restart = np.zeros((len(rows), prepared.walk.num_nodes))
    mass = max(float(rag.global_config.passage_node_weight), 0.0)
    at = np.arange(len(rows))[:, None]
    restart[at, prepared.passage_nodes[similar.ids[rows]]] = mass * similar.scores[rows]
    for row, nodes in zip(restart, phrases, strict=True):
        row[list(nodes)] += list(nodes.values())
    damping = rag.global_config.damping
    hits = ppr_topk(
        prepared.walk,
        restart,
        wanted,
        candidates=prepared.passage_nodes,
        stop="tol",
        damping=0.5 if damping is None else damping,
        tol=TOL,
    )
    found = []
    for ids, scores, count in zip(hits.ids, hits.scores, hits.counts.tolist(), strict=True):
        places = prepared.passage_of[ids[:count]]
        # HippoRAG also lists passages with score 0, which are not hits.
        if count < min(wanted, len(prepared.passage_nodes)):
            rest = np.setdiff1d(np.arange(len(prepared.passage_nodes)), places)[::-1][: wanted - count]
            places = np.concatenate([places, rest])
        padded = np.zeros(len(places))
        padded[:count] = scores[:count]
        found.append(_Ranked(places, padded))
    return found


def _embeddings(rag: Any, queries: list[str], use: str) -> NDArray[np.float32]:
    """Return the questions' vectors for facts ("triple") or passages, (B, d)."""
    vectors = [np.asarray(rag.query_to_embedding[use][query], np.float32).reshape(-1) for query in queries]
    return np.stack(vectors)


def _min_max(hits: Hits) -> _Ranked:
    """Return hits of all passages with scores (s - min)/(max - min), or 1 if all scores are equal."""
    scores = hits.scores.astype(np.float64)
    low, width = scores[:, -1:], scores[:, :1] - scores[:, -1:]
    return _Ranked(hits.ids, np.where(width > 0, (scores - low) / np.where(width > 0, width, 1.0), 1.0))
