"""The igraph adapter against igraph: its own arguments, any graph, one query or many, and patched in."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.adapters.igraph import accelerate, from_igraph, personalized_pagerank, personalized_pagerank_batch
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

igraph = pytest.importorskip("igraph")
TOLERANCE = 1e-6  # for each vertex


def random_graph(seed: int, *, directed: bool, vertices: int = 40, edges: int = 90) -> Any:
    """Weights of 0, parallel edges, self-loops, dangling and isolated vertices, several components."""
    rng = np.random.default_rng(seed)
    half = vertices // 2
    pairs = rng.integers(0, half - 3, (edges, 2)) + half * rng.integers(0, 2, (edges, 1))
    graph = igraph.Graph(vertices, pairs.tolist(), directed=directed)
    graph.es["weight"] = np.where(rng.random(edges) < 0.1, 0.0, rng.random(edges) * 3).tolist()
    graph.vs["start"] = rng.random(vertices).tolist()
    return graph


OPTIONS = st.fixed_dictionaries(
    {"damping": st.sampled_from([0.0, 0.3, 0.5, 0.85]), "directed": st.booleans()},
    optional={"weights": st.just("weight"), "vertices": st.sampled_from([3, [5, 1, 5], range(10)])},
)
STARTS = st.one_of(
    st.just({}),
    st.just({"reset": "start"}),
    st.builds(lambda v: {"reset_vertices": v}, st.one_of(st.integers(0, 39), st.lists(st.integers(0, 39), min_size=1))),
)


@given(seed=st.integers(0, 500), is_directed=st.booleans(), options=OPTIONS, start=STARTS)
def test_its_scores_are_igraphs(seed: int, is_directed: bool, options: dict[str, Any], start: dict[str, Any]) -> None:
    graph = random_graph(seed, directed=is_directed)
    expected = graph.personalized_pagerank(implementation="prpack", **options, **start)
    np.testing.assert_allclose(personalized_pagerank(graph, **options, **start), expected, atol=TOLERANCE, rtol=0)
    assert isinstance(personalized_pagerank(graph, **options, **start), type(expected))


@pytest.mark.parametrize("directed", [False, True])
def test_many_queries_at_once_are_the_single_ones(directed: bool) -> None:
    graph = random_graph(1, directed=directed)
    resets = np.random.default_rng(2).random((9, 40)) * (np.random.default_rng(3).random((9, 40)) < 0.2)
    resets[:, 4] += 0.1
    made = personalized_pagerank_batch(graph, resets, weights="weight", damping=0.5)
    walk = from_igraph(graph, weights="weight")
    np.testing.assert_array_equal(personalized_pagerank_batch(walk, resets, damping=0.5), made)
    for row, reset in zip(made, resets, strict=True):
        one = personalized_pagerank(graph, reset=reset, weights="weight", damping=0.5)
        np.testing.assert_array_equal(np.float32(one), row)
        expected = graph.personalized_pagerank(reset=reset.tolist(), weights="weight", damping=0.5)
        np.testing.assert_allclose(row, expected, atol=TOLERANCE, rtol=0)


class Retriever:
    """A loop as retrieval systems have it: passages' scores for each question's restart."""

    def __init__(self, graph: Any, passages: list[int]) -> None:
        self.graph, self.passages = graph, passages

    def run_ppr(self, reset: np.ndarray[Any, Any], damping: float = 0.5) -> tuple[Any, Any]:
        scores = self.graph.personalized_pagerank(
            vertices=range(self.graph.vcount()),
            damping=damping,
            directed=False,
            weights="weight",
            reset=np.where(np.isnan(reset) | (reset < 0), 0, reset),
            implementation="prpack",
        )
        of_passages = np.array([scores[v] for v in self.passages])
        order = np.argsort(of_passages)[::-1]
        return order, of_passages[order]


def test_one_line_patches_a_system() -> None:
    graph = random_graph(4, directed=False)
    passages = list(range(0, 40, 3))
    plain, patched = Retriever(graph, passages), Retriever(accelerate(graph.copy()), passages)
    for seed in range(5):
        reset = np.random.default_rng(seed).random(40)
        reset[reset < 0.7] = np.nan
        expected, scores = plain.run_ppr(reset)
        order, made = patched.run_ppr(reset)
        np.testing.assert_allclose(made, scores, atol=TOLERANCE, rtol=0)
        distinct = np.abs(np.diff(scores)) > 2 * TOLERANCE
        assert (order == expected)[: np.argmin(distinct)].all()


def test_a_graph_that_grew_is_noticed_and_read_again() -> None:
    graph = accelerate(igraph.Graph([(0, 1), (1, 2)]))
    graph.personalized_pagerank()
    graph.add_edges([(0, 2)])
    with pytest.raises(InputError, match=r"had 3 vertices and 2 edges .* has 3 and 3; call accelerate"):
        graph.personalized_pagerank()
    expected = igraph.Graph([(0, 1), (1, 2), (0, 2)]).personalized_pagerank(damping=0.3)
    np.testing.assert_allclose(accelerate(graph).personalized_pagerank(damping=0.3), expected, atol=TOLERANCE)
    weights = [1.0, 2.0, 3.0]
    weighted = igraph.Graph([(0, 1), (1, 2), (0, 2)]).personalized_pagerank(weights=weights, reset_vertices=1)
    made = graph.personalized_pagerank(weights=weights, reset_vertices=graph.vs[1])
    np.testing.assert_allclose(made, weighted, atol=TOLERANCE)


def test_a_graph_without_vertices() -> None:
    assert personalized_pagerank(igraph.Graph()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vertices": 9}, "vertices has 9; vertices are 0 .. 2"),
        ({"vertices": "all"}, "vertices is 'all'"),
        ({"vertices": [0, True]}, "vertices has True"),
        ({"reset_vertices": [-1]}, "reset_vertices has -1"),
        ({"reset_vertices": []}, "all zero"),
        ({"reset": [1.0]}, "reset has 1 numbers for 3 vertices"),
        ({"reset": ["a", "b", "c"]}, "reset must be numbers"),
        ({"reset": [-1.0, 0, 1]}, "weight -1.0 at node 0"),
        ({"reset": [1.0] * 3, "reset_vertices": [0]}, "give one of them"),
        ({"weights": "weight"}, "have the attributes"),
        ({"weights": [1.0]}, "weights has 1 numbers for 2 edges"),
        ({"weights": [1.0, -1.0]}, "at least 0"),
        ({"damping": 1.0}, "damping is 1.0"),
        ({"implementation": "power"}, "allowed: 'prpack', 'arpack'"),
        ({"arpack_options": 3}, "leave them out"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    graph = igraph.Graph([(0, 1), (1, 2)])
    for call in (lambda **given: personalized_pagerank(graph, **given), accelerate(graph).personalized_pagerank):
        with pytest.raises(InputError, match=message):
            call(**arguments)


def test_other_graphs_are_refused() -> None:
    with pytest.raises(InputError, match=r"is a int; it must be an igraph\.Graph"):
        personalized_pagerank(3)
    with pytest.raises(InputError, match="leave weights and directed out"):
        personalized_pagerank_batch(hf.Graph.from_edges([0], [1]), [{0: 1.0}], directed=False)
