"""Texts alone are read into an index that is there, as they are when it is built of all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.encoders import ArrayEncoder
from hopfuse.errors import InputError
from hopfuse.extract import Extraction, WordReader, build_memory
from hopfuse.index import WordInfo
from hopfuse.lexical import BM25
from hypothesis import given, settings
from hypothesis import strategies as st
from index.live_model import differences
from refusals import refused

pytest.importorskip("Stemmer", reason="words need PyStemmer (extra text)")
pytest.importorskip("bm25s", reason="the stop words are bm25s's (extra text)")

#: Forms of one word stand together.
FORMS = [["sea"], ["river", "rivers", "Rivers"], ["ant", "ants"], ["flow", "flows", "flowed"], ["Lyon"], ["2"]]
FEWER = settings().max_examples // 4  # each builds, saves, changes and searches
CONSTANT = [forms[0] for forms in FORMS] + ["oak", "elm", "ash"]


def rows_of(texts: list[list[str]]) -> list[dict[str, Any]]:
    return [{"id": f"p{at}", "title": "", "text": " ".join(words)} for at, words in enumerate(texts)]


def built(rows: list[dict[str, Any]]) -> hf.Index:
    """An index by words, with vectors and BM25."""
    index = build_memory(WordReader().read(rows)).index(vectors=vectors_of(rows), metric="cosine")
    return index.with_lexical(BM25.build(index.texts_to_index()).matrix)


def vectors_of(rows: list[dict[str, Any]]) -> np.ndarray:
    return np.array([[len(row["text"]) % 5 + 1, len(row["text"].split()), 1.0] for row in rows], np.float32)


def changed(folder: Path, rows: list[dict[str, Any]], cuts: list[int]) -> hf.Index:
    """The index of the first rows, and of the others, which are added in parts."""
    first = cuts[0]
    built(rows[:first]).save(folder)
    with hf.Index.open(folder, writable=True) as live:
        for start, end in zip(cuts, [*cuts[1:], len(rows)], strict=True):
            with live.change() as change:
                change.add_passages(rows[start:end], vectors=vectors_of(rows[start:end]) if end > start else None)
                change.add_memory(build_memory(WordReader.like(live.index.words).read(rows[start:end])))
        return live.refresh()


def answers(index: hf.Index) -> Any:
    """What recipes over words find, and why."""
    questions = ["Which river flows to the sea?", "ants of Lyon", "2 oaks"]
    asked = vectors_of([{"text": text} for text in questions])
    matcher = hf.extract.WordMatcher(index)
    for recipe in (hf.recipes.PhaseGraph(index, matcher=matcher), hf.recipes.HybridRRF(index, matcher=matcher)):
        found = recipe.search(questions, vectors=asked, k=5, trace=True)
        yield [[(hit.id, hit.row, hit.score) for hit in hits] for hits in found], found.traces


words = st.lists(st.sampled_from(CONSTANT), min_size=1, max_size=6)


@settings(max_examples=FEWER)
@given(texts=st.lists(words, min_size=2, max_size=7), data=st.data())
def test_words_of_one_form_make_the_index_of_all_texts(tmp_path_factory, texts, data) -> None:
    cuts = sorted({1, *data.draw(st.lists(st.integers(1, len(texts)), max_size=2))})
    rows = rows_of(texts)
    index, whole = changed(tmp_path_factory.mktemp("index"), rows, cuts), built(rows)
    assert differences(index, whole) == []
    for ours, theirs in zip(answers(index), answers(whole), strict=True):
        assert ours == theirs


forms = st.lists(st.sampled_from([form for some in FORMS for form in some]), min_size=1, max_size=6)


@settings(max_examples=FEWER)
@given(texts=st.lists(forms, min_size=2, max_size=7))
def test_the_first_form_of_a_name_stays_and_nothing_else_differs(tmp_path_factory, texts) -> None:
    rows = rows_of(texts)
    index, whole = changed(tmp_path_factory.mktemp("index"), rows, [1]), built(rows)
    assert set(differences(index, whole)) <= {"entity.name.offsets", "entity.name.bytes"}
    reader = WordReader()
    assert reader.keys(list(index.entity_names)) == reader.keys(list(whole.entity_names))
    for ours, theirs in zip(answers(index), answers(whole), strict=True):
        assert ours[0] == theirs[0]


def test_passages_of_one_document_are_joined_where_they_come_together(tmp_path: Path) -> None:
    rows = [row | {"document": "d"} for row in rows_of([["sea"], ["river"], ["ant"], ["Lyon"]])]
    index = changed(tmp_path, rows, [2])
    assert index.info()["graph"]["edge_types"] == {"word": 4, "sequence": 2}
    assert built(rows).info()["graph"]["edge_types"] == {"word": 4, "sequence": 3}


FACTS = [
    Extraction("a", "Ada", "Ada wrote Notes.", ("Ada Lovelace",), (("Ada Lovelace", "wrote", "Notes"),)),
    Extraction("b", "", "Byron.", ("Byron",), (("Byron", "father of", "ada lovelace"),)),
    Extraction(
        "c", "", "Again.", ("NOTES",), (("Ada Lovelace", "Wrote", "the notes"),), links=(("near", "Ada", "Byron"),)
    ),
]


def extended(folder: Path, *, later: list[Extraction] = FACTS[1:], **options: Any) -> hf.Index:
    first = build_memory(FACTS[:1])
    vectors = options.pop("entity_vectors", None)
    first.index(entity_vectors=vectors).save(folder)
    with hf.Index.open(folder, writable=True, **options) as live:
        for one in later:
            with live.change() as change:
                change.add_passages([{"id": one.id, "title": one.title, "text": one.text}])
                change.add_memory(build_memory([one]))
        return live.refresh()


def test_entities_and_facts_are_those_of_all_passages(tmp_path: Path) -> None:
    index, whole = extended(tmp_path), build_memory(FACTS).index()
    assert list(index.entity_names) == list(whole.entity_names) == ["Ada Lovelace", "Notes", "Byron", "Ada"]
    assert [set(names) for names in index.entity_aliases] == [set(names) for names in whole.entity_aliases]
    assert index.facts is not None
    assert whole.facts is not None
    assert np.array_equal(index.facts.rows, whole.facts.rows)
    assert np.array_equal(index.facts.passages, whole.facts.passages)
    assert index.facts.relations == ("wrote", "father of")
    assert index.info()["graph"] == whole.info()["graph"]
    assert np.array_equal(index.passage_frequency, whole.passage_frequency)
    assert index.edge_statements is not None
    assert (index.edge_statements.passages >= 0).sum() == 4


def test_new_names_get_vectors_of_the_encoder(tmp_path: Path) -> None:
    encoder = ArrayEncoder(2, passages={"Byron": [0.0, 1.0], "Ada": [1.0, 0.0]}, name="mine")
    index = extended(tmp_path, entity_vectors=np.eye(2), encoder=encoder)
    assert index.entity_vectors is not None
    assert index.entity_vectors.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    with refused(InputError, "missing", "vectors", section="entity.vectors"):
        extended(tmp_path / "other", entity_vectors=np.eye(2))


def test_passages_are_no_memory(tmp_path: Path) -> None:
    build_memory(FACTS[:1]).index().save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live, refused(InputError, "type", "memory", given="list"):
        live.change().add_memory(FACTS[1:])


def test_a_change_finds_its_additions_by_name_and_forgets_its_deletions(tmp_path: Path) -> None:
    build_memory(FACTS[:1]).index().save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        with live.change() as change:
            change.add_entities(["byron"])
            change.delete_entities(["Notes"])
            change.add_passages([{"id": one.id, "text": one.text} for one in FACTS[1:]])
            change.add_memory(build_memory(FACTS[1:2]))
            change.add_memory(build_memory(FACTS[2:]))
        index = live.refresh()
    assert list(index.entity_names) == ["Ada Lovelace", "byron", "NOTES", "Ada"]
    assert list(index.entity_aliases) == [("ada lovelace",), ("Byron",), ("the notes",), ()]
    assert index.facts is not None
    assert index.facts.rows.tolist() == [[1, 0, 0], [0, 1, 2]]


def test_threads_that_read_the_same_new_word_add_it_once(tmp_path: Path) -> None:
    rows = rows_of([["sea"], *[["river", "oak"]] * 6])
    built(rows[:1]).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        changes = []
        for row in rows[1:]:
            change = live.change()
            change.add_passages([row], vectors=vectors_of([row]))
            change.add_memory(build_memory(WordReader.like(live.index.words).read([row])))
            changes.append(change)
        for change in changes:
            change.commit()
        assert differences(live.refresh(), built(rows)) == []


def test_words_that_were_read_otherwise_and_parts_that_are_not_there_are_refused(tmp_path: Path) -> None:
    rows = rows_of([["sea"], ["river"]])
    built(rows[:1]).save(tmp_path)
    other, plain = build_memory(WordReader("german").read(rows[1:])), build_memory(FACTS[1:2])
    with hf.Index.open(tmp_path, writable=True) as live:
        with refused(InputError, "conflict", "memory") as caught:
            live.change().add_memory(other)
        assert "german" in caught.value.given
        assert "english" in caught.value.allowed
        with refused(InputError, "missing", "memory", part="facts"):
            live.change().add_memory(plain)
        with refused(InputError, "conflict", "memory", given="not at all"):
            live.change().add_memory(build_memory([Extraction("x", "", "x")]))
        with refused(InputError, "missing", "memory"), live.change() as change:
            change.add_memory(build_memory(WordReader().read(rows[1:])))
        assert live.refresh().seq == 0
    hf.Index.build(passages=rows[:1]).save(tmp_path / "plain")
    with (
        hf.Index.open(tmp_path / "plain", writable=True) as live,
        refused(InputError, "missing", "memory", part="a graph"),
    ):
        live.change().add_memory(other)


def test_lemmas_of_a_tagger_are_their_own_keys() -> None:
    info = WordInfo(0, None, "a tagger", ())
    found = Extraction("a", "", "", words=hf.extract.Words(info, ("sea",), ("sea",)))
    memory = build_memory([found])
    assert memory.keys(["rivers"]) == ["rivers"]
    with pytest.raises(InputError):
        build_memory(FACTS).keys(["x"])


def test_a_filter_takes_words_and_refuses_what_would_be_others_too(tmp_path: Path) -> None:
    tenant = {"metadata": {"tenant": "x"}}
    rows = [row | tenant for row in rows_of([["sea"], ["river", "sea"]])]

    def read_under_a_filter(name: str, rows: list[dict[str, Any]], memory: Any) -> None:
        with hf.Index.open(tmp_path / name, writable=True) as live:
            with live.change(only=hf.where(tenant="x")) as change:
                change.add_passages(rows)
                change.add_memory(memory)
            live.refresh()

    build_memory(WordReader().read(rows[:1])).index().with_metadata([tenant]).save(tmp_path / "words")
    read_under_a_filter("words", rows[1:], build_memory(WordReader().read(rows[1:])))
    assert hf.Index.open(tmp_path / "words").passage_frequency.tolist() == [2, 1]  # type: ignore[union-attr]
    follows = [row | {"id": f"d{at}", "document": "d"} for at, row in enumerate(rows)]
    memory = build_memory(WordReader().read(follows))
    with refused(InputError, "denied", "memory", given="sequence"):
        read_under_a_filter("words", follows, memory)
    build_memory(FACTS[:1]).index().with_metadata([tenant]).save(tmp_path / "facts")
    written = build_memory([Extraction("c", "", "Again.", ("NOTES",))])
    read_under_a_filter("facts", [{"id": "c", "text": "Again.", **tenant}], written)
    found = hf.Index.open(tmp_path / "facts")
    assert "NOTES" not in [*found.entity_names, *(alias for own in found.entity_aliases for alias in own)]
