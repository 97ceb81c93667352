"""Parts by Ray: room and copies by themselves; on real clusters, kills of actors, of drivers and of raylets."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import command
from hopfuse.errors import InputError, MissingExtraError
from hopfuse.io import Query
from hopfuse.offline import RetrieverScorer, make_plan, merge, open_index, run
from hopfuse.offline import ray as by_ray
from hopfuse.offline.ray import connected, copied, cpus_of_actor, error_of_row, row_of_error
from offline.conftest import ROWS
from offline.ray_space import Space, missing, until
from offline.scorers import HashScorer, open_hash
from refusals import refused

HAS_RAY = importlib.util.find_spec("ray") is not None
PORT = 6399
ADDRESS = f"127.0.0.1:{PORT}"
HEAD = ("start", "--head", f"--port={PORT}", "--include-dashboard=false")
#: Parts of five queries. Those from the row on wait for a file, so a kill from outside comes in the middle of a run.
HELD = {"part_rows": 5, "row": 50}

# ---- Without Ray -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "actors", "gpus", "expected"),
    [
        ([{"CPU": 8.0}], 2, 0, 1.0),
        ([{"CPU": 2.0}], 2, 0, 0.5),
        ([{"CPU": 1.0}], 1, 0, 0.5),
        ([{"CPU": 2.0}, {"CPU": 2.0}], 4, 0, 0.75),
        ([{"CPU": 3.0}], 3, 0, 0.6666),  # rounded down, so that a whole CPU stays
        ([{"CPU": 4.0, "GPU": 8.0}], 16, 0.5, 0.1875),
    ],
)
def test_actors_leave_a_cpu_free(nodes, actors, gpus, expected) -> None:
    share = cpus_of_actor(nodes, actors, gpus)
    assert share == expected
    total = sum(node["CPU"] for node in nodes)
    assert total - actors * share >= min(1, total / 2) - 1e-9


@pytest.mark.parametrize(
    ("nodes", "actors", "gpus", "room"),
    [
        ([{"CPU": 2.0}], 3, 0, 2),
        ([{"CPU": 4.0, "GPU": 1.0}], 2, 1, 1),
        ([{"CPU": 4.0, "GPU": 1.0}, {"CPU": 4.0, "GPU": 1.0}], 1, 2, 0),
        ([{"CPU": 4.0}], 1, 1, 0),
    ],
)
def test_actors_without_room_are_refused(nodes, actors, gpus, room) -> None:
    with refused(InputError, "range", "actors", given=actors, allowed=room, nodes=len(nodes)):
        cpus_of_actor(nodes, actors, gpus)


@pytest.mark.parametrize(
    "error",
    [
        InputError("range", "k", "{field} is {given}; it must be at least 0", given=-1).at("q.jsonl, line 3"),
        MissingExtraError("pyarrow", "arrow", "a part"),
        OSError(28, "No space left on device"),
        ZeroDivisionError("a bug"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_is_sent_as_a_row(error) -> None:
    found = error_of_row(row_of_error(error))
    if isinstance(error, ZeroDivisionError):
        assert isinstance(found, RuntimeError)
        assert "ZeroDivisionError: a bug" in f"{found}"
    else:
        assert isinstance(found, type(error))
        assert f"{found}" == f"{error}"
        assert [getattr(one, "code", None) for one in (found, error)] == [getattr(error, "code", None)] * 2


def test_a_refusal_without_a_message_is_named_by_its_class(monkeypatch) -> None:
    """Ray 2.52 says nothing of a token that the cluster does not have."""

    def init(*_: object, **__: object) -> None:
        raise ConnectionError

    ray = SimpleNamespace(is_initialized=lambda: False, init=init, exceptions=SimpleNamespace(RayError=RuntimeError))
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.data", ray)
    with refused(InputError, "connection", "address", given="local") as found, connected("local"):
        pass
    assert found.value.values["reason"].partition(";")[0] == "ConnectionError"


@pytest.fixture
def indexed(queries, tmp_path):
    """A plan over a real index."""
    index = hf.Index.build(passages=[{"text": "A river."}, {"text": "The sea."}])
    index.save(tmp_path / "index")
    return make_plan(queries, tmp_path / "index", scoring={})


def test_an_index_is_copied_once_a_machine(indexed, tmp_path) -> None:
    copies = tmp_path / "copies"
    first, again = copied(indexed, copies), copied(indexed, copies)
    assert first == again
    assert first.index["directory"] != indexed.index["directory"]
    assert open_index(first).checksum == indexed.index["checksum"]
    assert sorted(path.name for path in copies.iterdir()) == [str(indexed.index["checksum"])[:32], "lock"]


def test_an_index_that_is_not_the_plans_is_not_copied(indexed, tmp_path) -> None:
    other = replace(indexed, index={**indexed.index, "checksum": "0" * 64})
    with refused(InputError, "changed", "index"):
        copied(other, tmp_path / "copies")
    assert [path.name for path in (tmp_path / "copies").iterdir()] == ["lock"]


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [({"actors": 0}, "actors", 0), ({"num_gpus": -1}, "num_gpus", -1), ({"shard": (3, 2)}, "shard", "3/2")],
)
def test_what_makes_no_sense_is_refused(planned, given, field, value) -> None:
    with refused(InputError, "range", field, given=value):
        by_ray.run(planned().path, open_hash, **given)


@pytest.mark.skipif(HAS_RAY, reason="ray is installed")
def test_without_ray_the_extra_is_named(planned) -> None:
    with refused(MissingExtraError, "missing_extra"):
        by_ray.run(planned().path, open_hash)


@pytest.mark.skipif(not HAS_RAY, reason="ray is not installed")
def test_a_client_address_is_refused() -> None:
    with refused(InputError, "syntax", "address", given="ray://head:10001"), connected("ray://head:10001"):
        pass


# ---- On clusters -----------------------------------------------------------------------------------------------------

on_clusters = pytest.mark.skipif(
    not HAS_RAY or missing() is not None, reason=(missing() or "") if HAS_RAY else "ray is not installed"
)


@pytest.fixture
def space():
    here = Space()
    yield here
    here.close()


@pytest.fixture(scope="module")
def cluster():
    """A space with a cluster of two CPUs and, for Ray's book-keeping, two GPUs."""
    here = Space()
    here.ray(*HEAD, "--num-cpus=2", "--num-gpus=2")
    yield here
    here.close()


