"""``python -m bench.hostile``: its verdicts, and a short form of its attacks on a real server."""

from __future__ import annotations

import json
from collections import Counter

import pytest

pytest.importorskip("uvicorn", reason="the server's attacks need the extra serve")
pytest.importorskip("mcp", reason="one attacks a tool")

from bench.hostile import __main__ as command
from bench.hostile.attacks import ATTACKS, Attack, anything, load, only
from bench.hostile.harness import Outcome, Seen

load()
#: One of each kind, for the quick tier.
SHORT = [
    "endless header",
    "bodies that do not end",
    "invalid vector",
    "long passages",
    "a filter for each query",
    "texts that hang the encoder",
]


def run(tmp_path, *more):
    out = tmp_path / "rows.jsonl"
    status = command.main(["--quick", "--out", str(out), *more])
    return status, [json.loads(line) for line in out.read_text().splitlines()]


def checked(status, rows, names):
    assert [row["attack"] for row in rows] == list(names)
    assert [row["faults"] for row in rows] == [[]] * len(rows)
    assert status == 0
    for row in rows:
        assert set(row["under"]["live"]) == set(row["under"]["searches"]) == {"200"}


def test_other_clients_are_answered_under_attack(tmp_path, capsys):
    checked(*run(tmp_path, "--attack", *SHORT), SHORT)
    assert [line.split(" | ")[0].removeprefix("| ") for line in capsys.readouterr().out.splitlines()[2:]] == SHORT


@pytest.mark.full
def test_other_clients_are_answered_under_every_attack(tmp_path):
    checked(*run(tmp_path), ATTACKS)


def test_bounds_that_are_exceeded_are_told(capsys):
    live = {"200": 10}
    calm = Seen((0.001,) * 10, live, {"200": 4})
    one = Attack("an attack", "", lambda target: {}, only(431), memory_mib=10.0)

    def faults(under=calm, counts=None, growth=0.0, alive=True, timed=True):
        return Outcome(one, calm, under, counts or {"431": 3}, growth, alive).faults(timed)

    assert faults() == []
    assert len(faults(alive=False)) == len(faults(growth=11.0)) == len(faults(counts={"200": 1})) == 1
    slow = Seen((0.001,) * 9 + (0.5,), live, {"200": 4})
    assert (len(faults(slow)), faults(slow, timed=False)) == (1, [])
    assert len(faults(Seen((0.001,), {"200": 1, "lost": 1}, {"200": 1, "504": 1}))) == 2
    assert len(faults(Seen((), {}, {}))) == 3


def test_an_attack_says_what_it_does_and_counts_by_status():
    assert all(one.says.endswith(".") for one in ATTACKS.values())
    assert anything(Counter()) is None
    assert only(200, 404)({"200": 1, "404": 1, "lost": 3}) is None
    assert only(200, least=0)({}) is None
    assert only(200)({"lost": 3}) is not None
