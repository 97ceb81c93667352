"""Which entities a user stated and which a reader made, and the rule under which texts were read."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import FormatError, InputError
from hopfuse.extract import EntityLinker, Extraction, build_memory
from hopfuse.index import WordInfo
from hopfuse.text import NAME_RULE, RULE
from index.index_files import forged, full_index, term_matrix
from index.live_model import differences
from index.log_files import decode, encode, read_log
from index.test_index_damage import _poke, rewritten
from index.test_log import ARRAYS, history_of, index_folder
from refusals import refused

PASSAGES = [{"id": "a", "text": "Ada met Byron."}, {"id": "b", "text": "Byron wrote."}]


def memory(*extractions: Extraction) -> Any:
    return build_memory(extractions)


def stated(index: hf.Index) -> dict[str, bool]:
    return dict(zip(index.entity_names, index.stated.tolist(), strict=True))


@pytest.fixture
def read(tmp_path: Path) -> Path:
    """An index of two names that a reader found."""
    found = Extraction("a", "", "Ada met Byron.", ("Ada", "Byron"), (("Ada", "met", "Byron"),))
    memory(found).index().save(tmp_path)
    return tmp_path


def test_what_is_given_is_stated_and_what_is_read_is_not(tmp_path: Path) -> None:
    given = hf.Index.build(passages=PASSAGES, entities=["Ada", "Byron"])
    assert stated(given) == {"Ada": True, "Byron": True}
    assert "entity.stated" not in given.sections
    assert hf.Index.build(passages=PASSAGES, graph=[{"src": 0, "dst": 2}]).stated.tolist() == [True]
    assert stated(memory(Extraction("a", "", "", ("Ada",))).index()) == {"Ada": False}
    rows = [{"name": "Ada", "stated": False}, {"name": "Byron"}, {"name": "Babbage", "stated": True}]
    index = hf.Index.build(passages=PASSAGES, entities=rows)
    assert stated(index) == {"Ada": False, "Byron": True, "Babbage": True}
    assert (index.info()["num_entities"], index.info()["num_stated"]) == (3, 2)
    (tmp_path / "e.tsv").write_text("name\tstated\nAda\tfalse\nByron\t\nBabbage\tTrue\n", encoding="utf-8")
    assert differences(hf.Index.build(passages=PASSAGES, entities=tmp_path / "e.tsv"), index) == []
    for wrong in (1, "no", []):
        with pytest.raises(InputError):
            hf.Index.build(passages=PASSAGES, entities=[{"name": "Ada", "stated": wrong}])


def test_stated_wins_whichever_comes_first(read: Path) -> None:
    with hf.Index.open(read, writable=True) as live:
        with live.change() as change:
            change.add_entities(["Byron", "Lord"], missing=True)
            change.add_entities(["engine"], stated=False)
            change.add_entities(["engine"], missing=True)
        assert live.history()[0]["counts"] == {"entities": 2, "stated entities": 1}
        assert stated(live.refresh()) == {"Ada": False, "Byron": True, "Lord": True, "engine": True}
        with live.change() as change:
            change.add_passages([{"id": "b", "text": "Lord Byron and Ada wrote."}])
            change.add_memory(memory(Extraction("b", "", "Lord Byron and Ada wrote.", ("Lord", "Ada", "Clare"))))
        expected = {"Ada": False, "Byron": True, "Lord": True, "engine": True, "Clare": False}
        assert stated(live.refresh()) == expected
        before = live.seq
        with live.change() as change:
            change.add_entities(["Byron"], missing=True)  # it is stated already
            change.add_entities(["Ada"], missing=True, stated=False)
        assert change.seq == before
        live.compact()
        assert stated(live.refresh()) == expected
    assert stated(hf.Index.open(read, verify="full")) == expected


@pytest.mark.parametrize("way", ["edge", "fact", "alias"])
def test_a_change_states_what_it_names(way: str, read: Path) -> None:
    with hf.Index.open(read, writable=True) as live:
        with live.change() as change:
            if way == "edge":
                change.add_edges([{"src": ("entity", "Ada"), "dst": ("passage", "a")}])
            elif way == "fact":
                change.add_facts([("Ada", "knew", "Ada", "a")])
            else:
                change.add_aliases({"Ada": ["Countess"]})
        assert stated(live.refresh()) == {"Ada": True, "Byron": False}
        with live.change() as change:
            change.delete_entities(["Ada"])
            change.add_entities(["Ada"], stated=False)
        assert stated(live.refresh()) == {"Byron": False, "Ada": False}
        with live.change() as change:
            change.delete_entities(["Ada", "Byron"])
        assert "entity.stated" not in live.refresh().sections


def test_a_part_keeps_the_bits(read: Path) -> None:
    with hf.Index.open(read, writable=True) as live:
        with live.change() as change:
            change.add_entities(["Ada"], missing=True)
            change.add_entities(["Lord"])
        part = live.refresh().part(np.array([True])).index
    assert stated(part) == {"Ada": True, "Byron": False}


def test_batches_after_a_compaction_state_the_moved_entities(read: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that comes while a compaction writes its generation has the slots of that generation afterwards."""
    original, states = os.fsync, list[Any]()

    def sync(descriptor: int) -> None:
        original(descriptor)
        if states and threading.current_thread() is not threading.main_thread():
            thread = threading.Thread(target=states.pop())
            thread.start()
            thread.join()

    with hf.Index.open(read, writable=True) as live:
        with live.change() as change:
            change.add_entities(["Clare", "Dora", "Eve"], stated=False)
        with live.change() as change:
            change.delete_entities(["Ada", "Dora"])

        def state() -> None:
            with live.change() as change:
                change.add_entities(["Eve", "Byron"], missing=True)

        states.append(state)
        monkeypatch.setattr(os, "fsync", sync)
        assert (live.compact(), states) == (2, [])
        expected = {"Byron": True, "Clare": False, "Eve": True}
        assert stated(live.refresh()) == expected
    batches = list(read_log(read / "log-000000000002.hopfuse"))
    assert [(batch.seq, decode(batch.payload)["stated.entity"].tolist()) for batch in batches] == [(3, [0, 2])]
    assert stated(hf.Index.open(read, verify="full")) == expected


