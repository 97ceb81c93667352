"""Runs of a plan: the same bytes whoever makes a part, whatever is killed, whatever the disk refuses."""

from __future__ import annotations

import errno
import os
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import hopfuse as hf
import numpy as np
import processes
import pytest
from cli.cli_files import write_jsonl
from hopfuse.errors import FormatError, HopfuseError, InputError
from hopfuse.io import Query
from hopfuse.offline import RetrieverScorer, check_rows, merge, run, verify
from offline.conftest import PART, ROWS, parts_of
from offline.kills import alive, finish_under_kills
from offline.scorers import HashScorer, open_broken, open_dying, open_hash, open_refusing, open_slow
from refusals import refused


@pytest.fixture
def whole(planned):
    """A finished run."""
    folder = planned("whole")
    run(folder.path, open_hash)
    return folder


def test_parts_do_not_depend_on_the_process_that_makes_them(whole, planned) -> None:
    expected = parts_of(whole)
    assert len(expected) == 10
    for name, ways in {
        "chunks": [{"chunk": 3}],
        "shards": [{"shard": (3, 3)}, {"shard": (1, 3)}, {"shard": (2, 3)}],
        "workers": [{"workers": 2, "chunk": 7}],
    }.items():
        folder = planned(name)
        made = [run(folder.path, open_hash, **way) for way in ways]
        assert sum(one.rows for one in made) == ROWS
        assert parts_of(folder) == expected


def test_what_is_there_is_not_made_again(whole) -> None:
    whole.part(3).unlink()
    counted: list[int] = []
    assert run(whole.path, open_hash, progress=counted.append) == (1, PART, 0)
    assert counted == [ROWS - PART, PART]
    assert run(whole.path, open_broken).parts == 0, "nothing is scored where nothing is missing"


def test_a_worker_that_is_killed_is_replaced(whole, planned, tmp_path, caplog) -> None:
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    folder = planned("dying", folder=str(deaths), times=2, row=20)
    made = run(folder.path, open_dying, workers=2)
    assert (made.parts, made.replaced) == (10, 2)
    assert [line.endswith("with exit code -9; another replaces it") for line in caplog.messages] == [True, True]
    out = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    merge(folder.path, out[0])
    merge(whole.path, out[1])
    assert out[0].read_bytes() == out[1].read_bytes()


def test_a_part_that_kills_every_worker_is_given_up(planned, tmp_path) -> None:
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    folder = planned("dying", part_rows=40, folder=str(deaths), times=99, row=80)
    with refused(HopfuseError, "failed", "workers", deaths=5, where="at part 2", exitcode=-9):
        run(folder.path, open_dying, workers=2)
    assert folder.missing() == [2]
    assert not list((folder.path / "drafts").iterdir())


def test_what_a_worker_refuses_is_said_here(planned) -> None:
    with refused(InputError, "unknown", "text", given="q1"):
        run(planned("refused").path, open_refusing, workers=2)
    with pytest.raises(RuntimeError, match=r"a worker failed:(.|\n)*ZeroDivisionError: a bug"):
        run(planned("broken").path, open_broken, workers=2)


def test_a_retriever_scores_queries_with_and_without_entities() -> None:
    passages = [{"text": "Ada wrote."}, {"text": "Babbage built."}]
    edges = [{"src": 0, "dst": 2}, {"src": 1, "dst": 3}]
    index = hf.Index.build(passages=passages, vectors=np.eye(2), graph=edges, entities=["Ada", "Babbage"])
    scorer = RetrieverScorer(hf.Retriever(index, "phase-graph", alpha=0.1), k=1)
    asked = [("Ada?", None), ("Ada?", ["Babbage"]), ("Ada?", ["Ada"]), ("Babbage?", None)]
    queries = [Query(str(at), text, names, np.array([1.0, 0.0])) for at, (text, names) in enumerate(asked)]
    rows = scorer.score(queries, 0)
    assert [(row["id"], row["hits"][0]["id"]) for row in rows] == [("0", 0), ("1", 1), ("2", 0), ("3", 1)]
    assert [row for query in queries for row in scorer.score([query], 0)] == rows
    assert not any("notes" in row for row in rows)
    assert pickle.loads(pickle.dumps(scorer)).score(queries, 0) == rows
    (row,) = scorer.score([Query("4", None, ["Nobody"], np.array([0.0, 1.0]))], 0)
    assert row["hits"][0]["id"] == 1
    assert [(note["code"], note["field"], set(note)) for note in row["notes"]] == [
        ("unknown", "entities[0]", {"code", "field", "message"})
    ]


