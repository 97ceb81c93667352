"""Behaviour common to all fusion methods: union, consensus, order, padding, weights, and refusals."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_hits_wellformed
from hopfuse.errors import InputError
from hopfuse.fusion import METHODS
from hopfuse.reference import fuse
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

DENSE = hf.Hits.from_lists([[(1, 0.9), (2, 0.8), (3, 0.4)], [(7, 0.5)], [], []])
GRAPH = hf.Hits.from_lists([[(3, 0.5), (4, 0.3)], [(7, 0.2), (1, 0.1)], [(5, 0.6)], []])
EVERY = sorted(METHODS)


def test_the_methods() -> None:
    assert len(EVERY) == 22
    assert all(METHODS[name].name == name for name in EVERY)


@pytest.mark.parametrize("method", EVERY)
def test_the_union_is_ranked_and_padded(method: str) -> None:
    got = fuse([DENSE, GRAPH], method=method, k=6)
    assert_hits_wellformed(got)
    assert got.ids.shape == (4, 5)  # three and two columns
    assert got.scores.dtype == np.float64
    assert got.counts.tolist() == [4, 2, 1, 0]
    assert [set(dict(got.row(b))) for b in range(4)] == [{1, 2, 3, 4}, {1, 7}, {5}, set()]


@pytest.mark.parametrize("method", EVERY)
def test_k_cuts_the_ranking(method: str) -> None:
    whole = fuse([DENSE, GRAPH], method=method, k=10)
    for k in range(5):
        cut = fuse([DENSE, GRAPH], method=method, k=k)
        assert cut.ids.shape == (4, k)
        assert all(cut.row(b) == whole.row(b)[:k] for b in range(4))


@pytest.mark.parametrize("method", EVERY)
def test_consensus_is_added_to_documents_of_two_lists(method: str) -> None:
    third = hf.Hits.from_lists([[(3, 0.1), (9, 0.05)], [(8, 0.5)], [(5, 0.5)], [(2, 0.1)]])
    lists = [DENSE, GRAPH, third]
    plain, bonus = fuse(lists, method=method), fuse(lists, method=method, consensus=0.75)
    shared = [{3}, {7}, {5}, set()]
    for b in range(4):
        before, after = dict(plain.row(b)), dict(bonus.row(b))
        assert after == {v: s + 0.75 if v in shared[b] else s for v, s in before.items()}


@pytest.mark.parametrize("method", ["boltzmann", "linear", "rrf"])
def test_lists_of_weight_zero_count_for_consensus(method: str) -> None:
    got = dict(fuse([DENSE, GRAPH], method=method, weights=[1.0, 0.0], consensus=2.0).row(0))
    assert got[3] >= 2.0
    assert got[4] == 0.0


@pytest.mark.parametrize("method", EVERY)
def test_a_batch_equals_its_queries_alone(method: str) -> None:
    whole = fuse([DENSE, GRAPH], method=method, consensus=0.5)
    for b in range(4):
        one = [hf.Hits(h.ids[b], h.scores[b], h.counts[b : b + 1]) for h in (DENSE, GRAPH)]
        assert fuse(one, method=method, consensus=0.5).row(0) == whole.row(b)


@pytest.mark.parametrize("method", EVERY)
def test_one_list(method: str) -> None:
    got = fuse([DENSE], method=method)
    assert got.counts.tolist() == [3, 1, 0, 0]
    assert [v for v, _ in got.row(0)][:2] == [1, 2]


@pytest.mark.parametrize("method", EVERY)
def test_no_queries(method: str) -> None:
    empty = hf.Hits.from_lists([])
    assert fuse([empty, empty], method=method, k=3).ids.shape == (0, 0)


@pytest.mark.parametrize("method", [name for name in EVERY if METHODS[name].weighted])
def test_weights_per_query(method: str) -> None:
    w = np.array([[1.0, 0.0], [0.25, 2.0], [3.0, 0.5], [0.0, 0.0]])
    whole = fuse([DENSE, GRAPH], method=method, weights=w)
    for b in range(4):
        assert whole.row(b) == fuse([DENSE, GRAPH], method=method, weights=w[b]).row(b)


LISTS = st.lists(
    st.lists(
        st.tuples(st.integers(0, 8), st.sampled_from([0.0, 0.25, 0.5, 1.0])), max_size=7, unique_by=lambda p: p[0]
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=120, deadline=None)
@given(LISTS, st.sampled_from(EVERY), st.sampled_from([0.0, 0.5]))
def test_random_lists(rows: list[list[tuple[int, float]]], method: str, consensus: float) -> None:
    lists = [hf.Hits.from_lists([row]) for row in rows]
    got = fuse(lists, method=method, consensus=consensus, k=12)
    assert_hits_wellformed(got)
    assert set(dict(got.row(0))) == {v for row in rows for v, _ in row}


@settings(max_examples=60, deadline=None)
@given(LISTS, st.sampled_from(EVERY), st.randoms())
def test_the_order_of_lists_does_not_matter(rows: list[list[tuple[int, float]]], method: str, random: Any) -> None:
    """Sums are correctly rounded, so that equal terms tie whatever lists they come from."""
    lists = [hf.Hits.from_lists([row]) for row in rows]
    weights = {} if not METHODS[method].weighted else {"weights": [0.3] * len(lists)}
    shuffled = random.sample(lists, len(lists))
    assert fuse(lists, method=method, **weights).row(0) == fuse(shuffled, method=method, **weights).row(0)


@pytest.mark.parametrize(
    ("lists", "options", "refusal"),
    [
        ([DENSE, GRAPH], {"method": "vote"}, ("choice", "method")),
        ([DENSE, GRAPH], {"temprature": 1.0}, ("unknown", "temprature")),
        ([DENSE, GRAPH], {"method": "linear", "temperature": 1.0}, ("unknown", "temperature")),
        ([DENSE, GRAPH], {"method": "rrf", "bias": [0, 1]}, ("unknown", "bias")),
        ([DENSE, GRAPH], {"calibration": "logit"}, ("choice", "calibration")),
        (
            [DENSE, GRAPH],
            {"calibration": "z_score"},
            ("choice", "calibration"),
        ),
        ([DENSE, GRAPH], {"method": "rrf", "calibration": "pit"}, ("unused", "calibration")),
        ([DENSE, GRAPH], {"method": "rrf", "ties": "weak"}, ("unused", "ties")),
        ([DENSE, GRAPH], {"method": "linear", "calibration": "max", "ties": "weak"}, ("unused", "ties")),
        ([DENSE, GRAPH], {"method": "max", "ties": "weak"}, ("unused", "ties")),
        ([DENSE, GRAPH], {"ties": "first"}, ("choice", "ties")),
        ([DENSE, GRAPH], {"weights": [1.0]}, ("shape", "weights")),
        ([DENSE, GRAPH], {"weights": [[0.5, 0.5]] * 3}, ("shape", "weights")),
        ([DENSE, GRAPH], {"weights": [0.5, -0.5]}, ("range", "weights[1]")),
        ([DENSE, GRAPH], {"weights": [0.5, np.nan]}, ("range", "weights[1]")),
        ([DENSE, GRAPH], {"method": "max", "weights": [0.5, 0.5]}, ("unused", "weights")),
        ([DENSE, GRAPH], {"consensus": -0.5}, ("range", "consensus")),
        ([DENSE, GRAPH], {"consensus": np.inf}, ("range", "consensus")),
        ([DENSE, GRAPH], {"consensus": True}, ("range", "consensus")),
        ([DENSE, GRAPH], {"k": -1}, ("range", "k")),
        ([DENSE, GRAPH], {"temperature": 0.0}, ("range", "temperature")),
        ([DENSE, GRAPH], {"temperature": "hot"}, ("range", "temperature")),
        ([DENSE, GRAPH], {"temperature": np.nan}, ("range", "temperature")),
        ([DENSE, GRAPH], {"method": "rrf", "rank_constant": -1}, ("range", "rank_constant")),
        ([DENSE, GRAPH], {"method": "rrf", "rank_constant": None}, ("range", "rank_constant")),
        ([DENSE, GRAPH], {"method": "max", "bias": [0.0]}, ("length", "bias")),
        ([DENSE, GRAPH], {"method": "max", "bias": [0.0, np.nan]}, ("range", "bias[1]")),
        ([DENSE, GRAPH], {"method": "comb_mnz", "gamma": 17.0}, ("range", "gamma")),
        ([DENSE, GRAPH], {"method": "log_isr", "sigma": -0.1}, ("range", "sigma")),
        ([DENSE, GRAPH], {"method": "borda", "missing": "half"}, ("choice", "missing")),
        ([DENSE, GRAPH], {"method": "rbc", "phi": 1.0}, ("range", "phi")),
        ([DENSE, GRAPH], {"method": "log_linear", "epsilon": 0.0}, ("range", "epsilon")),
        ([DENSE, GRAPH], {"method": "power_mean", "p": 0.01}, ("range", "p")),
        ([DENSE, GRAPH], {"method": "power_mean", "calibration": "z_score"}, ("choice", "calibration")),
        ([DENSE, GRAPH], {"method": "tsallis", "q": [1.0] * 3}, ("length", "q")),
        ([DENSE, GRAPH], {"method": "tsallis", "q": -1.0}, ("range", "q")),
        ([DENSE, GRAPH], {"method": "quantum", "form": "cube"}, ("choice", "form")),
        ([DENSE, GRAPH], {"method": "quantum", "theta": np.inf}, ("range", "theta")),
        ([DENSE, GRAPH], {"method": "plackett_luce", "steps": 0}, ("range", "steps")),
        ([DENSE, GRAPH], {"wasserstein": -1.0}, ("range", "wasserstein")),
        ([DENSE, GRAPH], {"method": "condorcet", "calibration": "pit"}, ("unused", "calibration")),
        ([DENSE, GRAPH], {"method": "gumbel", "theta": 0.5}, ("range", "theta")),
        ([DENSE, GRAPH], {"method": "gumbel", "weights": [0.5, 0.5]}, ("unused", "weights")),
        ([DENSE, GRAPH], {"pool": -1}, ("range", "pool[0]")),
        ([DENSE, GRAPH], {"pool": [1]}, ("length", "pool")),
        ([DENSE, GRAPH], {"prior": [0.5, 1.5]}, ("range", "prior")),
        ([DENSE, GRAPH], {"prior": [0.5], "prior_weight": 2.0}, ("range", "prior_weight")),
        ([], {}, ("empty", "lists")),
        (DENSE, {}, ("type", "lists")),
        ([DENSE, GRAPH.ids], {}, ("type", "lists[1]")),
        ([DENSE, hf.Hits.from_lists([[]])], {}, ("length", "lists[1]")),
    ],
)
def test_invalid_arguments_are_refused(lists: Any, options: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        fuse(lists, **options)
