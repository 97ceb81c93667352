"""Documents and languages of passages, on each way into an index and through everything that changes one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import FormatError, InputError
from hopfuse.extract import Extraction, WordReader, build_memory, read_openie
from hopfuse.index import LabelColumn
from index.index_files import forged, full_index
from index.live_model import differences
from index.test_index_damage import _poke, rewritten
from refusals import refused

DOCUMENTS = ["report", None, "log", "report"]
NUMBERS = [7, None, -7, 7]
LANGUAGES = ["en", "zh-hant", None, "EN"]
TAGS = ["en", "zh-Hant", None, "en"]


def rows(documents: list[Any] = DOCUMENTS) -> list[dict[str, Any]]:
    labels = zip(documents, LANGUAGES, strict=True)
    return [
        {"id": f"p{at}", "title": "", "text": f"text {at}", "document": document, "language": language}
        for at, (document, language) in enumerate(labels)
    ]


def labels_of(index: hf.Index) -> tuple[list[Any], list[Any]]:
    return list(index.documents), list(index.languages)


# ---- Ways in ----


@pytest.mark.parametrize("documents", [DOCUMENTS, NUMBERS], ids=["strings", "integers"])
def test_each_way_in_keeps_them(documents: list[Any], tmp_path: Path) -> None:
    given = rows(documents)
    index = hf.Index.build(passages=given)
    assert labels_of(index) == (documents, TAGS)
    assert labels_of(hf.Index.from_texts(given)) == (documents, TAGS)
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, given)), encoding="utf-8")
    assert differences(hf.Index.build(passages=tmp_path / "p.jsonl"), index) == []
    memory = build_memory(Extraction(**row) for row in given)
    assert labels_of(memory.index()) == (documents, TAGS)
    saved = hf.Index.build(passages=[{"id": "x", "text": ""}]).save(tmp_path / "live")
    assert saved == 1
    with hf.Index.open(tmp_path / "live", writable=True) as live:
        for part in (given[:1], given[1:]):
            with live.change() as change:
                change.add_passages(part)
        assert labels_of(live.refresh()) == ([None, *documents], [None, *TAGS])
        with live.change() as change:
            change.delete_passages(["x"])
        assert differences(live.refresh(), index) == []
        live.compact()
    assert differences(hf.Index.open(tmp_path / "live", verify="full"), index) == []


def test_text_files_have_strings(tmp_path: Path) -> None:
    lines = ["id\ttext\tdocument\tlanguage", *(f"p{at}\ttext {at}\t{at}\ten" for at in range(2)), "p2\ttext\t\t"]
    (tmp_path / "p.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert labels_of(hf.Index.build(passages=tmp_path / "p.tsv")) == (["0", "1", None], ["en", "en", None])


@pytest.mark.parametrize("documents", [DOCUMENTS, NUMBERS], ids=["strings", "integers"])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_arrow_gives_the_index_of_files(documents: list[Any], size: int, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="Arrow tables need pyarrow (extra arrow)")
    table, wanted = pa.Table.from_pylist(rows(documents)), hf.Index.build(passages=rows(documents))
    assert differences(hf.Index.build(passages=table), wanted) == []
    source = hf.stores.ArrowSource(passages=table.to_batches(max_chunksize=size))
    assert differences(hf.Index.build(source), wanted) == []
    coded = table.set_column(3, "document", table["document"].combine_chunks().dictionary_encode())
    assert documents is NUMBERS or differences(hf.Index.build(hf.stores.ArrowSource(passages=coded)), wanted) == []
    for name, bad in (("language", "English"), ("document", 0.5)):
        table = pa.table({"id": ["a", "b"], "text": ["", ""], name: pa.array([None, bad])})
        with pytest.raises(InputError):
            hf.Index.build(hf.stores.ArrowSource(passages=table))
    kinds = [pa.table({"id": [f"{one}"], "text": [""], "document": [one]}) for one in ("a", 1)]
    with pytest.raises(InputError):
        hf.Index.build(hf.stores.ArrowSource(passages=kinds))


def test_a_store_that_is_followed_gives_the_index_of_its_rows(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="Arrow tables need pyarrow (extra arrow)")
    from hopfuse.stores.applying import KnownRows, RowChanges, TouchedKeys, apply_changes

    hf.Index.build(passages=rows()[:1]).save(tmp_path)
    table = pa.Table.from_pylist(rows())
    with hf.Index.open(tmp_path, writable=True) as live:
        with live.change() as change:
            changes = RowChanges(TouchedKeys(passages=set(table["id"].to_pylist())), table.to_batches(), [], [], [])
            apply_changes(change, KnownRows(live.index), changes)
        assert differences(live.refresh(), hf.Index.build(passages=rows())) == []


def test_readers_keep_them(tmp_path: Path) -> None:
    pytest.importorskip("Stemmer", reason="words need PyStemmer (extra text)")
    assert labels_of(build_memory(WordReader().read(rows())).index()) == (DOCUMENTS, TAGS)
    file = tmp_path / "openie.jsonl"
    file.write_text('{"id": "p0", "entities": ["Ada"], "triples": []}\n', encoding="utf-8")
    memory = build_memory(read_openie(file, rows()))
    assert labels_of(memory.index()) == (DOCUMENTS, TAGS)
    assert memory.sequence.tolist() == [[0, 3]]


def test_rows_that_say_nonsense_are_refused(tmp_path: Path) -> None:
    for wrong in ({"document": 0.5}, {"document": True}, {"language": "English"}, {"language": 3}):
        with pytest.raises(InputError):
            hf.Index.build(passages=[{"text": ""} | wrong])
    with pytest.raises(InputError):
        hf.Index.build(passages=[{"text": "", "document": "a"}, {"text": "", "document": 1}])
    for wrong in ("", "e", "en_US", "en-", 3):
        with refused(InputError, "syntax", "language") if wrong else pytest.raises(AssertionError, match="blank"):
            assert Extraction("a", "", "", language=wrong).language is not None, "blank"
    hf.Index.build(passages=rows()).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        change = live.change()
        change.add_passages([{"id": "a", "text": "", "document": 1}])
        with refused(InputError, "type", "document"):
            change.commit()
        change = live.change()
        change.add_passages([{"id": "a", "text": "", "document": "a"}])
        change.add_passages([{"id": "b", "text": "", "document": 1}])
        with refused(InputError, "type", "document"):
            change.commit()
        with live.change() as change:
            change.add_passages([{"id": "a", "text": "", "document": "a"}])
        assert list(live.refresh().documents) == [*DOCUMENTS, "a"]


@pytest.mark.parametrize(
    ("given", "tag"),
    [
        *(("en", "en"), ("EN-us", "en-US"), ("zh-HANT-tw", "zh-Hant-TW"), ("sl-Rozaj-1994", "sl-rozaj-1994")),
        *(("de-x-GOETHE-ab", "de-x-goethe-AB"), ("en-a-BB", "en-a-bb"), ("und-Latn", None), (" ", None)),
    ],
)
def test_tags_have_one_case(given: str, tag: str | None) -> None:
    assert hf.Index.build(passages=[{"text": "", "language": given}]).languages[0] == tag


# ---- Reading ----


def test_a_column_reads_like_a_list() -> None:
    for documents in (DOCUMENTS, NUMBERS, [None] * 4):
        column = hf.Index.build(passages=rows(documents)).documents
        assert isinstance(column, LabelColumn)
        assert len(column) == 4
        assert [column[at] for at in range(-4, 4)] == [*documents, *documents]
        assert (column[1:], column[::-2]) == (documents[1:], documents[::-2])
        assert (column.codes is None) == (documents == [None] * 4)
        with pytest.raises(IndexError):
            column[4]
    assert repr(column) == "LabelColumn(4 rows, 0 labels)"


def test_info_counts_them() -> None:
    info = hf.Index.build(passages=rows()).info()
    assert (info["documents"], info["languages"]) == (2, ["en", "zh-Hant"])
    plain = hf.Index.build(passages=[{"text": ""}])
    assert (plain.info()["documents"], plain.info()["languages"]) == (0, [])
    assert not {name for name in plain.sections if "document" in name or "language" in name}


@pytest.mark.parametrize("documents", [DOCUMENTS, NUMBERS], ids=["strings", "integers"])
def test_a_part_is_the_index_of_its_rows(documents: list[Any], tmp_path: Path) -> None:
    given = rows(documents)
    hf.Index.build(passages=given).save(tmp_path)
    for index in (hf.Index.build(passages=given), hf.Index.open(tmp_path)):
        for mask in np.ndindex(2, 2, 2, 2):
            kept = [row for row, allowed in zip(given, mask, strict=True) if allowed]
            found, wanted = index.part(np.array(mask, bool)).index, hf.Index.build(passages=kept)
            if kept:  # without passages, ids are integers
                assert differences(found, wanted) == []
            assert labels_of(found) == labels_of(wanted)


def test_an_earlier_snapshot_keeps_its_labels(tmp_path: Path) -> None:
    hf.Index.build(passages=[{"id": "x", "text": ""}]).save(tmp_path)
    states = []
    with hf.Index.open(tmp_path, writable=True) as live:
        for row in rows():
            with live.change() as change:
                change.add_passages([row])
            states.append(live.refresh())
        with live.change() as change:
            change.replace_passages([{"id": "p0", "text": "", "document": "memo"}])
            change.delete_passages(["p3"])
        assert labels_of(live.refresh()) == ([None, None, "log", "memo"], [None, "zh-Hant", None, None])
        assert list(live.index.documents.values) == ["log", "memo"]
    for count, state in enumerate(states, 1):
        assert labels_of(state) == ([None, *DOCUMENTS[:count]], [None, *TAGS[:count]])


# ---- Damage ----


@pytest.mark.parametrize(
    ("section", "at", "value", "is_lazy"),
    [
        *(("passage.document", 0, code, True) for code in (-2, 2, 2**31 - 1)),
        *(("passage.language", 2, code, True) for code in (-2, 2)),
        ("passage.document", 0, -1, False),  # a document of no passage
        ("document.name.bytes", 0, 0xFF, False),
        ("document.name.bytes", slice(0, 7), [0xEE, 0x80, 0x80] * 2 + [0x61], False),  # out of order
        ("document.name.offsets", 1, 2**40, False),
        ("document.name.offsets", 1, -1, False),
        ("language.tag.bytes", 0, ord("E"), False),
        ("language.tag.bytes", 0, ord("_"), False),
        ("language.tag.offsets", 2, 1, False),
    ],
)
def test_forged_labels_are_refused(section: str, at: Any, value: Any, is_lazy: bool, tmp_path: Path) -> None:
    full_index().save(tmp_path)
    forged(tmp_path, _poke(section, at, value))
    with pytest.raises(FormatError):
        hf.Index.open(tmp_path, verify="full")
    index = hf.Index.open(tmp_path)
    assert index.num_passages == 3
    if is_lazy:
        with pytest.raises(FormatError):
            labels_of(index)


@pytest.mark.parametrize(
    ("name", "array", "code"),
    [
        ("passage.document", np.zeros(2, np.int32), "shape"),
        ("passage.document", np.zeros(3, np.int64), "dtype"),
        ("passage.document", None, "missing"),
        ("document.name.bytes", None, "missing"),
        ("document.name.offsets", np.zeros(0, np.int64), "length"),
        ("passage.language", None, "missing"),
        ("passage.language", np.zeros((3, 1), np.int32), "dtype"),
        ("language.tag.offsets", None, "missing"),
        ("entity.stated", np.ones(3, np.uint8), "shape"),
        ("entity.stated", np.ones(4, np.int32), "dtype"),
        *(
            (f"{part}.rule", np.ones(size, np.int64), "shape")
            for part in ("entity", "word", "lexical")
            for size in (0, 2)
        ),
        ("word.first", None, "missing"),
    ],
)
def test_sections_that_do_not_fit_are_refused(name: str, array: np.ndarray | None, code: str, tmp_path: Path) -> None:
    full_index().save(tmp_path)
    with refused(FormatError, code):
        hf.Index.open(rewritten(tmp_path, **{name: array}))