@pytest.mark.parametrize("value", [2, 255])
def test_a_bit_is_0_or_1(value: int, tmp_path: Path) -> None:
    full_index().save(tmp_path)
    forged(tmp_path, _poke("entity.stated", 2, value))
    with refused(FormatError, "range", "stated", last=1):
        _ = hf.Index.open(tmp_path).stated
    with pytest.raises(FormatError):
        hf.Index.open(tmp_path, verify="full")


PASSAGE = {
    "passage.length": np.ones(1, np.int32),
    "passage.id.number": np.array([5], np.int64),
    **{f"passage.{name}.offsets": np.zeros(2, np.int64) for name in ("title", "text")},
    **{f"passage.{name}.bytes": np.zeros(0, np.uint8) for name in ("title", "text")},
}
LABELLED = PASSAGE | {"passage.document": np.zeros(1, np.int32), "document.number": np.array([3], np.int64)}
TAGGED = PASSAGE | {
    "passage.language": np.zeros(1, np.int32),
    "language.tag.offsets": np.array([0, 2], np.int64),
    "language.tag.bytes": np.frombuffer(b"en", np.uint8),
}
ENTITY = {
    "entity.word": np.zeros(1, np.uint8),
    "entity.name.offsets": np.array([0, 1], np.int64),
    "entity.name.bytes": np.array([97], np.uint8),
}


@pytest.mark.parametrize("arrays", [LABELLED, TAGGED, ENTITY | {"entity.stated": np.zeros(1, np.uint8)}])
def test_a_batch_that_can_be_is_read(tmp_path: Path, arrays: dict[str, Any]) -> None:
    assert len(history_of(index_folder(tmp_path), encode(ARRAYS | arrays))) == 1