def finished(folder) -> int:
    return len(list((folder.path / "parts").iterdir()))


def outcome(process) -> dict:
    """What a program printed."""
    out, err = process.communicate()
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


def merged(folder) -> bytes:
    out = folder.path.with_suffix(".jsonl")
    merge(folder.path, out)
    assert not list((folder.path / "drafts").iterdir())
    return out.read_bytes()


@pytest.fixture
def expected(planned) -> bytes:
    """What one process makes."""
    folder = planned("one-process")
    run(folder.path, open_hash)
    return merged(folder)


@pytest.mark.full
@on_clusters
def test_a_killed_actor_costs_its_part(space, planned, expected, tmp_path) -> None:
    """It kills itself over a part: an actor that has none when it is killed costs nothing and is not replaced."""
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    folder = planned("actor", part_rows=5, folder=str(deaths), times=1, row=50)
    driver = space.program("run", folder.path, "dying", json.dumps({"actors": 2}))
    assert outcome(driver) == {"parts": 19, "rows": ROWS, "replaced": 1}
    assert len(list(deaths.iterdir())) == 1
    assert merged(folder) == expected


@pytest.mark.full
@on_clusters
def test_after_a_killed_driver_the_run_goes_on(space, planned, expected, tmp_path) -> None:
    gate = tmp_path / "gate"
    folder = planned("driver", gate=str(gate), **HELD)
    driver = space.program("run", folder.path, "held", json.dumps({"actors": 2}))
    until(lambda: finished(folder) >= 2, driver)
    for pid in space.pids("offline.ray_programs"):
        space.kill(pid)
    driver.communicate()
    assert driver.returncode != 0
    until(lambda: not space.pids("ray::MapWorker"))
    left = {path.name: os.stat(path).st_ino for path in (folder.path / "parts").iterdir()}
    assert 2 <= len(left) <= 10
    gate.touch()
    made = outcome(space.program("run", folder.path, "held", json.dumps({"actors": 2})))
    assert made == {"parts": 19 - len(left), "rows": ROWS - 5 * len(left), "replaced": 0}
    assert {name: os.stat(folder.path / "parts" / name).st_ino for name in left} == left, "none is made again"
    assert merged(folder) == expected


