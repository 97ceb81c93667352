"""The igraph adapter against igraph: its own arguments, any graph, one query or many, and patched in."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.adapters import igraph as adapter
from hopfuse.adapters.igraph import accelerate, from_igraph, personalized_pagerank, personalized_pagerank_batch
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

pytestmark = pytest.mark.full

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


def solution(graph: Any, restart: Any, damping: float, weights: str | None = None) -> Any:
    """Return the walk of igraph's definition by a dense solve in float64."""
    matrix = np.array(graph.get_adjacency_sparse(weights).toarray(), np.float64)
    degree = matrix.sum(axis=1, keepdims=True)
    start = np.asarray(restart, np.float64) / np.sum(restart)
    steps = np.where(degree > 0, matrix / np.maximum(degree, 1e-300), start)
    return np.linalg.solve(np.eye(len(start)) - damping * steps.T, (1 - damping) * start)


def ring_with_a_chord(vertices: int) -> Any:
    """A walk round it forgets its start slowly."""
    return igraph.Graph(vertices, [*((v, (v + 1) % vertices) for v in range(vertices)), (0, 5)], directed=True)


SLOW = {
    "directed ring": lambda: ring_with_a_chord(400),
    "undirected ring": lambda: igraph.Graph.Ring(400),
    "star": lambda: igraph.Graph.Star(400),
    "dangling": lambda: igraph.Graph(
        400, [*((0, v) for v in range(1, 400)), *((v, 0) for v in range(1, 200))], directed=True
    ),
    "random": lambda: random_graph(7, directed=True, vertices=300, edges=900),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("damping", [0.85, 0.99, 0.999, 0.9999])
@pytest.mark.parametrize("made", SLOW.values(), ids=SLOW)
def test_the_promised_error_holds_at_any_damping(made: Any, damping: float) -> None:
    graph = made()
    restart = np.zeros(graph.vcount())
    restart[[1, 2]] = 1.0, 0.5
    expected = solution(graph, restart, damping)
    for scores in (
        personalized_pagerank(graph, damping=damping, reset=restart),
        accelerate(graph).personalized_pagerank(damping=damping, reset=restart),
        personalized_pagerank_batch(graph, [restart, np.ones(len(restart))], damping=[damping, 0.5])[0],
        personalized_pagerank_batch(from_igraph(graph), [{1: 2.0, 2: 1.0}], damping=damping)[0],
    ):
        assert np.abs(scores - expected).sum() <= 1e-6


def test_weights_count_in_float64_where_float32_would_show() -> None:
    graph = ring_with_a_chord(60)
    graph.es["weight"] = (np.random.default_rng(5).random(graph.ecount()) + 0.5).tolist()
    expected = solution(graph, [1.0] + [0.0] * 59, 0.9999, "weight")
    found = personalized_pagerank(graph, reset_vertices=0, damping=0.9999, weights="weight")
    assert np.abs(np.array(found) - expected).sum() <= 1e-6


def test_a_damping_that_float64_cannot_walk_with_either_is_said() -> None:
    graph = ring_with_a_chord(400)
    with pytest.warns(RuntimeWarning, match="damping"):
        scores = personalized_pagerank(graph, reset_vertices=1, damping=1 - 2**-23)
    assert sum(scores) == pytest.approx(1.0, abs=1e-6)
    with pytest.warns(RuntimeWarning, match="damping"):
        personalized_pagerank_batch(graph, [{1: 1.0}], damping=1 - 2**-23)


def weighted_graph() -> Any:
    graph = igraph.Graph(4, [(0, 1), (1, 2), (2, 3)])
    graph.es["weight"] = [1.0, 1.0, 1.0]
    return graph


CHANGES = {
    "weights": lambda graph: graph.es.__setitem__("weight", [5.0, 1.0, 2.0]),
    "one weight": lambda graph: graph.es[2].__setitem__("weight", 7.0),
    "more edges": lambda graph: graph.add_edges([(0, 2)], {"weight": [3.0]}),
    "other edges": lambda graph: (graph.delete_edges([0]), graph.add_edges([(1, 3)], {"weight": [1.0]})),
    "rewired, with all degrees as before": lambda graph: (
        graph.delete_edges([0, 2]),
        graph.add_edges([(0, 2), (1, 3)], {"weight": [1.0, 1.0]}),
    ),
    "more vertices": lambda graph: graph.add_vertices(2),
    "directions": lambda graph: graph.to_directed("acyclic"),
    "edges the other way": lambda graph: (graph.to_directed("acyclic"), graph.reverse_edges()),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_graph_that_changed_is_read_again(change: Any) -> None:
    graph = accelerate(weighted_graph())
    for options in ({"weights": "weight"}, {}, {"directed": False}):
        graph.personalized_pagerank(reset_vertices=[0], **options)
    change(graph)
    plain = graph.copy()
    for options in ({"weights": "weight"}, {}, {"directed": False}):
        if options and None in graph.es["weight"]:
            continue
        expected = plain.personalized_pagerank(reset_vertices=[0], **options)
        np.testing.assert_allclose(graph.personalized_pagerank(reset_vertices=[0], **options), expected, atol=TOLERANCE)


def test_edges_that_turn_round_are_noticed() -> None:
    graph = accelerate(igraph.Graph([(0, 1), (1, 2)], directed=True))
    graph.personalized_pagerank(reset_vertices=[1])
    graph.reverse_edges()
    expected = igraph.Graph([(1, 0), (2, 1)], directed=True).personalized_pagerank(reset_vertices=[1])
    np.testing.assert_allclose(graph.personalized_pagerank(reset_vertices=[1]), expected, atol=TOLERANCE)


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    reads, edges = [], igraph.Graph.get_edgelist
    monkeypatch.setattr(igraph.Graph, "get_edgelist", lambda graph: reads.append(graph) or edges(graph), raising=False)
    return reads


def test_what_did_not_change_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = count_reads(monkeypatch)
    graph = accelerate(weighted_graph())
    for _ in range(3):
        graph.personalized_pagerank(weights="weight")
        accelerate(graph).personalized_pagerank()
    assert len(reads) == 2
    weights = [1.0, 2.0, 3.0]
    expected = weighted_graph().personalized_pagerank(weights=weights, reset_vertices=1)
    made = graph.personalized_pagerank(weights=weights, reset_vertices=graph.vs[1])
    np.testing.assert_allclose(made, expected, atol=TOLERANCE)


COPIES = {
    "write_pickle": lambda graph, folder: (graph.write_pickle(folder / "g"), igraph.Graph.Read_Pickle(folder / "g"))[1],
    "pickle": lambda graph, folder: pickle.loads(pickle.dumps(graph)),
    "deepcopy": lambda graph, folder: copy.deepcopy(graph),
    "copy": lambda graph, folder: copy.copy(graph),
    "graph.copy": lambda graph, folder: graph.copy(),
}


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
def test_copies_are_igraphs_own(copied: Any, called: bool, tmp_path: Path) -> None:
    graph = accelerate(weighted_graph())
    graph["name"] = "a path"
    if called:
        graph.personalized_pagerank(weights="weight", reset_vertices=[0])
    made = copied(graph, tmp_path)
    assert type(made) is igraph.Graph
    assert vars(made) == {}
    assert (made.get_edgelist(), made.es["weight"], made["name"]) == (graph.get_edgelist(), [1.0] * 3, "a path")
    made.es["weight"] = [9.0, 1.0, 1.0]
    expected = made.personalized_pagerank(weights="weight", reset_vertices=[0])
    again = accelerate(made).personalized_pagerank(weights="weight", reset_vertices=[0])
    np.testing.assert_allclose(again, expected, atol=TOLERANCE)
    np.testing.assert_allclose(
        graph.personalized_pagerank(weights="weight", reset_vertices=[0]),
        weighted_graph().personalized_pagerank(weights="weight", reset_vertices=[0]),
        atol=TOLERANCE,
    )


def test_a_pickle_loads_where_hopfuse_is_not(tmp_path: Path) -> None:
    graph = accelerate(weighted_graph())
    graph.write_pickle(tmp_path / "before")
    graph.personalized_pagerank()
    graph.write_pickle(tmp_path / "after")
    code = (
        "import sys; sys.modules['hopfuse'] = None; import igraph; "
        "print([igraph.Graph.Read_Pickle(name).ecount() for name in sys.argv[1:]])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "before"), str(tmp_path / "after")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[3, 3]"


def test_a_graph_of_ones_own_class_keeps_it_in_copies() -> None:
    class Mine(igraph.Graph):
        pass

    graph = accelerate(Mine([(0, 1)]))
    assert isinstance(graph, Mine)
    assert type(graph.copy()) is Mine
    assert "personalized_pagerank" in dir(graph)


def test_a_graph_that_is_gone_leaves_nothing() -> None:
    gc.collect()  # graphs of other tests, which would go in the middle of this one
    before = len(adapter._WALKS)
    graph = accelerate(weighted_graph())
    graph.personalized_pagerank()
    assert len(adapter._WALKS) == before + 1
    del graph
    gc.collect()
    assert len(adapter._WALKS) == before


MANY = {
    "range": range,
    "list": lambda n: list(range(n)),
    "tuple": lambda n: tuple(range(n)),
    "array": np.arange,
    "narrow array": lambda n: np.arange(n, dtype=np.uint8),
    "VertexSeq": lambda n: igraph.Graph(n).vs,
}


@pytest.mark.parametrize("many", MANY.values(), ids=MANY.keys())
def test_many_vertices_are_not_looked_at_one_by_one(many: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = weighted_graph()
    whole = personalized_pagerank(graph, reset_vertices=[0])
    looked, number_of = [], adapter._number_of
    monkeypatch.setattr(adapter, "_number_of", lambda of, vertex: looked.append(vertex) or number_of(of, vertex))
    assert personalized_pagerank(graph, vertices=many(4), reset_vertices=many(1)) == whole
    assert personalized_pagerank(graph, vertices=many(2), reset=[1.0, 0, 0, 0]) == whole[:2]
    assert len(looked) <= 3  # whether each is one vertex
    with refused(InputError, "unknown", "vertices"):
        personalized_pagerank(graph, vertices=many(5))
    assert personalized_pagerank(graph, vertices=many(0), reset_vertices=[0]) == []


def test_vertices_may_be_objects_among_numbers() -> None:
    graph = weighted_graph()
    whole = personalized_pagerank(graph, reset_vertices=[0])
    given = [graph.vs[2], 0, np.int64(1)]
    assert personalized_pagerank(graph, vertices=given, reset_vertices=[graph.vs[0]]) == [whole[v] for v in (2, 0, 1)]
    selected = graph.vs.select([3, 1])
    assert personalized_pagerank(graph, vertices=selected, reset_vertices=graph.vs.select([0])) == [whole[3], whole[1]]
    for wrong in ([0, 2**70], np.array([0, 2**64 - 1], np.uint64), [0, None], [0.0], np.array([0.5]), [[0]]):
        with refused(InputError, "unknown", "vertices"):
            personalized_pagerank(graph, vertices=wrong)


def test_a_range_of_vertices_is_any_range() -> None:
    graph = weighted_graph()
    whole = personalized_pagerank(graph, reset_vertices=[0])
    assert personalized_pagerank(graph, vertices=range(4), reset_vertices=[0]) == whole
    assert personalized_pagerank(graph, vertices=range(1, 3), reset_vertices=[0]) == whole[1:3]
    assert personalized_pagerank(graph, vertices=range(3, -1, -2), reset_vertices=[0]) == whole[3::-2]
    with refused(InputError, "unknown", "vertices", given=4):
        personalized_pagerank(graph, vertices=range(5))
    with refused(InputError, "unknown", "vertices", given=10000000):
        personalized_pagerank(graph, vertices=range(10_000_000, 10_000_001))
    with refused(InputError, "unknown", "vertices", given=4):
        personalized_pagerank(graph, vertices=range(10**15))
    assert personalized_pagerank(graph, reset_vertices=range(1)) == whole


def test_a_graph_without_vertices() -> None:
    assert personalized_pagerank(igraph.Graph()) == []


def test_vertices_may_be_given_by_name() -> None:
    graph = igraph.Graph.Formula("a-b-c-d-a, d-e")
    asked = [
        {"reset_vertices": "a"},
        {"reset_vertices": ["a", "c", "a"]},
        {"reset_vertices": ["a", 1], "vertices": "e"},
        {"reset_vertices": [1], "vertices": ("e", "a")},
    ]
    for options in asked:
        expected = graph.personalized_pagerank(damping=0.5, **options)
        assert personalized_pagerank(graph, damping=0.5, **options) == pytest.approx(expected, abs=1e-6)
    numbered = personalized_pagerank_batch(graph, [{0: 1.0, 2: 0.5}, {4: 1.0}])
    assert np.array_equal(personalized_pagerank_batch(graph, [{"a": 1.0, "c": 0.5}, {4: 1.0}]), numbered)
    with refused(InputError, "type", "reset_vertices", given="z"):
        personalized_pagerank(graph, reset_vertices="z")
    with refused(InputError, "unknown", "reset_vertices", given="z"):
        personalized_pagerank(graph, reset_vertices=["a", "z"])
    with refused(InputError, "unknown", "resets[1]", given="z"):
        personalized_pagerank_batch(graph, [{"a": 1.0}, {"z": 1.0}])


def test_batches_of_an_accelerated_graph_read_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = accelerate(weighted_graph())
    read = count_reads(monkeypatch)
    first, second = (personalized_pagerank_batch(graph, [{0: 1.0}], weights="weight") for _ in range(2))
    assert np.array_equal(first, second)
    assert len(read) == 1
    graph.es[0]["weight"] = 7.0
    changed = personalized_pagerank_batch(graph, [{0: 1.0}], weights="weight")
    assert len(read) == 2
    assert not np.array_equal(changed, first)


@pytest.mark.parametrize("resets", [[[0, 1], [2]], [[0, 1], [2, 3]]])
def test_a_batch_refuses_lists_of_vertices(resets: list[list[int]]) -> None:
    graph = igraph.Graph.Ring(5)
    with refused(InputError, "length", "resets[0]", given=2):
        personalized_pagerank_batch(graph, resets)


def test_an_accelerated_graph_keeps_pagerank() -> None:
    graph = igraph.Graph.Barabasi(200, 3)
    graph.es["weight"] = np.random.default_rng(0).uniform(0.5, 2, graph.ecount()).tolist()
    asked: list[dict[str, Any]] = [{}, {"weights": "weight", "damping": 0.5}, {"vertices": [3, 1]}]
    expected = [graph.pagerank(**options) for options in asked]
    accelerate(graph)
    for options, scores in zip(asked, expected, strict=True):
        assert graph.pagerank(**options) == pytest.approx(scores, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"vertices": 9}, ("unknown", "vertices", {"given": 9})),
        ({"vertices": "all"}, ("type", "vertices", {"given": "all"})),
        ({"vertices": [0, True]}, ("unknown", "vertices", {"given": True})),
        ({"reset_vertices": [-1]}, ("unknown", "reset_vertices", {"given": -1})),
        ({"reset_vertices": []}, ("empty", "reset_vertices")),
        ({"reset": "x"}, ("unknown", "reset", {"given": "x"})),
        ({"reset": [0.0] * 3}, ("zero", "reset")),
        ({"reset": [1.0]}, ("length", "reset", {"given": 1})),
        ({"reset": ["a", "b", "c"]}, ("type", "reset")),
        ({"reset": [-1.0, 0, 1]}, ("range", "reset[0]", {"given": -1.0})),
        ({"reset": [1.0] * 3, "reset_vertices": [0]}, ("conflict", "reset")),
        ({"weights": "weight"}, ("unknown", "weights", {"given": "weight"})),
        ({"weights": [1.0]}, ("length", "weights", {"given": 1})),
        ({"weights": [1.0, -1.0]}, ("range", "weights[1]", {"given": -1.0})),
        ({"damping": 1.0}, ("range", "damping", {"given": 1.0})),
        ({"implementation": "power"}, ("choice", "implementation", {"given": "power"})),
        ({"arpack_options": 3}, ("unused", "arpack_options")),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], error: tuple[Any, ...]) -> None:
    graph = igraph.Graph([(0, 1), (1, 2)])
    for call in (lambda **given: personalized_pagerank(graph, **given), accelerate(graph).personalized_pagerank):
        with refused(InputError, *error):
            call(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"reset": [0] * 3},
        {"reset": [1] * 2},
        {"reset": [-1, 0, 1]},
        {"reset": [float("nan")] * 3},
        {"reset": "absent"},
        {"reset": 5},
        {"reset": [1] * 3, "reset_vertices": [0]},
        {"reset_vertices": []},
        {"reset_vertices": [9]},
        {"reset_vertices": -1},
        {"vertices": [9]},
        {"vertices": 3.5},
        {"vertices": "absent"},
        {"weights": "absent"},
        {"weights": [1]},
        {"damping": 2.0},
        {"damping": "a"},
        {"arpack_options": 1},
        {"implementation": "xyz"},
    ],
)
def test_an_accelerated_graph_raises_what_igraph_raises(arguments: dict[str, Any]) -> None:
    plain = igraph.Graph([(0, 1), (1, 2)])
    with pytest.raises(Exception) as expected:  # noqa: PT011 - the class is what is compared
        plain.personalized_pagerank(**arguments)
    patched = accelerate(plain.copy())
    methods = [patched.personalized_pagerank] + [patched.pagerank] * (
        not {"reset", "reset_vertices"} & arguments.keys()
    )
    for method in methods:
        with pytest.raises(expected.type) as caught:
            method(**arguments)
        error = caught.value
        assert isinstance(error, InputError)
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), again.data()) == (InputError, error.data())


def test_other_graphs_are_refused() -> None:
    with refused(InputError, "type", "graph", given="int"):
        personalized_pagerank(3)
    with refused(InputError, "conflict", "directed"):
        personalized_pagerank_batch(hf.Graph.from_edges([0], [1]), [{0: 1.0}], directed=False)