@pytest.mark.parametrize(
    "arrays",
    [
        LABELLED | {"passage.document": np.array([1], np.int32)},
        LABELLED | {"passage.document": np.array([-2], np.int32)},
        LABELLED | {"passage.document": np.zeros(2, np.int32)},
        LABELLED | {"passage.document": None},
        LABELLED | {"document.number": None},
        LABELLED | {"document.name.offsets": np.zeros(1, np.int64), "document.name.bytes": np.zeros(0, np.uint8)},
        TAGGED | {"passage.language": np.array([1], np.int32)},
        TAGGED | {"passage.language": None},
        TAGGED | {"language.tag.bytes": np.zeros(1, np.uint8)},
        ENTITY | {"entity.stated": np.array([2], np.uint8)},
        ENTITY | {"entity.stated": np.array([1, 1], np.uint8)},
        {"stated.entity": np.array([2], np.int64)},
        {"stated.entity": np.array([-1], np.int64)},
    ],
)
def test_a_batch_that_cannot_be_is_refused(tmp_path: Path, arrays: dict[str, Any]) -> None:
    whole = {name: array for name, array in (ARRAYS | arrays).items() if array is not None}
    with pytest.raises(FormatError):
        history_of(index_folder(tmp_path), encode(whole))


# ---- Reading rules ----


def test_a_rule_is_stored_with_what_was_read_under_it(tmp_path: Path) -> None:
    full_index().save(tmp_path)
    index = hf.Index.open(tmp_path, verify="full")
    assert index.words is not None
    assert index.lexical is not None
    assert (index.name_rule, index.words.rule, index.lexical.rule) == (NAME_RULE, RULE, RULE)
    info = index.info()
    assert (info["name_rule"], info["words"]["rule"], info["lexical"]["rule"]) == (NAME_RULE, RULE, RULE)
    for make in (lambda: WordInfo(0, rule=RULE + 1), lambda: term_matrix(rule=0), lambda: WordInfo(0, rule=True)):
        with refused(InputError, "version", "rule"):
            make()


@pytest.mark.parametrize("rule", [0, RULE + 1, -1, 2**40])
def test_an_unknown_rule_is_refused_where_texts_would_be_read(rule: int, tmp_path: Path) -> None:
    for name in ("entity", "word", "lexical"):
        full_index().save(tmp_path / name)
        forged(tmp_path / name, _poke(f"{name}.rule", 0, rule))
        with refused(FormatError, "version", "rule", given=rule):
            hf.Index.open(tmp_path / name, verify="full")
        index = hf.Index.open(tmp_path / name)
        assert list(index.titles)[1] == ""
        with refused(FormatError, "version", "rule", given=rule):
            _ = EntityLinker(index) if name == "entity" else index.words if name == "word" else index.lexical
    with hf.Index.open(tmp_path / "entity", writable=True) as live:
        change = live.change()
        change.add_entities(["new"], vectors=np.ones((1, 2)))
        with refused(FormatError, "version", "rule", given=rule):
            change.commit()


def test_an_index_without_these_sections_is_as_before(tmp_path: Path) -> None:
    counts = np.array([1, 2, 1, 3], np.int32)
    full_index(parts=()).with_lexical(term_matrix(counts=counts, stemmer=None)).save(tmp_path)
    absent = ["passage.document", "passage.language", "entity.stated", "entity.rule", "word.rule", "lexical.rule"]
    absent += [f"{name}.{part}" for name in ("document.name", "language.tag") for part in ("offsets", "bytes")]
    rewritten(tmp_path, **dict.fromkeys(absent))
    index = hf.Index.open(tmp_path, verify="full")
    assert list(index.documents) == list(index.languages) == [None] * 3
    assert index.stated.all()
    assert index.words is not None
    assert index.lexical is not None
    assert (index.name_rule, index.words.rule, index.lexical.rule) == (1, 1, 1)
    with hf.Index.open(tmp_path, writable=True) as live:
        with live.change() as change:
            change.add_entities(["new"], vectors=np.ones((1, 2)), stated=False)
        assert live.refresh().stated.tolist() == [True, True, False, True, True]
