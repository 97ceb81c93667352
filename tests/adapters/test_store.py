"""The store behind those of the frameworks: passages are found right after an add, here and on a server."""

from __future__ import annotations

import copy
import sys
from concurrent.futures import ThreadPoolExecutor

import hopfuse as hf
import processes
import pytest
from adapters.memories import add_elsewhere, check_reads_its_writes, turn
from hopfuse.adapters.searcher import as_searcher
from hopfuse.adapters.store import open_store
from hopfuse.encoders import ArrayEncoder
from hopfuse.errors import FormatError, InputError
from refusals import refused

pytest.importorskip("ahocorasick", reason="names in questions are found by pyahocorasick (extra text)")
pytest.importorskip("bm25s", reason="an index of words has BM25 (extra text)")

TYPES = {"metadata_types": {"user": "string", "number": "int64"}}
ROWS = [{"id": "a", "text": "A road."}, {"id": "b", "text": "A river.", "document": "map"}]


def check_fresh(store, count):
    def add(id, text, metadata):
        assert store.add([{"id": id, "text": text, "metadata": metadata}]) == [id]

    def ask(question):
        return [hit.id for hit in store.searcher.search([question], k=4)[0]]

    check_reads_its_writes(add, ask, lambda id: store.delete([id]), count=count)


