"""``python -m bench.serving``: its clients with small servers, its figures and tables; in full in the full tier."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from bench.errors import UnavailableError
from bench.machine import ROOT
from bench.serving import __main__ as command
from bench.serving.bars import BARS, judged
from bench.serving.client import Loop, Task, figures
from bench.serving.inputs import json_bodies, prepare
from bench.serving.overload import recovery
from bench.serving.page import page
from bench.serving.processes import serving
from bench.serving.steady import compared
from bench.serving.wrk import Bodies, closed, parsed


@contextmanager
def answering(loop: asyncio.AbstractEventLoop, statuses: list[int], rest: float = 0.0) -> Iterator[tuple[int, list]]:
    """Run a server that answers with these statuses in turn (0: closes); yield its port and received bodies."""
    got: list[bytes] = []
    tasks: list[asyncio.Task] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
            got.append(await reader.readexactly(length))
            status = statuses[(len(got) - 1) % len(statuses)]
            if not status:
                return
            await asyncio.sleep(rest)
            writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 5\r\n\r\nhello".encode())

    async def ended(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.current_task())
        try:
            await handle(reader, writer)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.transport.abort()

    async def end() -> None:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # their transports close

    server = loop.run_until_complete(asyncio.start_server(ended, "127.0.0.1", 0))
    try:
        yield server.sockets[0].getsockname()[1], got
    finally:
        loop.run_until_complete(end())


def run(statuses, rest=0.0, bodies=(), **given):
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        with answering(loop, statuses, rest) as (port, got):
            task = Task(port=port, files=list(bodies), **given)
            sent = Loop(task)
            loop.run_until_complete(sent.run())
    return figures(task, sent), got


def test_the_open_loop_counts_statuses_and_sends_every_body(tmp_path):
    files = []
    for at in range(3):
        (tmp_path / str(at)).write_bytes(b"x" * at)
        files.append(str(tmp_path / str(at)))
    found, got = run([200, 429, 0], bodies=files, rate=300.0, seconds=0.1, even=True)
    assert found["offered"] == 30
    assert found["statuses"] == {"0": 10, "200": 10, "429": 10}
    assert sorted(got) == sorted([b"", b"x", b"xx"] * 10)
    assert found["client_cpu"] > 0


def test_waiting_for_a_connection_counts():
    found, _ = run([200], rest=0.05, rate=1000.0, seconds=0.004, even=True, connections=1, series=True)
    assert found["statuses"] == {"200": 4}
    ends = np.add(found["series"]["due"], found["series"]["latency"])
    assert all(end > 0.049 * at for at, end in enumerate(ends, 1))
    assert found["late"]["max"] >= 0.14


def test_what_is_not_answered_in_time_has_no_status():
    found, _ = run([200], rest=5.0, rate=100.0, seconds=0.02, grace=0.05, even=True)
    assert found["statuses"] == {"0": 2}
    assert found["latency"] is None


def test_callers_come_independently_at_the_rate():
    due = np.array(Task(port=1, rate=500.0, seconds=40.0).schedule())
    gaps = np.diff(due)
    assert len(due) == pytest.approx(20_000, rel=0.03)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03)


def test_the_error_of_a_server_that_does_not_start_has_its_output():
    with pytest.raises(UnavailableError, match=r"status 2: .*No such file.*'nowhere'"):
        serving(["json.tool", "nowhere"], "/").__enter__()


@pytest.mark.full
@pytest.mark.parametrize("measure", ["one caller", "open loop"])
def test_a_stopped_run_ends_its_servers(measure, tmp_path):
    if shutil.which("wrk") is None:
        pytest.skip("the closed loop is tried with wrk: apt install wrk")
    command = [sys.executable, "-m", "bench.serving", "--quick", "--measure", measure, measure, measure]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}  # by which those that it starts are known
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) as run:
        while len(set(started(tmp_path).values())) < 3 and run.poll() is None:  # it, a server and a client
            pass
        run.send_signal(signal.SIGTERM)
        assert run.wait(600) == 128 + signal.SIGTERM
    assert not started(tmp_path)
    assert not any(tmp_path.iterdir())


def started(folder):
    """The command lines of Python's modules, by process, whose folder for temporary files is this one.

    Not of the short-lived programs that describe the machine, which may be there a moment longer.
    """
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"-m" in words and f"TMPDIR={folder}\0".encode() in (process / "environ").read_bytes():
                found[int(process.name)] = tuple(words)
    return found


@pytest.mark.full
def test_wrk_sends_bodies_and_counts(tmp_path):
    if shutil.which("wrk") is None:
        pytest.skip("the closed loop is tried with wrk: apt install wrk")
    bodies = Bodies(tmp_path / "bodies", [b"\0\r\n one", b"two"])
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        with answering(loop, [200, 429]) as (port, got):
            counted = loop.run_until_complete(asyncio.to_thread(closed, f"http://127.0.0.1:{port}", bodies, 2, 1))
    assert set(got) == {b"\0\r\n one", b"two"}
    assert 0 < counted["refused"] <= counted["requests"]
    assert counted["lost"] == 0
    assert 0 < counted["p50"] <= counted["p99"] <= counted["max"]


def test_without_wrk_the_error_names_it(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert command.main(["--quick"]) == 0
    assert "serving: skip, wrk is absent: apt install wrk" in capsys.readouterr().out
    assert parsed('result {"p50": 1}') == {"p50": 1}


def test_rates_are_compared_with_the_library_before_and_after():
    library = [
        {"32": {"queries_per_second": rate}, "64": {"queries_per_second": 1.0}} for rate in (100.0, 300.0, 100.0)
    ]
    turns = [{"json": {"queries_per_second": rate}, "fastapi": {"queries_per_second": 20.0}} for rate in (100.0, 160.0)]
    found = compared(library, turns)
    assert found["limit"] == 100.0
    assert found["json"]["of_library"] == pytest.approx(0.65)
    assert found["fastapi"]["json_of_it"] == pytest.approx(6.5)


def test_recovery_is_the_first_search_after_which_all_are_soon():
    series = {"due": [1.0, 1.1, 1.2, 1.3], "latency": [0.01] * 4, "status": [200, 200, 504, 200]}
    assert recovery(series, 1.0) == pytest.approx(0.3)
    assert recovery(series, 1.25) == 0.0
    assert recovery({**series, "status": [504] * 4}, 1.0) is None


def test_bars_say_met_or_missed():
    figures = {"latency": {"p50": 0.02, "p99": 0.05}, "library_p50": 0.005}
    rows = [
        {"measure": "open loop", "status": "ok", "bars": judged("open loop", figures), "load": {"other_cores": 0.1}}
    ]
    assert [(bar["value"], bar["met"]) for bar in rows[0]["bars"]] == [(4, False), (10, False), (0.05, True)]
    shown = page(rows)
    assert "| p99 at half of saturation | at most 50 ms | 50 ms | met | 0.10 |" in shown
    assert judged("overload", {"of_saturation": 0.95}) == [
        {"value": 0.95, "limit": 0.9, "met": True, "says": "goodput under overload, of saturation"}
    ]
    assert {bar.measure for bar in BARS} <= set(command.MEASURES)


def test_requests_ask_every_question(tmp_path):
    index, questions = prepare(tmp_path, quick=True)
    bodies = [json.loads(body) for body in json_bodies(questions, 32)]
    assert [len(body["queries"]) for body in bodies] == [32, 32]  # of 40 questions: the last begins again
    asked = [query["entities"] for body in bodies for query in body["queries"]]
    assert asked[:40] == questions.entities
    assert asked[40:] == questions.entities[:24]
    same, drawn = prepare(tmp_path, quick=True, index=index)
    assert same == index
    assert len(drawn) == len(drawn.vectors) > 0


def test_a_measurement_is_written_before_the_next(monkeypatch, tmp_path):
    out, seen = tmp_path / "rows.jsonl", []

    def measured(measure, setting, quick):
        seen.append(len(out.read_text().splitlines()) if out.exists() else 0)
        return {"measure": measure, "status": "skip", "reason": "nothing is measured here"}

    monkeypatch.setattr(command, "_row", measured)
    monkeypatch.setattr(command.wrk, "require", lambda: None)
    assert command.main(["--quick", "--measure", "sample", "reload", "batch", "--out", str(out)]) == 0
    assert seen == [0, 1, 2]


@pytest.mark.full
def test_the_quick_mode_measures_everything(tmp_path):
    if shutil.which("wrk") is None:
        pytest.skip("the closed loop is tried with wrk: apt install wrk")
    assert command.main(["--quick", "--out", str(tmp_path / "rows.jsonl")]) == 0
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["measure"] for row in rows] == list(command.MEASURES)
    assert {row["status"] for row in rows} == {"ok"}
    assert {bar["says"] for row in rows for bar in row["bars"]} == {bar.says for bar in BARS} - lacking(rows)


def lacking(rows):
    """Return the bars that need packages not installed here."""
    skipped = next(row for row in rows if row["measure"] == "throughput")["figures"]["skipped"]
    named = {"arrow": BARS[1].says, "fastapi": BARS[2].says, "mosec": ""}
    return {named[name] for name in skipped}
