"""Indicators of when a graph helps: components, spread, legs and names."""

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.diagnose import (
    connected_components,
    error_correlation,
    hub_nodes,
    mass_spread,
    overlap,
    pool_loss,
    shared_names,
)
from hopfuse.errors import InputError
from hopfuse.evaluate import Qrels
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

# ---- Components -----------------------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=60), st.booleans())
@settings(max_examples=2 * settings().max_examples)
def test_components_against_scipy(n, pairs, directed):
    sparse, csgraph = pytest.importorskip("scipy.sparse"), pytest.importorskip("scipy.sparse.csgraph")
    kept = [(a, b) for a, b in pairs if max(a, b) < n]
    src, dst = np.array([a for a, _ in kept], int), np.array([b for _, b in kept], int)
    found = connected_components(hf.Graph.from_edges(src, dst, num_nodes=n, directed=directed))
    matrix = sparse.coo_array((np.ones(src.size), (src, dst)), shape=(n, n))
    labels = csgraph.connected_components(matrix, directed=True, connection="weak")[1]
    smallest = {label: int(np.flatnonzero(labels == label)[0]) for label in set(labels.tolist())}
    assert found.tolist() == [smallest[label] for label in labels.tolist()]


def test_a_long_path_is_one_component():
    nodes = np.random.default_rng(0).permutation(5000)
    found = connected_components(hf.Graph.from_edges(nodes[:-1], nodes[1:]))
    assert (found == 0).all()


# ---- Spread ---------------------------------------------------------------------------------------------------------


def test_entropy_against_scipy():
    stats = pytest.importorskip("scipy.stats")
    scores = np.random.default_rng(0).random((5, 60)) ** 4
    scores[:, ::3] = 0
    np.testing.assert_allclose(mass_spread(scores).entropy, stats.entropy(scores, base=2, axis=1), rtol=1e-12)


def test_spread_by_hand():
    spread = mass_spread([[4, 2, 1, 1, 0], [0, 0, 9, 0, 0], [1, 1, 1, 1, 1]], share=0.75)
    assert spread.entropy.tolist() == pytest.approx([1.75, 0.0, np.log2(5)])
    assert spread.effective_nodes.tolist() == pytest.approx([2**1.75, 1.0, 5.0])
    assert spread.reach.tolist() == [2, 1, 4]
    assert mass_spread([[0.1] * 10], share=0.3).reach.tolist() == [3]
    assert mass_spread([[0.1] * 10], share=1.0).reach.tolist() == [10]


def test_hubs_have_the_most_weight():
    graph = hf.Graph.from_edges([4, 4, 4, 1, 2], [0, 1, 2, 2, 3], [1.0, 1.0, 1.0, 5.0, 0.5])
    # Degrees: 1, 6, 6.5, 0.5, 3.
    assert hub_nodes(graph, share=1).tolist() == [2, 1, 4, 0, 3]
    assert hub_nodes(graph, share=0.21).tolist() == [2, 1]


# ---- Legs -----------------------------------------------------------------------------------------------------------


def ranked(*rows):
    return hf.Hits.from_lists([[(i, 1 - at / 100) for at, i in enumerate(row)] for row in rows])


DENSE, GRAPH = ranked([1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]), ranked([4, 3, 9, 1], [], [13, 14, 15, 16])


def test_overlap_by_hand():
    np.testing.assert_array_equal(overlap(DENSE, GRAPH, 4), [3 / 5, 0, 0])
    np.testing.assert_array_equal(overlap(DENSE, GRAPH, 2), [0, 0, 0])
    np.testing.assert_array_equal(overlap(ranked([], [1]), ranked([], [1]), 1), [np.nan, 1])


def test_pool_loss_by_hand():
    qrels = Qrels(["a", "b", "c"], [[1, 9, 20], [5], []])
    np.testing.assert_array_equal(pool_loss([DENSE], qrels, 1), [2 / 3, 0, np.nan])
    np.testing.assert_array_equal(pool_loss([GRAPH], qrels, 3), [2 / 3, 1, np.nan])
    np.testing.assert_allclose(pool_loss([DENSE, GRAPH], qrels, 3), [1 / 3, 0, np.nan], rtol=1e-15)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=50))
def test_error_correlation_is_pearsons(pairs):
    a, b = (np.array([pair[at] for pair in pairs], float) for at in (0, 1))
    found = error_correlation(np.append(a, np.nan), np.append(b, 1.0))
    if len(set(a)) < 2 or len(set(b)) < 2:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-12)


# ---- Names ----------------------------------------------------------------------------------------------------------


def test_shared_names_by_hand():
    names = ["The Who", "Who", "who?", "Ada", "Countess of Lovelace", "!!", "??", "U.S.A."]
    aliases = [[], ["WHO", "World Health Organization"], [], ["countess of  lovelace", "Ada"], [], [], [], ["USA"]]
    assert shared_names(names, aliases) == {"countess of lovelace": (3, 4), "who": (0, 1, 2)}
    assert shared_names(names) == {"who": (0, 1, 2)}
    assert shared_names([]) == {}


# ---- What cannot be computed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "code", "field"),
    [
        (lambda: mass_spread([[0.0, 0.0]]), "zero", "scores[0]"),
        (lambda: mass_spread([[0.5, -0.1]]), "range", "scores[0, 1]"),
        (lambda: mass_spread([0.5]), "shape", "scores"),
        (lambda: mass_spread([[1.0]], share=0), "range", "share"),
        (lambda: hub_nodes(hf.Graph.from_edges([0], [1]), share=2), "range", "share"),
        (lambda: overlap(DENSE, GRAPH, 5), "range", "k"),
        (lambda: overlap(DENSE, ranked([1]), 1), "length", "b"),
        (lambda: pool_loss([], Qrels(["a"], [[1]]), 1), "empty", "pools"),
        (lambda: pool_loss([DENSE], Qrels(["a"], [[1]]), 1), "length", "pools[0]"),
        (lambda: pool_loss([ranked([1])], Qrels(["a"], [[1]]), 0), "range", "size"),
        (lambda: error_correlation(np.array([0.5]), np.array([1.0])), "range", "a"),
        (lambda: error_correlation(np.array([1.0, 0.0]), np.array([1.0])), "shape", "b"),
        (lambda: shared_names(["a"], []), "length", "aliases"),
    ],
)
def test_arguments_outside_their_range_are_refused(call, code, field):
    with refused(InputError, code, field):
        call()
