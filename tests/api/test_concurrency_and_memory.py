"""Calls from several Python threads give the bits of one, and a second call of a size allocates nothing."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph, random_lists, random_restart
from compare import assert_bitwise
from hopfuse import _native


def jobs() -> list[Any]:
    """Calls of every operation, of different sizes and options, over shared graphs and corpora."""
    rng = np.random.default_rng(1)
    undirected = random_graph(rng, 300, 1200, hub=2, types=2)
    directed = random_graph(rng, 300, 1200, directed=True)
    mask = rng.random(300) < 0.8
    corpus = hf.Corpus.from_array(rng.standard_normal((700, 24)))
    lists = random_lists(rng, 50, 3)
    made: list[Any] = []
    for batch in (1, 5, 17, 40):
        restart, inside = random_restart(rng, 300, batch), random_restart(rng, 300, batch, mask)
        q = rng.standard_normal((batch, 24))
        made += [
            lambda r=restart: hf.ppr(undirected, r, threads=2).scores,
            lambda r=inside: hf.ppr(directed, r, allow=mask, damping=0.85, threads=2).scores,
            lambda r=restart: hf.ppr(undirected, r, edge_type_norm="per_type").scores,
            lambda r=restart: hf.ppr_topk(undirected, r, 7, threads=2).ids,
            lambda r=inside: hf.ppr_topk(directed, r, 3, allow=mask, stop="tol").scores,
            lambda q=q: hf.dense_topk(q, corpus, 9, threads=2).scores,
            lambda: hf.fuse(lists, k=20, threads=2).scores,
            lambda: hf.calibrate(lists[0], "z_score", threads=2).scores,
        ]
    return made


def test_many_python_threads_get_the_bits_of_one() -> None:
    expected = [job() for job in jobs()]
    fresh = jobs()  # nothing prepared yet: threads race to prepare graphs and codes as well
    barrier = threading.Barrier(4)

    def work(worker: int) -> list[Any]:
        barrier.wait()
        order = np.random.default_rng(worker).permutation(len(fresh))
        return [(at, fresh[at]()) for at in order]

    with ThreadPoolExecutor(4) as pool:
        for results in pool.map(work, range(4)):
            for at, result in results:
                assert_bitwise(result, expected[at], f"job {at}")


def test_one_graph_answers_several_threads_while_explain_is_read() -> None:
    graph = random_graph(np.random.default_rng(2), 200, 800)
    expected = hf.ppr(graph, [{0: 1.0}]).scores

    def work(_: int) -> None:
        for _ in range(20):
            assert_bitwise(hf.ppr(graph, [{0: 1.0}]).scores, expected)
            assert hf.backend_info()["auto"] == "cpu"

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))


@pytest.mark.parametrize("masked", [False, True])
def test_a_second_call_of_a_size_keeps_the_workspace_as_it_is(masked: bool) -> None:
    rng = np.random.default_rng(3)
    graph = random_graph(rng, 2000, 8000)
    restart = random_restart(rng, 2000, 40)
    options: dict[str, Any] = {"allow": np.ones(2000, bool)} if masked else {}
    _native.release_workspaces()
    assert _native.idle_workspace_bytes() == 0
    hf.ppr(graph, restart, **options)
    first = _native.idle_workspace_bytes()
    assert first > 3 * 2000 * 32 * 4  # three states of 32 lanes at least
    for _ in range(3):
        hf.ppr(graph, restart, **options)
        hf.ppr(graph, restart[:3], **options)
        assert _native.idle_workspace_bytes() == first
    hf.ppr_topk(graph, restart, 5, **options)
    second = _native.idle_workspace_bytes()
    hf.ppr_topk(graph, restart, 5, **options)
    assert _native.idle_workspace_bytes() == second
    assert hf.backend_info()["backends"]["cpu"]["idle_workspace_bytes"] == second


def test_workspaces_are_given_back_on_request_and_made_again() -> None:
    graph = random_graph(np.random.default_rng(4), 500, 2000)
    before = hf.ppr(graph, [{0: 1.0}]).scores
    assert _native.idle_workspace_bytes() > 0
    _native.release_workspaces()
    assert _native.idle_workspace_bytes() == 0
    assert_bitwise(hf.ppr(graph, [{0: 1.0}]).scores, before)


def test_leftovers_of_an_earlier_call_in_a_workspace_have_no_effect() -> None:
    rng = np.random.default_rng(5)
    small, large = random_graph(rng, 70, 200), random_graph(rng, 900, 4000, types=2)
    restart = random_restart(rng, 70, 3)
    _native.release_workspaces()
    clean = hf.ppr(small, restart, damping=0.85)
    for batch in (1, 9, 40):
        hf.ppr(large, random_restart(rng, 900, batch), edge_type_weights=[2.0, 0.5], allow=np.ones(900, bool))
        again = hf.ppr(small, restart, damping=0.85)
        for name in ("scores", "iterations", "residual", "bound"):
            assert_bitwise(getattr(again, name), getattr(clean, name), name)