@pytest.mark.full
@on_clusters
def test_a_killed_raylet_costs_the_parts_of_its_node(space, planned, expected, tmp_path) -> None:
    """Two nodes of one GPU each, so that each has an actor; the one that is left makes the rest."""
    space.ray(*HEAD, "--num-cpus=2", "--num-gpus=1")
    head = space.pids("raylet/raylet")
    space.ray("start", f"--address={ADDRESS}", "--num-cpus=2", "--num-gpus=1")
    (raylet,) = set(space.pids("raylet/raylet")) - set(head)
    gate = tmp_path / "gate"
    folder = planned("raylet", gate=str(gate), **HELD)
    how = {"actors": 2, "num_gpus": 1, "address": ADDRESS}
    driver = space.program("run", folder.path, "held", json.dumps(how))
    until(lambda: finished(folder) == 10 and len(actors(space)) == 2, driver)
    parents = [int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in actors(space)]
    assert sorted(parents) == sorted([*head, raylet])
    space.kill(raylet)
    until(lambda: len(actors(space)) == 1, driver)  # it notices, and does not make its part first
    gate.touch()
    made = outcome(driver)
    assert (made["parts"], made["rows"]) == (19, ROWS)
    assert made["replaced"] >= 1
    assert merged(folder) == expected


def actors(space) -> list[int]:
    return space.pids("ray::MapWorker(MapBatches(PartActor))")


@pytest.mark.full
@on_clusters
def test_a_killed_raylet_of_the_drivers_own_node_ends_the_run_and_another_goes_on(
    space, planned, expected, tmp_path
) -> None:
    gate = tmp_path / "gate"
    folder = planned("head", gate=str(gate), **HELD)
    driver = space.program("run", folder.path, "held", json.dumps({"actors": 2}))
    until(lambda: finished(folder) >= 2, driver)
    (raylet,) = space.pids("raylet/raylet")
    space.kill(raylet)
    driver.communicate()
    left = finished(folder)
    assert 2 <= left <= 10
    until(lambda: not space.pids("ray::MapWorker"))
    gate.touch()
    outcome(space.program("run", folder.path, "held", json.dumps({"actors": 2})))
    assert merged(folder) == expected


