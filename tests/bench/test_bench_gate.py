"""Wrong answers are found, and their case is not timed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench import __main__ as command
from bench import gate, runner, worker
from bench.cases import CASES, ppr
from bench.cases.base import Case
from bench.cases.dense import Dense
from bench.cases.ppr import Ppr
from bench.errors import GateError
from bench.peers import PEERS
from bench.peers.hipporag_igraph import HippoRagIgraph
from bench.peers.numpy_matmul import NumpyMatmul
from bench.peers.oracle_fusion import OracleFusion
from bench.peers.ranx_fusion import RanxFusion
from bench.peers.scipy_ppr import ScipyPpr
from bench.runner import run
from bench.settings import Settings

QUICK = Settings(quick=True, repeats=1, threads=1)


class SwappedIds(NumpyMatmul):
    """Two adjacent hits of a query are swapped; the scores stay."""

    def run(self, batch: int) -> gate.Rankings:
        found = super().run(batch)
        found.ids[-1, [2, 3]] = found.ids[-1, [3, 2]]
        return found


class WrongScore(OracleFusion):
    """One score is a little too high."""

    def run(self, batch: int) -> gate.Rankings:
        found = super().run(batch)
        found.scores[3, 1] *= 1.001
        return found


class StoppedEarly(ScipyPpr):
    """A solution of too wide a tolerance."""

    def run(self, batch: int) -> Any:
        exact = super().run(batch)
        exact[0] = 0.9999 * exact[0] + 0.0001 * exact[0, ::-1]
        return exact


class NotANumber(ScipyPpr):
    """NaN must not pass a comparison."""

    def run(self, batch: int) -> Any:
        exact = super().run(batch)
        exact[-1, 5] = np.nan
        return exact


class AnotherPassage(HippoRagIgraph):
    """The best passage of a question is another one."""

    def run(self, batch: int) -> gate.Rankings:
        found = super().run(batch)
        found.ids[0, 0] = found.ids[0, -1] + 1
        return found


class LostDocument(RanxFusion):
    """A fused list whose best document is missing."""

    def answer(self, found: Any) -> gate.Rankings:
        ranked = super().answer(found)
        return gate.Rankings(np.roll(ranked.ids, -1, axis=1), np.roll(ranked.scores, -1, axis=1))


class AnswerIsCounted(NumpyMatmul):
    """Counts how often its answer is read."""

    reads = 0

    def answer(self, found: Any) -> Any:
        type(self).reads += 1
        return found


class Absent(NumpyMatmul):
    """A peer that is not installed."""

    modules = ("no_such_module_is_installed",)


@pytest.mark.parametrize(
    ("case", "wrong", "says"),
    [
        ("dense-200k", SwappedIds, "rank 3"),
        ("fusion", WrongScore, "off by"),
        ("ppr-hotpotqa", StoppedEarly, "in L1"),
        ("ppr-hotpotqa", NotANumber, "not finite"),
        ("hipporag-hotpotqa", AnotherPassage, "rank 1"),
        ("fusion-rrf", LostDocument, "rank"),
    ],
)
@pytest.mark.filterwarnings("ignore:unsafe cast")  # in what numba compiles of ranx
def test_a_wrong_peer_stops_its_case_untimed(
    case: str, wrong: type, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in wrong.modules:
        pytest.importorskip(module)
    monkeypatch.setitem(PEERS, "wrong", wrong)
    (row,) = worker.rows(case, "wrong", QUICK)
    assert row["status"] == "error"
    assert says in row["reason"]
    assert "the peer against hopfuse" in row["reason"]
    assert set(row) == {"case", "peer", "status", "reason"}


def test_a_wrong_answer_of_hopfuse_stops_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(Dense):
        def run(self, batch: int, turn: int) -> Any:
            hits = super().run(batch, turn)
            hits.ids[0, 0] = (hits.ids[0, 0] + 1) % self.sizes["vectors"]
            return hits

    monkeypatch.setitem(CASES, "dense-200k", Case(("numpy-matmul",), Wrong))
    (row,) = worker.rows("dense-200k", "numpy-matmul", QUICK)
    assert row["status"] == "error"
    assert "hopfuse against the oracle" in row["reason"]


def test_an_answer_is_read_for_the_gate_and_never_while_it_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PEERS, "counted", AnswerIsCounted)
    rows = list(worker.rows("dense-200k", "counted", Settings(quick=True, repeats=3, threads=1)))
    assert [row["status"] for row in rows] == ["ok"] * len(rows)
    assert AnswerIsCounted.reads == len(rows)


def test_scores_that_the_oracles_residual_refutes_stop_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(Ppr):
        def run(self, batch: int, turn: int) -> Any:
            r = super().run(batch, turn)
            return SimpleNamespace(scores=r.scores[:, ::-1], bound=r.bound, converged=r.converged)

    monkeypatch.setattr(ppr, "SOLVED_STORED", 0)
    assert [row["status"] for row in worker.rows("ppr-hotpotqa", None, QUICK)] == ["ok", "ok"]
    monkeypatch.setitem(CASES, "ppr-hotpotqa", Case((), Wrong))
    (row,) = worker.rows("ppr-hotpotqa", None, QUICK)
    assert row["status"] == "error"
    assert "in L1" in row["reason"]


def test_an_unconverged_result_stops_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(Ppr):
        def run(self, batch: int, turn: int) -> Any:
            r = super().run(batch, turn)
            return SimpleNamespace(scores=r.scores, bound=r.bound, converged=np.zeros_like(r.converged))

    monkeypatch.setitem(CASES, "ppr-hotpotqa", Case(("scipy",), Wrong))
    (row,) = worker.rows("ppr-hotpotqa", "scipy", QUICK)
    assert row["status"] == "error"
    assert "did not converge" in row["reason"]


def test_the_command_fails_and_prints_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(PEERS, "wrong", SwappedIds)
    monkeypatch.setitem(CASES, "dense-200k", Case(("wrong",), Dense))
    file = tmp_path / "rows.jsonl"
    status = command.main(
        ["--quick", "--repeats", "1", "--threads", "1", "--case", "dense-200k", "--out", str(file)],
        start=lambda *task: list(worker.rows(*task)),
    )
    assert status == 1
    assert [json.loads(line)["status"] for line in file.read_text().splitlines()] == ["error"]
    output = capsys.readouterr().out
    assert "error: dense-200k / wrong" in output
    assert " ms" not in output
    assert "µs" not in output


def test_a_missing_peer_is_a_reported_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PEERS, "absent", Absent)
    (row,) = worker.rows("dense-200k", "absent", QUICK)
    assert row["status"] == "skip"
    assert "no_such_module_is_installed" in row["reason"]


def test_only_a_disturbed_pair_is_measured_again_and_the_quietest_try_is_kept() -> None:
    loads = iter([0.9, 0.4, 0.05, 0.0])

    def start(case: str, peer: str | None, settings: Settings) -> list[dict]:
        return [{"case": case, "peer": peer, "status": "ok", "load": {"other_cores": next(loads)}}]

    (row,) = run(["phasegraph-hotpotqa"], QUICK, retries=5, start=start)
    assert row["load"]["other_cores"] == 0.05
    assert next(loads) == 0.0


def test_a_wrong_answer_is_not_tried_away() -> None:
    calls = []

    def start(case: str, peer: str | None, settings: Settings) -> list[dict]:
        calls.append(peer)
        return [{"case": case, "peer": peer, "status": "error", "reason": "wrong"}]

    rows = list(run(["phasegraph-hotpotqa"], QUICK, retries=5, start=start))
    assert [row["status"] for row in rows] == ["error"]
    assert len(calls) == 1


def ranking(ids: list[int], scores: list[float]) -> gate.Rankings:
    return gate.Rankings(np.array([ids]), np.array([scores]))


def test_rankings_allow_ties_and_nothing_else() -> None:
    expected = ranking([4, 2, 9], [0.5, 0.3, 0.3])
    assert gate.rankings("same", expected, expected, 0.0, 0.0) == 0.0
    assert gate.rankings("tie", ranking([4, 9, 2], [0.5, 0.3, 0.3]), expected, 1e-9, 0.0) == 0.0
    assert gate.rankings("tie at the cut", ranking([4, 2, 7], [0.5, 0.3, 0.3]), expected, 1e-9, 0.0) == 0.0
    for wrong in (
        ranking([2, 4, 9], [0.5, 0.3, 0.3]),
        ranking([7, 2, 9], [0.5, 0.3, 0.3]),
        ranking([4, 2, 2], [0.5, 0.3, 0.3]),
        ranking([4, 2, -1], [0.5, 0.3, -np.inf]),
        ranking([4, 2, 9], [0.5, 0.3, 0.2]),
        ranking([4, 2, 9], [0.5, np.nan, 0.3]),
        ranking([4, 2], [0.5, 0.3]),
    ):
        with pytest.raises(GateError):
            gate.rankings("wrong", wrong, expected, 1e-9, 1e-9)


def test_waiting_for_a_quiet_machine_ends() -> None:
    assert runner.wait_for_quiet(0.0) is False