PARENT = """
import sys
from pathlib import Path
from hopfuse.offline import run
from offline.scorers import open_slow
if __name__ == "__main__":
    run(Path(sys.argv[1]), open_slow, workers=2, chunk=1)
"""


def test_a_run_whose_parent_is_killed_leaves_no_process_and_goes_on(whole, planned, tmp_path) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()
    folder = planned("killed", pids=str(pids))
    parent = killed_after(folder, 2)
    started = [int(path.name) for path in pids.iterdir()]
    assert parent not in started
    for pid in started:
        while alive(pid):
            time.sleep(0.01)
    left = parts_of(folder)
    assert len(left) >= 2
    for path in pids.iterdir():
        path.unlink()
    run(folder.path, open_hash)
    assert not list((folder.path / "drafts").iterdir())
    assert {name: parts_of(folder)[name] for name in left} == left
    out = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    merge(folder.path, out[0])
    merge(whole.path, out[1])
    assert out[0].read_bytes() == out[1].read_bytes()


def killed_after(folder, parts: int) -> int:
    """Run a plan with two workers in a process that is killed when so many parts are there; return its number."""
    paths = os.pathsep.join(path for path in sys.path if path)
    program = Path(folder.path, "program.py")
    program.write_text(PARENT, encoding="utf-8")
    parent = processes.Popen([sys.executable, program, folder.path], env={**os.environ, "PYTHONPATH": paths})
    while len(list((folder.path / "parts").iterdir())) < parts and parent.poll() is None:
        time.sleep(0.005)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    program.unlink()
    return parent.pid


@pytest.mark.full
def test_a_hundred_kills_leave_the_same_bytes(whole, planned, tmp_path) -> None:
    """Of workers and of the parent, at random moments, until a hundred were killed."""
    draw, kills, rounds = random.Random(0), 0, 0
    merge(whole.path, tmp_path / "whole.jsonl")
    paths = os.pathsep.join(path for path in sys.path if path)
    program = tmp_path / "program.py"
    program.write_text(PARENT, encoding="utf-8")
    while kills < 100:
        folder = planned(f"killed{(rounds := rounds + 1)}", part_rows=2, seconds=0.02)
        command = [sys.executable, program, folder.path]
        kills += finish_under_kills(
            command,
            lambda folder=folder: not folder.missing(),
            draw,
            100 - kills,
            seconds=0.3,
            environment={"PYTHONPATH": paths},
        )
        merge(folder.path, tmp_path / "out.jsonl")
        assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
        assert not list((folder.path / "drafts").iterdir())
    assert kills == 100


# ---- What is refused, and what stays then ----------------------------------------------------------------------------


def test_a_full_disk_leaves_the_finished_parts(whole, planned, monkeypatch) -> None:
    folder, calls = planned("full"), []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) > 4:  # of each part and of its folder
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(
            OSError, match=r"part 2 of .*/full cannot be written: No space left on device; .* run again"
        ):
            run(folder.path, open_hash)
    assert sorted(parts_of(folder)) == ["part-000000.jsonl", "part-000001.jsonl"]
    assert not list((folder.path / "drafts").iterdir())
    run(folder.path, open_hash)
    assert parts_of(folder) == parts_of(whole)


#: On a disk of 64 KiB, beside what fills most of it: run, free that, run again, merge, on a full disk and then not.
ON_A_SMALL_DISK = """
import sys
from pathlib import Path
from hopfuse.offline import Folder, merge, run
from offline.scorers import open_hash
folder, disk = Folder(Path(sys.argv[1])), Path(sys.argv[1]).parent
filler = disk / "filler"
def fill():
    with open(filler, "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
def refused(call, *words):
    try:
        call(*words)
    except OSError as error:
        print(error.strerror)
try:
    fill()
except OSError:
    filler.open("r+b").truncate(filler.stat().st_size - 3 * 4096)
refused(run, folder.path, open_hash)
print(*sorted(path.name for path in (folder.path / "parts").iterdir()))
print(*(folder.path / "drafts").iterdir())
filler.unlink()
run(folder.path, open_hash)
try:
    fill()
except OSError:
    pass
refused(merge, folder.path, disk / "out.jsonl")
print(*(path.name for path in disk.glob("*out*")), *(folder.path / "drafts").iterdir())
filler.unlink()
merge(folder.path, Path(sys.argv[2]))
"""


