"""A live index that follows tables: whatever happens to rows, tables and slot, it equals them, or says why."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.cli_files import about, hopfuse
from cli.cli_files import refused as refused_command
from hopfuse import Index
from hopfuse.errors import InputError, StoreError
from hopfuse.index import EncoderInfo, LeftOut
from hopfuse.stores.postgres import TransientError, failures_of
from refusals import refused
from stores.postgres_tables import QUERIES, add_chunk, make_tables, state_of

SLOT = "follow_test"


def source(url: str, **queries: Any) -> Any:
    from hopfuse.stores.postgres import PostgresSource

    return PostgresSource(url, **{**QUERIES, **queries})


def build(url: str, folder: Path, slot: str, **queries: Any) -> Path:
    from hopfuse.stores.postgres import followed

    with followed(source(url, **queries), slot, Index.build) as index:
        index.save(folder)
    return folder


def follower(folder: Path, url: str, **options: Any) -> Any:
    from hopfuse.stores.postgres import PostgresFollower

    return PostgresFollower(folder, url, **options)


@pytest.fixture
def slot(request: pytest.FixtureRequest, database: Any) -> str:
    return "s" + str(abs(hash(request.node.nodeid)))[:12]


@pytest.fixture
def index(database: Any, slot: str, tmp_path: Path) -> Path:
    """The directory of an index of tables with rows."""
    url, connection = database
    make_tables(connection)
    return build(url, tmp_path / "index", slot)


def assert_equal(folder: Path, url: str) -> None:
    """The index equals one that is built of the tables as they are."""
    assert state_of(Index.open(folder, verify="full")) == state_of(Index.build(source(url)))


STEPS = [
    "INSERT INTO chunks SELECT 100, NULL, 'late', '[1,2,3,4]', NULL, NULL",
    "INSERT INTO names VALUES ('Byron', '{Lord}'); INSERT INTO mentions VALUES (3, 'Byron')",
    "UPDATE chunks SET title = 'other', year = NULL WHERE id = 2",
    "UPDATE chunks SET id = 77 WHERE id = 0; UPDATE mentions SET chunk = 77 WHERE chunk = 0",
    "UPDATE mentions SET weight = 7.5 WHERE chunk = 1",
    "DELETE FROM mentions WHERE chunk = 4",
    "DELETE FROM mentions WHERE chunk = 5; DELETE FROM chunks WHERE id = 5",
    "UPDATE statements SET tail = 'Ada' WHERE head = 'Babbage'",
    "UPDATE statements SET chunk = 3 WHERE chunk = 1",
    "DELETE FROM statements WHERE chunk = 2 AND relation = 'knew'",
    "INSERT INTO statements (head, relation, tail, chunk) VALUES ('Ada', 'knew', 'Babbage', 1), ('Ada', 'met', "
    "'Ada', NULL)",
    "UPDATE names SET aliases = '{Charles}' WHERE name = 'Babbage'",
    "UPDATE mentions SET entity = 'Babbage' WHERE entity = 'Engine'; DELETE FROM statements WHERE 'Engine' IN (head, "
    "tail);"
    "DELETE FROM names WHERE name = 'Engine'",
    "BEGIN; DELETE FROM mentions; DELETE FROM statements; DELETE FROM chunks; DELETE FROM names; COMMIT",
]


def test_each_change_of_rows_is_followed(database, index):
    url, connection = database
    with follower(index, url) as following:
        assert following.step() is None
        for at, statement in enumerate(STEPS[:10] + STEPS[11:], 1):
            connection.execute(statement)
            assert following.step() == at, statement
            assert_equal(index, url)
        assert following.step() is None


def test_several_changes_are_one_batch_and_a_repeated_one_counts_once(database, index):
    url, connection = database
    before = Index.open(index).source
    for statement in STEPS[:9]:
        connection.execute(statement)
    with follower(index, url) as following:
        assert following.step() == 1
    assert_equal(index, url)
    with Index.open(index, writable=True) as live, live.change() as change:
        change.set_source(before)  # as if the slot had not moved, and the changes were not noted
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO mentions VALUES (100, 'Ada')")
    with refused(StoreError, "changed", "slot"):
        follower(index, url)


def test_a_repeated_read_of_the_log_changes_nothing(database, index, monkeypatch):
    url, connection = database
    monkeypatch.setattr(
        "hopfuse.stores.postgres.slot.Slot.advance", lambda self, position: None
    )  # as if killed before the slot is moved
    with follower(index, url) as following:
        for statement in STEPS[:9]:
            connection.execute(statement)
            following.step()
    with follower(index, url) as following:
        assert following.step() is None
        assert following.seq == 9
        connection.execute(STEPS[11])
        assert following.step() == 10
    assert_equal(index, url)


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE mentions",
        "TRUNCATE chunks, mentions, statements",
        "ALTER TABLE chunks ALTER COLUMN title TYPE varchar(40) USING upper(title)",
        "ALTER TABLE chunks DROP COLUMN noise; UPDATE chunks SET title = 'x' WHERE id = 1",
        "ALTER TABLE chunks ADD COLUMN more int DEFAULT 3",
    ],
)
def test_truncated_and_altered_tables_are_read_anew(database, index, statement):
    url, connection = database
    with follower(index, url) as following:
        connection.execute(statement)
        following.step()
        assert_equal(index, url)
        assert Index.open(index).generation == 2
        connection.execute("INSERT INTO chunks (id, body, embedding, year) VALUES (9, 'after', '[1,1,1,1]', 1)")
        assert following.step() is not None
        assert following.step() is None
    assert_equal(index, url)


def test_a_change_of_columns_that_breaks_a_query_is_reported_and_can_be_mended(database, index):
    url, connection = database
    with follower(index, url) as following:
        connection.execute("ALTER TABLE chunks RENAME COLUMN body TO words; UPDATE chunks SET title = 'x' WHERE id = 1")
        with refused(InputError, "failed", "passages"):
            following.step()
        connection.execute("ALTER TABLE chunks RENAME COLUMN words TO body")
        assert following.step() is not None
    assert_equal(index, url)


def test_long_values_that_were_not_changed_are_kept(database, index):
    url, connection = database
    rng = np.random.default_rng(3)
    long = "".join(chr(c) for c in rng.integers(0x4E00, 0x9FFF, 20_000))  # does not compress: kept outside the row
    with follower(index, url) as following:
        connection.execute("UPDATE chunks SET body = %s WHERE id = 1", (long,))
        following.step()
        connection.execute("UPDATE chunks SET year = 5 WHERE id = 1")
        following.step()
        assert Index.open(index).texts[Index.open(index).row_of(1)] == long
        assert_equal(index, url)


@pytest.mark.parametrize(
    ("bad", "mend", "failure"),
    [
        (
            "ALTER TABLE chunks ALTER COLUMN embedding TYPE vector; UPDATE chunks SET embedding = '[1,2]' WHERE id = 3",
            "UPDATE chunks SET embedding = '[1,2,0,0]' WHERE id = 3",
            ("passages", 3, "has 2 components"),
        ),
        (
            "UPDATE chunks SET embedding = NULL WHERE id = 3",
            "DELETE FROM mentions WHERE chunk = 3; DELETE FROM chunks WHERE id = 3",
            ("passages", 3, "'embedding' is missing"),
        ),
        (
            "UPDATE chunks SET embedding = '[1e30,1e30,1e30,1e30]' WHERE id = 3",
            "UPDATE chunks SET embedding = '[1,2,3,4]' WHERE id = 3",
            ("passages", 3, "too large"),
        ),
        (
            "INSERT INTO mentions VALUES (55, 'Ada')",
            "INSERT INTO chunks VALUES (55, '', 'fifty-five', '[1,2,3,4]')",
            ("edges", (("type", "context"), ("src_passage", 55), ("dst_entity", "Ada")), "the id of a passage"),
        ),
        (
            "INSERT INTO statements (head, relation, tail, chunk) VALUES ('Ada', 'knew', 'Nobody', 1)",
            "DELETE FROM statements WHERE tail = 'Nobody'",
            (
                "facts",
                (("relation", "knew"), ("passage", 1), ("head", "Ada"), ("tail", "Nobody")),
                "the name of an entity",
            ),
        ),
        (
            "INSERT INTO mentions VALUES (4, 'Babbage', -1)",
            "UPDATE mentions SET weight = 1 WHERE weight < 0",
            ("edges", (("type", "context"), ("src_passage", 4), ("dst_entity", "Babbage")), "a finite number"),
        ),
    ],
)
def test_a_row_that_the_index_cannot_have_is_left_out_until_it_is_mended(database, index, bad, mend, failure):
    url, connection = database
    table, key, said = failure
    with follower(index, url) as following:
        connection.execute(bad)
        connection.execute("INSERT INTO chunks VALUES (56, '', 'beside', '[1,2,3,4]')")
        following.step()
        lacking = LeftOut(100)
        expected = Index.build(source(url), left_out=lacking)
        assert state_of(Index.open(index, verify="full")) == state_of(expected)
        assert 56 in list(Index.open(index).passage_ids)
        (found,) = [one for one in following.failures if one.table == table]
        assert (found.key, found.lacks) == (key, "row")
        assert said in found.reason
        assert len(following.failures) == len(lacking.rows)
        assert failures_of(Index.open(index)) == following.failures
    with follower(index, url) as following:
        assert following.step() is None
        assert found in following.failures
        connection.execute(mend)
        following.step()
        assert following.failures == []
    assert_equal(index, url)


def test_a_share_of_lacking_rows_ends_a_step_and_they_are_read_again(database, index):
    url, connection = database
    with follower(index, url, skip_failed=20) as following:
        connection.execute("UPDATE chunks SET embedding = NULL WHERE id < 3")
        for _ in range(2):
            with refused(InputError, "limit", "skip_failed", given=3, allowed=20.0):
                following.step()
        assert Index.open(index).seq == 0
        connection.execute("UPDATE chunks SET embedding = '[1,2,3,4]' WHERE id < 2")
        assert following.step() == 1
        assert [one.key for one in following.failures] == [2]
        connection.execute("DELETE FROM mentions WHERE chunk = 2; DELETE FROM statements WHERE chunk = 2")
        connection.execute("DELETE FROM chunks WHERE id = 2")
        following.step()
        assert following.failures == []
    assert_equal(index, url)


def test_a_missing_or_lost_slot_is_reported(database, index, slot, server):
    url, connection = database
    connection.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
    with refused(StoreError, "missing", "slot", given=slot):
        follower(index, url)
    connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (slot,))
    with refused(StoreError, "changed", "slot"):
        follower(index, url)
    connection.execute(f"DROP PUBLICATION {slot}")
    with refused(StoreError, "missing", "slot", given=slot):
        follower(index, url)


def test_a_slot_with_too_little_history_is_reported(database, index, slot, server):
    url, connection = database
    connection.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
    connection.execute("SELECT pg_reload_conf()")
    try:
        for _ in range(4):
            connection.execute("CREATE TABLE filler AS SELECT repeat(i::text, 100) FROM generate_series(1, 50000) i")
            connection.execute("DROP TABLE filler")
            connection.execute("SELECT pg_switch_wal()")
        connection.execute("CHECKPOINT")
        with refused(StoreError, "changed", "slot", given=slot):
            follower(index, url)
    finally:
        connection.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
        connection.execute("SELECT pg_reload_conf()")


def test_a_lost_connection_is_opened_again(database, index, server):
    url, connection = database
    stop, commits, waits = threading.Event(), list[int](), list[StoreError]()
    with follower(index, url) as following:
        thread = threading.Thread(
            target=following.run,
            args=(stop,),
            kwargs={"poll": 0.02, "on_commit": commits.append, "on_wait": lambda error, s: waits.append(error)},
        )
        thread.start()
        for id in (200, 201):
            connection.execute("INSERT INTO chunks VALUES (%s, '', 'new', '[1,2,3,4]')", (id,))
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = "
                "current_database()"
            )
        until = time.monotonic() + 30
        while not (waits and 201 in set(Index.open(index).passage_ids)) and time.monotonic() < until:
            time.sleep(0.02)
        stop.set()
        thread.join()
    assert waits
    assert {type(wait) for wait in waits} == {TransientError}
    assert commits == sorted(set(commits))
    assert_equal(index, url)


def test_a_step_says_that_its_connection_is_lost_and_the_next_one_opens_another(database, index, server):
    url, connection = database
    with follower(index, url) as following:
        assert following.step() is None
        add_chunk(connection, 200)
        connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = "
            "current_database()"
        )
        with refused(TransientError, "connection", "slot"):
            following.step()
        assert following.step() is not None
    assert_equal(index, url)


def test_a_slot_that_another_reader_holds_is_waited_for(database, index, slot):
    from psycopg import pq

    url, connection = database
    stop, waits = threading.Event(), list[StoreError]()
    with follower(index, url) as following:
        reader = pq.PGconn.connect(f"{url}{'&' if '?' in url else '?'}replication=database".encode())
        options = f"proto_version '1', publication_names '{slot}'"
        started = reader.exec_(f"START_REPLICATION SLOT {slot} LOGICAL 0/0 ({options})".encode())
        assert started.status == pq.ExecStatus.COPY_BOTH, reader.error_message
        add_chunk(connection, 300)
        thread = threading.Thread(
            target=following.run,
            args=(stop,),
            kwargs={"poll": 0.02, "on_wait": lambda error, seconds: waits.append(error)},
        )
        thread.start()
        until = time.monotonic() + 600
        while not waits and thread.is_alive() and time.monotonic() < until:
            time.sleep(0.02)
        reader.finish()
        while 300 not in set(Index.open(index).passage_ids) and thread.is_alive() and time.monotonic() < until:
            time.sleep(0.02)
        stop.set()
        thread.join()
    assert type(waits[0]) is TransientError
    assert "is active for PID" in waits[0].values["error"]
    assert_equal(index, url)


def test_an_index_built_anew_keeps_the_encoder_of_its_vectors(database, slot, tmp_path):
    from hopfuse.stores.postgres import followed

    url, connection = database
    make_tables(connection)
    encoder = EncoderInfo("letters", 4, False)
    with followed(source(url), slot, lambda rows: Index.build(rows, encoder=encoder)) as built:
        built.save(tmp_path / "index")
    with follower(tmp_path / "index", url) as following:
        connection.execute("TRUNCATE mentions")
        following.step()
    index = Index.open(tmp_path / "index")
    assert (index.generation, index.encoder) == (2, encoder)


def test_a_table_that_cannot_be_followed_is_refused_with_the_fix(database, tmp_path):
    url, connection = database
    make_tables(connection)
    for queries, error in (
        (
            {"passages": "SELECT id + 1 AS id, body AS text, embedding FROM chunks"},
            ("unsupported", "passages", {"column": "id"}),
        ),
        (
            {"facts": "SELECT head, relation, tail, c.id AS passage FROM statements s JOIN chunks c ON c.id = s.chunk"},
            ("unsupported", "facts"),
        ),
        ({"edges": ["SELECT head AS src_entity, tail AS dst_entity FROM statements"]}, ("missing", "edges")),
        (
            {"passages": "SELECT year AS id, body AS text FROM chunks"},
            ("unsupported", "passages", {"relation": "chunks", "columns": "year"}),
        ),
    ):
        with refused(InputError, *error):
            build(url, tmp_path / "index", "refused_slot", **queries)
    with refused(InputError, "syntax", "slot", given="Bad Name"):
        build(url, tmp_path / "index", "Bad Name")
    connection.execute("UPDATE chunks SET embedding = NULL WHERE id = 1")
    with refused(InputError, "missing", "embedding", column="embedding"):
        build(url, tmp_path / "index", "refused_slot")
    assert connection.execute(
        "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'refused_slot'"
    ).fetchone() == (0,)
    assert connection.execute("SELECT count(*) FROM pg_publication").fetchone() == (0,)
    assert not (tmp_path / "index").exists()
    Index.build(source(url, passages="SELECT id, body AS text FROM chunks")).save(tmp_path / "plain")
    with refused(InputError, "unsupported", "directory"):
        follower(tmp_path / "plain", url)
    Index.build(passages=[{"text": "x"}]).with_source("{}").save(tmp_path / "other")
    with refused(InputError, "version", "directory"):
        follower(tmp_path / "other", url)


def test_the_program_builds_follows_and_drops(database, tmp_path, slot):
    url, connection = database
    make_tables(connection)
    index = tmp_path / "index"
    queries = [f"--{table}={QUERIES[table]}" for table in ("passages", "entities", "facts")]
    queries += [f"--edges={text}" for text in QUERIES["edges"]]
    hopfuse("build", "--from", url, *queries, "--slot", slot, "--lexical", "--out", index)
    add_chunk(connection, 30, "a row that is found within a second")
    assert "The index is at seq 1" in hopfuse("follow", index, "--from", url, "--once").stderr
    assert "Nothing has changed" in hopfuse("follow", index, "--from", url, "--once").stderr
    error = refused_command("build", "--from", url, *queries, "--slot", slot, "--out", tmp_path / "other")
    assert error == about("exists", "slot", given=slot)
    command = [sys.executable, "-m", "hopfuse", "follow", str(index), "--from", url]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert "Following from" in process.stderr.readline()
        reader = Index.open(index, live=True)
        waits = []
        for id in range(40, 45):
            add_chunk(connection, id, f"fresh {id}")
            begin = time.monotonic()
            while id not in set(reader.refresh().passage_ids) and time.monotonic() < begin + 20:
                time.sleep(0.01)
            waits.append(time.monotonic() - begin)
        connection.execute("TRUNCATE statements")
        while len(reader.refresh().facts) and time.monotonic() < begin + 40:
            time.sleep(0.01)
        print("committed rows are read after", [round(wait, 3) for wait in waits])
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    assert_equal(index, url)
    assert "fresh" in Index.open(index).lexical.terms
    assert f"Dropped the slot and the publication {slot}" in hopfuse("follow", index, "--from", url, "--drop").stderr
    assert connection.execute("SELECT count(*) FROM pg_replication_slots WHERE slot_name = %s", (slot,)).fetchone() == (
        0,
    )


def test_a_full_disk_leaves_the_index_and_the_next_step_goes_on(database, index):
    url, connection = database
    with follower(index, url) as following:
        following.step()
        connection.execute("UPDATE chunks SET body = repeat('long ', 100000) WHERE id = 1")
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 17, limit[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                following.step()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert Index.open(index, verify="full").seq == 0
        assert following.step() == 1
    assert_equal(index, url)


def test_a_notification_ends_a_wait_early(database, index, slot):
    url, connection = database
    stop, commits = threading.Event(), list[float]()
    with follower(index, url) as following:
        thread = threading.Thread(
            target=following.run, args=(stop,), kwargs={"poll": 120.0, "on_commit": lambda seq: commits.append(seq)}
        )
        thread.start()
        time.sleep(1.0)
        add_chunk(connection, 60)
        begin = time.monotonic()
        while not commits and time.monotonic() < begin + 60:
            connection.execute(f"NOTIFY {slot}")
            time.sleep(0.05)
        waited = time.monotonic() - begin
        stop.set()
        connection.execute(f"NOTIFY {slot}")
        thread.join()
    assert commits == [1]
    assert waited < 60
    assert_equal(index, url)