@pytest.mark.parametrize("encoder", [None, "wordllama:64"])
def test_a_passage_is_found_right_after_its_add(tmp_path, encoder):
    if encoder is not None:
        pytest.importorskip("wordllama")
    store = open_store(tmp_path / "new" / "memory", encoder=encoder, create=TYPES)
    assert (store.count(), store.matching(), store.count({"user": "a"})) == (0, [], 0)
    count = 200 if encoder is None else 60
    check_fresh(store, count)
    assert (store.count(), store.count({"user": "b"})) == (0.9 * count, 0.4 * count)
    assert len(store.matching({"number__lt": 10})) == 9
    assert store.searcher.search([turn(3)[3]], k=1, allow={"user": "b"})[0][0].id == "turn 3"
    others = store.searcher.search([turn(3)[3], "courier"], k=9, allow={"user": "a"})
    assert "turn 3" not in [hit.id for hits in others for hit in hits]
    assert (store.delete(["turn 3", "no", "turn 3"]), store.delete_all({"user": "b"})) == (1, 0.4 * count - 1)
    assert (store.count(), store.delete_all(), store.count()) == (count // 2, count // 2, 0)
    assert copy.deepcopy(store) is store
    assert as_searcher(store) is store.searcher


def test_a_passage_is_found_right_after_its_add_to_a_server(writable_url):
    store = open_store(writable_url)
    check_fresh(store, 20)
    assert (store.count(), len(store.matching()), store.delete(["turn 3", "no"])) == (18, 18, 1)
    assert [one.text for one in store.read(["no", "turn 2"])] == [turn(2)[1]]
    assert store.add([{"id": "turn 2", "text": "new", "vector": [1.0]}, {"id": "x", "text": "one"}], "skip") == ["x"]
    with refused(InputError, "duplicate", "id", given="x"):
        store.add([{"id": "y", "text": "two"}, {"id": "x", "text": "one"}], "refuse")
    assert [one.id for one in store.read(["y", "x"])] == ["x"]
    for call in (store.matching, store.count):
        with refused(InputError, "unsupported", "allow"):
            call({"user": "a"})
    with refused(InputError, "unsupported", "allow"):
        store.delete_all(~hf.where(user="a"))
    store.add([{"id": "z", "text": "two", "document": "map"}])
    assert store.ids_of(["map", "no"]) == ["z"]
    assert (store.delete_all(hf.where(user="a", number__lt=8)), store.delete_all({"user": "c"})) == (4, 0)
    assert (store.count(), store.delete_all(), store.count()) == (15, 15, 0)
    store.close()


def test_what_is_done_with_passages_that_exist(tmp_path):
    store = open_store(tmp_path / "memory")
    assert store.add([*ROWS, {"id": "a", "text": "The sea."}], "skip") == ["a", "b"]
    assert store.read(["b", "no", "a"]) == [("b", "", "A river.", "map", {}), ("a", "", "A road.", None, {})]
    assert store.add([{"id": "a", "text": "A bay."}, {"id": "c", "text": "A ford."}], "skip") == ["c"]
    assert store.add([{"id": "a", "text": "A bay."}, {"id": "a", "text": "A lake."}]) == ["a"]
    assert [one.text for one in store.matching()] == ["A river.", "A ford.", "A lake."]
    for rows in ([{"id": "d", "text": "one"}] * 2, [{"id": "d", "text": "one"}, {"id": "b", "text": "two"}]):
        with refused(InputError, "duplicate", "id"):
            store.add(rows, "refuse")
    assert (store.count(), store.ids_of(["map", "no"]), store.ids_of([])) == (3, ["b"], [])
    assert store.searcher.search(["lake"], k=1)[0][0].id == "a"
    with refused(InputError, "type", "rows[0]", given="str"):
        store.add(["text"])


def test_vectors_that_all_rows_have_are_used(tmp_path):
    encoder = ArrayEncoder(2, passages={"A road.": [1.0, 0.0], "A river.": [0.0, 1.0]}, name="mine")
    rows = [row | {"vector": [0.5, 0.5]} for row in ROWS]
    for name, given in (("all", rows), ("some", [rows[0], ROWS[1]])):
        open_store(tmp_path / name, encoder=encoder).add(given)
    vectors = [hf.Index.open(tmp_path / name).vectors.tolist() for name in ("all", "some")]
    assert vectors == [[[0.5, 0.5]] * 2, [[1.0, 0.0], [0.0, 1.0]]]
    store = open_store(tmp_path / "none")
    store.add(rows)
    assert hf.Index.open(tmp_path / "none").dim is None


def test_the_stores_of_a_process_share_a_folder(tmp_path):
    first, second = open_store(tmp_path / "memory"), open_store(str(tmp_path / "memory"))
    with ThreadPoolExecutor(4) as pool:
        added = [
            pool.submit(store.add, [{"id": f"{name} {at}", "text": f"{name}{at} is here"}])
            for at in range(20)
            for name, store in (("one", first), ("two", second))
        ]
    assert all(one.result() for one in added)
    assert first.count() == second.count() == 40
    first.close()
    with refused(InputError, "denied"):
        first.add(ROWS)
    second.close()
    id, question = add_elsewhere(tmp_path / "memory", 0)
    assert first.searcher.search([question], at_least="latest")[0][0].id == id
    with hf.Index.open(tmp_path / "memory", writable=True) as live:
        with refused(InputError, "busy", "directory"):
            open_store(tmp_path / "memory")
        over = open_store(live)
        over.add([{"id": "d", "text": "A bay."}])
        assert first.searcher.search(["bay"])[0][0].id == "d"
    with refused(InputError, "denied"):
        open_store(hf.Index.open(tmp_path / "memory", live=True))
    with refused(InputError, "type", "source", given="int"):
        open_store(3)


def test_an_index_that_exists_is_opened_with_its_encoder_and_its_ids(tmp_path):
    hf.Index.build([{"id": 7, "text": "A road."}, {"id": 8, "text": "A river."}]).save(tmp_path / "numbers")
    store = open_store(tmp_path / "numbers")
    assert ([one.id for one in store.read(["7", "x", 9])], store.delete(["8", "x"])) == ([7], 1)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with refused(FormatError, "missing"):
        open_store(tmp_path / "other")
    assert [one.name for one in (tmp_path / "other").iterdir()] == ["notes.txt"]
    pytest.importorskip("wordllama")
    hf.Index.build([], encoder="wordllama:64").save(tmp_path / "encoded")
    store = open_store(tmp_path / "encoded")
    store.add(ROWS)
    assert (store.searcher.search(["river"])[0][0].id, hf.Index.open(tmp_path / "encoded").dim) == ("b", 64)


MAKE = """
import sys
from hopfuse.adapters.store import open_store
from hopfuse.errors import InputError
while True:
    try:
        store = open_store(sys.argv[1])
        break
    except InputError as error:
        assert error.code == "busy"
store.add([{"id": sys.argv[2], "text": "one"}])
"""


def test_processes_that_make_the_same_index_lose_nothing(tmp_path):
    names = ["a", "b"]
    command = [sys.executable, "-c", MAKE, str(tmp_path / "memory")]
    running = [processes.Popen([*command, name]) for name in names]
    assert [one.wait(timeout=600) for one in running] == [0, 0]
    assert sorted(hf.Index.open(tmp_path / "memory").passage_ids) == names
    assert [one.name for one in tmp_path.iterdir()] == ["memory"]