def test_a_disk_that_is_really_full(whole, planned, tmp_path) -> None:
    """A mount in a namespace of its own."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        pytest.skip("no mounts can be made here")
    folder, disk = planned("small"), tmp_path / "disk"
    disk.mkdir()
    program = tmp_path / "program.py"
    program.write_text(ON_A_SMALL_DISK, encoding="utf-8")
    mounted = 'mount -t tmpfs -o size=64k tmpfs "$1" && cp -r "$2" "$1/run" && exec "$3" "$4" "$1/run" "$5"'
    words = ["sh", disk, folder.path, sys.executable, program, tmp_path / "small.jsonl"]
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mounted, *words],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    run_said, parts, drafts, merge_said, left = done.stdout.splitlines()
    assert re.match(r"part \d of .*/disk/run cannot be written: No space left on device; .* run again", run_said)
    assert re.fullmatch(r"part-000000.jsonl( part-00000\d.jsonl)*", parts)
    assert len(parts.split()) < whole.plan.num_parts
    assert re.match(r".*/disk/.* cannot be written: No space left on device; .* the parts stay", merge_said)
    assert drafts == left == "", "nothing is half written"
    merge(whole.path, tmp_path / "whole.jsonl")
    assert (tmp_path / "small.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_ids_that_repeat_are_named(tmp_path) -> None:
    path = write_jsonl(tmp_path / "q.jsonl", [{"id": "a"}, {"id": "b"}, {"text": "its id is 2"}, {"id": 2}])
    with refused(InputError, "duplicate", "id", given="2", other=f"{path}, line 3") as caught:
        check_rows(path, lambda query, where: None)
    assert caught.value.places == (f"{path}, line 4",)


def test_inputs_that_changed_are_refused(planned, queries, tmp_path) -> None:
    folder = planned()
    before = queries.read_bytes()
    try:
        queries.write_bytes(before.replace(b"xx", b"yy"))
        with refused(InputError, "changed", "queries"):
            run(folder.path, open_hash)
    finally:
        queries.write_bytes(before)
    assert run(folder.path, open_hash).parts == 10, "the same contents with another time of change will do"


def test_a_part_of_another_plan_is_named(whole, planned) -> None:
    other = planned("other", alpha=1)
    other.part(4).write_bytes(whole.part(4).read_bytes())
    with refused(InputError, "changed", "folder"):
        run(other.path, open_hash)


def test_a_merge_of_parts_that_are_missing_is_refused(whole, tmp_path) -> None:
    whole.part(3).unlink()
    with refused(InputError, "missing", "folder"):
        merge(whole.path, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_a_merge_waits_for_no_run(whole, tmp_path) -> None:
    with whole.lock(alone=False), refused(InputError, "busy", "folder"):
        merge(whole.path, tmp_path / "out.jsonl")


def test_a_killed_merge_leaves_nothing_beside_the_result(whole, tmp_path) -> None:
    out = tmp_path / "out" / "merged.jsonl"
    out.parent.mkdir()
    dying = "import os, signal, sys\nfrom pathlib import Path\nimport hopfuse.offline as o\n"
    dying += "os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)\no.merge(*map(Path, sys.argv[1:]))"
    done = processes.run([sys.executable, "-c", dying, whole.path, out], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not list(out.parent.iterdir())
    assert len(parts_of(whole)) == 10
    merge(whole.path, out)
    assert list(out.parent.iterdir()) == [out]
    assert not list((whole.path / "drafts").iterdir())


def test_verify_makes_parts_again(whole, planned) -> None:
    assert len(verify(whole.path, open_hash)) == 3
    assert verify(whole.path, open_hash, sample=99) == list(range(10))
    rows = list(HashScorer().score([type("Query", (), {"id": f"q{at}"}) for at in range(PART)], 0))
    rows[0] = {"id": "q0", "hits": [{"id": "p9", "score": 9.0}]}
    whole.add(0, rows)  # whole and of this plan, but not what is found
    assert verify(whole.path, open_hash, sample=0) == []
    with refused(InputError, "changed", "folder"):
        verify(whole.path, open_hash, sample=10)


def test_verify_notices_damage_in_any_part(whole) -> None:
    whole.part(9).write_bytes(whole.part(9).read_bytes().replace(b"p1", b"p2", 1))
    with refused(FormatError, "damaged"):
        verify(whole.path, open_hash, sample=0)


@pytest.mark.parametrize(
    ("given", "code", "field", "value"),
    [
        ({"shard": (0, 2)}, "range", "shard", "0/2"),
        ({"shard": (3, 2)}, "range", "shard", "3/2"),
        ({"workers": 0}, "range", "workers", 0),
        ({"workers": 2, "threads": 2}, "conflict", "threads", None),
    ],
)
def test_options_that_make_no_sense(planned, given, code, field, value) -> None:
    folder = planned()
    with refused(InputError, code, field, given=value):
        run(folder.path, open_slow, **given)
    assert not parts_of(folder)
