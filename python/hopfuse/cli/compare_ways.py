"""What ``hopfuse compare`` runs: every leg and every recipe that an index has what is needed for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from .. import Hits, Index, dense_topk
from ..encoders import Encoder
from ..errors import InputError
from ..lexical import BM25, FTS5
from ..recipes import HybridRRF, PhaseGraph, Policy, TripleHybrid
from .mentioned import Mentioned
from .recipe_choice import policy_rag, triple_hybrid

BASELINE = "dense"
DEPTH = 10
Asked = tuple[list[str], NDArray[Any], list[Sequence[str | int]]]
Search = Callable[[list[str], NDArray[Any], list[Sequence[str | int]]], Hits]


def check_spaces(index: Index, vectors: int | None, name: str | None, encoder: Encoder | None) -> None:
    """Refuse vectors and an encoder that are of another number of dimensions than what they search.

    ``vectors``: dimensions of those of ``--vectors``, which search the passages; ``name``: what ``--encoder`` names,
    which searches the entities, and the passages too where there is no ``--vectors``.
    """
    assert index.corpus is not None
    passages, entities = index.corpus.dim, index.entity_corpus
    if vectors is not None and vectors != passages:
        raise InputError(
            f"--vectors has {vectors} dimensions, the passages' vectors {passages}; give vectors of the passages' space"
        )
    if encoder is None:
        return
    if vectors is None and encoder.dim != passages:
        raise InputError(
            f"--encoder {name} has {encoder.dim} dimensions, the passages' vectors {passages}; name the encoder that "
            "made these, or give the questions' vectors of their space with --vectors"
        )
    if entities is not None and encoder.dim != entities.dim:
        without = "leave --encoder out" if vectors is not None else "give --vectors instead"
        raise InputError(
            f"--encoder {name} has {encoder.dim} dimensions, the entities' vectors {entities.dim}: these are of "
            f"another space; name the encoder that made them, or {without}: entities are found by names alone then"
        )


def searches(
    index: Index, words: BM25 | FTS5, encoder: Encoder | None, dim: int, threads: int | None
) -> tuple[dict[str, Search], dict[str, str]]:
    """The single legs and the recipes, each from texts, vectors and entities to hits; and why others are left out.

    ``words``: the lexical leg; ``encoder``: of the entities' space; ``dim``: of the questions' vectors.
    """
    common: dict[str, Any] = {"encoder": encoder, "threads": threads}
    corpus = index.corpus
    assert corpus is not None
    recipes: dict[str, Any] = {
        "phase-graph": PhaseGraph(index, **common),
        "phase-graph, words": PhaseGraph(index, lexical=words, **common),
        "hybrid-rrf": HybridRRF(index, lexical=words, **common),
        "hybrid-convex": HybridRRF(index, lexical=words, fusion="convex", **common),
    }
    walk = PhaseGraph(index, graph_k=DEPTH, dense_k=1, **common)
    ways: dict[str, Search] = {
        BASELINE: lambda _, vectors, __: dense_topk(vectors, corpus, DEPTH, threads=threads),
        "words": lambda texts, _, __: words.search(texts, DEPTH),
        "graph": lambda _, vectors, entities: walk.search(vectors=vectors, entities=entities, k=1).graph,
        **{name: _of(recipe) for name, recipe in recipes.items()},
    }
    left_out: dict[str, str] = {}
    others: dict[str, Callable[[], Search]] = {
        "policy-rag": lambda: _of(policy_rag(index, Policy(), encoder, threads)),
        "triple-hybrid": lambda: _by_mention(index, triple_hybrid(index, encoder, threads), dim, threads),
    }
    for name, make in others.items():
        try:
            ways[name] = make()
        except InputError as error:
            left_out[name] = str(error).removeprefix(f"{name}: ")
    return ways, left_out


def _of(recipe: Any) -> Search:
    def search(texts: list[str], vectors: NDArray[Any], entities: list[Sequence[str | int]]) -> Hits:
        hits: Hits = recipe.search(texts, vectors=vectors, entities=entities, k=DEPTH).hits
        return hits

    return search


def _by_mention(index: Index, recipe: TripleHybrid, dim: int, threads: int | None) -> Search:
    """By the encoder's vectors of the questions, else by theirs, where these can be of the entities' space."""
    view, encoder, space = Mentioned(index, threads), recipe.encoder, recipe.corpus.dim
    if encoder is None and space != dim:
        raise InputError(f"the entities' vectors have {space} dimensions, the questions' {dim}; give --encoder too")

    def search(texts: list[str], vectors: NDArray[Any], _: list[Sequence[str | int]]) -> Hits:
        asked = vectors if encoder is None else encoder.encode_queries(texts)
        return view.passages(recipe.search(texts, vectors=asked, k=view.entities).hits, DEPTH)

    return search