@pytest.mark.full
@on_clusters
def test_each_actor_has_its_gpus_one_thread_and_the_copied_index(cluster, planned, expected, tmp_path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    index = hf.Index.build(passages=[{"text": "A river."}])
    index.save(tmp_path / "index")
    folder = planned("gpus", part_rows=5, marks=str(marks))
    plan = make_plan(Path(folder.plan.queries), tmp_path / "index", scoring=folder.plan.scoring, part_rows=5)
    folder.clear()
    folder.create(plan)
    how = {"actors": 2, "num_gpus": 1, "address": ADDRESS, "copy_index": str(tmp_path / "copies")}
    outcome(cluster.program("run", folder.path, "marking", json.dumps(how)))
    found = [json.loads(path.read_text()) for path in marks.iterdir()]
    assert sorted(one["gpus"] for one in found) == ["0", "1"]
    assert {one["threads"] for one in found} == {1}
    assert {one["index"] for one in found} == {str(tmp_path / "copies" / plan.index["checksum"][:32])}
    assert merged(folder) == expected


@pytest.mark.full
@on_clusters
@pytest.mark.parametrize(
    ("program", "how", "environment", "code", "field", "values"),
    [
        ("run", {"actors": 3}, {}, "range", "actors", {"given": 3, "total": 2.0, "nodes": 1, "allowed": 2}),
        ("run", {"actors": 3, "num_gpus": 1}, {}, "range", "actors", {"gpus": " and 2 GPUs", "allowed": 2}),
        ("busy", {}, {}, "busy", "actors", {"free_gpus": 2.0, "allowed": 0, "cpus": 0.5}),
        ("run", {}, {"RAY_AUTH_TOKEN": "f" * 64}, "connection", "address", {"given": ADDRESS}),
        ("run", {"address": "127.0.0.1:6400"}, {}, "connection", "address", {"given": "127.0.0.1:6400"}),
    ],
)
def test_a_cluster_without_room_or_with_another_token_is_refused(
    cluster, planned, program, how, environment, code, field, values
) -> None:
    folder = planned("refused", part_rows=5)
    given = json.dumps({"address": ADDRESS, **how})
    refused = outcome(cluster.program(program, folder.path, "slow", given, **environment))
    assert (refused["class"], refused["code"], refused["field"]) == ("InputError", code, field)
    assert {name: refused["values"][name] for name in values} == values
    assert program != "busy" or round(refused["values"]["free_cpus"], 3) == 0.2
    assert not finished(folder)


@pytest.mark.full
@on_clusters
def test_a_part_that_kills_every_actor_is_given_up(cluster, planned, tmp_path) -> None:
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    folder = planned("dying", part_rows=40, folder=str(deaths), times=99, row=80)
    refused = outcome(cluster.program("run", folder.path, "dying", json.dumps({"actors": 2, "address": ADDRESS})))
    assert (refused["class"], refused["code"], refused["field"]) == ("HopfuseError", "failed", "actors")
    assert (refused["values"]["deaths"], refused["values"]["part"]) == (5, 2)
    assert folder.missing() == [2]


@pytest.mark.full
@on_clusters
def test_a_dataset_is_scored(cluster, queries, tmp_path) -> None:
    """Tasks that want a whole CPU read it, and there are as many actors as CPUs: neither waits for the other."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [json.loads(line) for line in queries.read_text().splitlines()]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "queries.parquet", row_group_size=20)
    hf.Index.build(passages=[{"text": "A river."}, {"text": "The sea."}]).save(tmp_path / "index")
    wanted = HashScorer().score([Query(row["id"], None, None) for row in rows], 0)
    for _ in range(2):  # the second time all parts are there
        found = outcome(
            cluster.program("score", tmp_path / "queries.parquet", tmp_path / "index", tmp_path / "run", ADDRESS)
        )
        assert found == wanted
    assert len(list((tmp_path / "run" / "parts").iterdir())) == 10


@pytest.mark.full
@on_clusters
def test_actors_take_a_retriever(cluster, tmp_path) -> None:
    pytest.importorskip("bm25s", reason="the retriever counts words by bm25s (extra text)")
    rows = [{"text": f"A road to {name}."} for name in ("Ankara", "Bergen", "Cusco")]
    hf.Index.build(passages=rows).save(tmp_path / "index")
    queries = [Query(f"q{at}", f"the road to {('Ankara', 'Bergen', 'Cusco')[at % 3]}", None) for at in range(30)]
    lines = [json.dumps({"id": query.id, "text": query.text}) + "\n" for query in queries]
    (tmp_path / "queries.jsonl").write_text("".join(lines))
    places = (tmp_path / "queries.jsonl", tmp_path / "index", tmp_path / "run")
    found = outcome(cluster.program("by_retriever", *places, ADDRESS))
    assert found == RetrieverScorer(hf.Retriever.open(tmp_path / "index"), k=2).score(queries, 0)
    assert [len(row["hits"]) for row in found] == [2] * 30


@pytest.mark.full
@on_clusters
def test_the_command_makes_what_one_process_makes(space, tmp_path, queries) -> None:
    passages = [{"text": "xx"}, {"text": "xxx xx"}]
    hf.Index.build(passages=passages, vectors=np.eye(2)).save(tmp_path / "index")
    np.save(tmp_path / "vectors.npy", np.random.default_rng(0).standard_normal((ROWS, 2)))
    given = ["--queries", queries, "--vectors", tmp_path / "vectors.npy", "--recipe", "hybrid-rrf", "--words", "none"]
    for out, more in {"one.jsonl": [], "ray.jsonl": ["--engine", "ray", "--workers", "2", "--part-rows", "20"]}.items():
        done = space.run(*command("score", tmp_path / "index", *given, *more, "--out", tmp_path / out))
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "ray.jsonl").read_bytes()


@pytest.mark.full
@on_clusters
def test_rows_on_actors_have_the_bits_of_one_process(space) -> None:
    example = Path(__file__).parents[2] / "examples" / "row_partitions.py"
    done = space.run(sys.executable, example, "--blocks", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 blocks on Ray, one process: equal bits" in done.stdout
