"""The inputs of cases agree with their docstrings, and are the same in every run."""

from __future__ import annotations

import hopfuse as hf
import numpy as np
import pytest

from bench import machine, worker
from bench.bars import RATIOS
from bench.cases import CASES, graphs
from bench.cases.hipporag import PASSAGE_WEIGHT, passage_weights
from bench.errors import GateError
from bench.peers.oracle_fusion import OracleFusion
from bench.peers.ranx_fusion import METHODS
from bench.peers.scipy_ppr import ScipyPpr
from bench.peers.walk import most_passes
from bench.settings import Settings

QUICK = Settings(quick=True, repeats=1, threads=1)


def test_a_generated_graph_has_its_size_and_an_entity_graphs_degrees() -> None:
    made = graphs.generated(100_000, quick=False)
    graph = made.graph
    assert 0.85 * 100_000 <= graph.num_stored <= 100_000
    assert graph.num_nodes == 12_500
    src, dst, _, _ = graph.edges()
    assert (src != dst).all()
    degree = np.bincount(np.concatenate([src, dst]), minlength=graph.num_nodes)
    assert degree.max() > 50 * degree.mean()
    mentions = (src < made.num_passages) ^ (dst < made.num_passages)
    assert 0.4 < mentions.mean() < 0.6
    assert not ((src < made.num_passages) & (dst < made.num_passages)).any()


def test_a_generated_graph_is_the_same_again_and_in_smaller_chunks_another(monkeypatch: pytest.MonkeyPatch) -> None:
    first, again = (graphs.generated(4_000, quick=True).graph.edges() for _ in range(2))
    for one, other in zip(first[:3], again[:3], strict=True):
        np.testing.assert_array_equal(one, other)
    monkeypatch.setattr(graphs, "CHUNK", 700)
    chunked = graphs.generated(4_000, quick=True).graph
    assert 0.7 * 4_000 < chunked.num_stored <= 4_000
    assert chunked.edges()[0].size != first[0].size or (chunked.edges()[1] != first[1]).any()


def test_too_little_memory_is_a_skip_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_available_memory", lambda: 100_000)
    (row,) = worker.rows("ppr-1e8", None, QUICK)
    assert row["status"] == "skip"
    assert "GB of memory" in row["reason"]
    monkeypatch.setattr(machine, "_available_memory", lambda: None)
    assert [row["status"] for row in worker.rows("ppr-1e8", None, QUICK)] == ["ok", "ok"]


def test_passages_restart_by_their_scaled_similarity() -> None:
    found = passage_weights(np.array([0.2, 0.6, 0.4], np.float32))
    np.testing.assert_allclose(found, PASSAGE_WEIGHT * np.array([0.0, 1.0, 0.5]), atol=1e-8)


def test_a_dense_restart_has_every_passage_but_the_least_similar_one() -> None:
    workload = CASES["ppr-dense-restarts"].load(QUICK)
    dense = workload.restart_rows([0, 1])
    passages = workload.num_passages
    assert ((dense[:, :passages] > 0).sum(axis=1) == passages - 1).all()
    assert ((dense[:, passages:] > 0).sum(axis=1) == 5).all()
    packed = workload.restart(4)
    assert packed.nodes.shape == (4, passages + 5)
    np.testing.assert_array_equal(packed.weights[1], workload.seeds[1][1])


def test_hipporags_restart_is_the_papers_and_hopfuses_walk_starts_from_it() -> None:
    workload = CASES["hipporag-hotpotqa"].load(QUICK)
    restart = workload.restart(2)
    nodes, weights = workload.phrases.nodes[2], workload.phrases.weights[2]
    np.testing.assert_array_equal(restart[nodes], weights)
    assert restart[: workload.num_passages].max() == pytest.approx(PASSAGE_WEIGHT)
    exact = workload.finish(hf.reference.ppr(workload.graph, restart[None], damping=workload.damping))
    np.testing.assert_array_equal(workload.run(4, 0).ids[2], exact.ids[0])


def test_damping_reaches_hopfuse_and_its_peers() -> None:
    near, far = (CASES[name].load(QUICK) for name in ("ppr-hotpotqa", "ppr-hotpotqa-085"))
    assert np.abs(near.run(1, 0).scores - far.run(1, 0).scores).sum() > 0.1
    assert np.abs(far.run(1, 0).scores - ScipyPpr(far, 1).run(1)).sum() < 4e-6


def test_a_float32_walk_ends_where_rounding_never_lets_it_converge() -> None:
    assert most_passes(0.5, 1e-6) == 22
    assert most_passes(0.85, 1e-6) == 101
    workload = CASES["ppr-hotpotqa-085"].load(QUICK)
    workload.tol = 1e-12
    scores = ScipyPpr(workload, 1).run(1)
    assert np.abs(scores - workload.exact([0])).sum() < 1e-5


def test_every_fusion_method_has_a_case_and_a_bar() -> None:
    family = {name: case for name, case in CASES.items() if name.startswith("fuse-")}
    assert len(family) == len(hf.fusion.METHODS)
    assert {bar.case: bar.peers for bar in RATIOS if bar.case in family} == {n: c.peers for n, c in family.items()}
    assert {case.load(QUICK).how["method"] for case in family.values() if case.peers == ("ranx",)} == set(METHODS)


@pytest.mark.parametrize("method", hf.fusion.METHODS)
def test_three_lists_are_fused_as_the_oracle_does(method: str) -> None:
    workload = CASES[f"fuse-{method.replace('_', '-')}"].load(QUICK)
    ours = workload.run(20, 0)
    assert workload.check(20, ours)["queries"] == 20
    oracle = OracleFusion(workload, 1)
    assert workload.compare(20, ours, oracle.run(20))["queries"] == oracle.timed_queries(20)
    ours.scores[0, 1] += 1.0
    with pytest.raises(GateError, match="row 0 has scores off"):
        workload.check(20, ours)
