"""Deleting passages by ids, by a filter and by document, and what goes with them."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.extract import Extraction, WordReader, build_memory
from hopfuse.index import Deletions
from hopfuse.lexical import BM25
from index.live_model import differences
from refusals import refused

for package in ("Stemmer", "bm25s"):
    pytest.importorskip(package, reason=f"words need {package} (extra text)")

X, Y = hf.where(user="x"), hf.where(user="y")


def found(id: str, names: tuple[str, ...], *, user: str = "x", more: str = "") -> tuple[Extraction, dict[str, Any]]:
    """What a reader finds in a passage of a user: names, and a fact about the first two."""
    text = f"{' and '.join(names)} wrote {more}."
    facts = ((names[0], "knew", names[1]),) if len(names) > 1 else ()
    row = {"id": id, "title": f"of {id}", "text": text, "metadata": {"user": user}, "document": f"doc {id}"}
    return Extraction(id, row["title"], text, names, facts), row


def index_of(passages: list[tuple[Extraction, dict[str, Any]]], **options: Any) -> hf.Index:
    """An index of what was read, with words, metadata, vectors and BM25."""
    rows = [row for _, row in passages]
    vectors = [vector_of(row["id"]) for row in rows]
    plain = hf.Index.build(passages=rows, vectors=vectors, metadata_types={"user": "string"}, **options)
    memory = build_memory(WordReader().add([one for one, _ in passages]))
    names = np.array([vector_of(name) for name in memory.entities])
    index = memory.index(passages=plain, entity_vectors=names, **options)
    return index.with_lexical(BM25.build(index.texts_to_index()).matrix)


def vector_of(of: str) -> np.ndarray:
    return np.random.default_rng(list(of.encode())).normal(size=8).astype(np.float32)


ONE = [found("a", ("Ada", "Byron")), found("b", ("Byron", "Clare"))]
TWO = [found("c", ("Ada", "Dora"), user="y", more="zebra"), found("d", ("Eve", "Ada"), user="y", more="yak")]


@pytest.fixture
def live(tmp_path: Path) -> Any:
    index_of(ONE + TWO).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        yield live


@pytest.mark.parametrize(
    "way", [{"ids": ["c", "d"]}, {"where": Y}, {"where": hf.where(user__in=["y", "z"]) & ~X}, {"document": None}]
)
def test_what_is_left_is_an_index_built_from_the_rows_that_are_left(live: Any, way: dict[str, Any]) -> None:
    ways = [{"document": "doc c"}, {"document": "doc d"}] if "document" in way else [way]
    expected = Deletions(passages=2, names=2, words=4, facts=2)  # Dora and Eve; their words, zebra and yak
    change = live.change()
    for one in ways:
        change.delete_passages(**one)
    assert change.preview() == expected
    assert live.refresh().seq == 0
    assert change.deleted is None
    change.commit()
    assert change.deleted == expected
    assert differences(live.refresh(), index_of(ONE)) == []
    counts = {"deleted passages": -2, "deleted entities": -6}
    assert live.history()[0]["counts"] == counts
    live.compact()
    assert differences(hf.Index.open(live.directory, verify="full"), index_of(ONE)) == []


def test_nothing_of_what_was_forgotten_is_found(live: Any) -> None:
    with live.change() as change:
        change.delete_passages(where=Y)
    index = live.refresh()
    assert {"Dora", "Eve", "zebra", "yak"}.isdisjoint(index.entity_names)
    assert {"zebra", "yak", "dora"}.isdisjoint(index.lexical.terms)


def test_replacing_a_passage_forgets_what_it_alone_supported(live: Any) -> None:
    again, row = found("d", ("Ada", "Fanny"), user="y")
    with live.change() as change:
        change.replace_passages([row], vectors=[vector_of("d")])
        memory = build_memory(WordReader.like(live.index.words).add([again]))
        known = {*live.index.entity_names}
        new = [name for name in memory.entities if name not in known]
        is_word = dict(zip(memory.entities, np.arange(len(memory.entities)) >= memory.num_names, strict=True))
        for name in new:
            change.add_entities([name], vectors=[vector_of(name)], words=bool(is_word[name]), stated=False)
        change.add_memory(memory)
    names = set(live.refresh().entity_names)
    assert {"Ada", "Fanny", "fanny", "zebra"} <= names
    assert names.isdisjoint({"Eve", "eve", "yak"})
    assert names == set(index_of([*ONE, TWO[0], (again, row)]).entity_names)
    assert change.deleted == Deletions(passages=1, names=1, words=2, facts=1)  # Eve; eve and yak


@pytest.mark.parametrize("filtered", [False, True])
def test_a_change_counts_what_it_replaces_and_merges(live: Any, filtered: bool) -> None:
    """With ``replace=True`` too; an addition deletes nothing."""
    (_, old), (_, new) = TWO[1], found("e", ("Ada",), user="y")
    with live.change(only=Y if filtered else None) as change:
        change.add_passages([old, new], vectors=[vector_of("d"), vector_of("e")], replace=True)
    assert change.deleted == Deletions(passages=1, names=1, words=2, facts=1)
    with live.change() as change:
        change.add_passages([{"id": "f", "text": "of f", "metadata": {"user": "y"}}], vectors=[vector_of("f")])
    assert change.deleted == Deletions(0, 0, 0, 0)
    if not filtered:
        with live.change() as change:
            change.merge_entities({"Ada": ["Clare"]})
        assert (change.deleted.passages, change.deleted.names) == (0, 1)


def test_what_a_user_states_stays(live: Any) -> None:
    with live.change() as change:
        change.add_entities(["Dora"], vectors=[vector_of("Dora")], missing=True)
        change.add_aliases({"Eve": ["Evelyn"]})
    with live.change() as change:
        change.delete_passages(where=Y)
    assert change.deleted == Deletions(2, 0, 4, 2)
    index = live.refresh()
    assert {"Dora", "Eve"} <= set(index.entity_names)
    assert "Evelyn" in sum(index.entity_aliases, ())
    with live.change() as change:
        change.delete_passages(ids=["a", "b"])
        change.add_entities(["Ada"], vectors=[vector_of("Ada")], missing=True, stated=False)  # named, so it stays
    assert list(live.refresh().entity_names) == ["Ada", "Dora", "Eve"]


def test_the_last_edge_or_fact_takes_its_entities_along(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "one"}, {"id": "b", "text": "two"}]
    entities = [{"name": name, "stated": False} for name in ("Ada", "Byron", "Clare", "Dora", "Eve")]
    graph = [{"src": 0, "dst": 2}, {"src": 1, "dst": 3}, {"src": 3, "dst": 4, "passage": 1}, {"src": 5, "dst": 6}]
    facts = [{"head": "Dora", "relation": "knew", "tail": "Ada", "passage": 0}]
    hf.Index.build(passages=rows, entities=entities, graph=graph, facts=facts).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        for method, given, left in (
            ("delete_edges", [{"src": ("passage", "a"), "dst": ("entity", "Ada")}], "Ada Byron Clare Dora Eve"),
            ("delete_facts", [("Dora", "knew", "Ada")], "Byron Clare Eve"),  # Eve never had support
            ("delete_entities", ["Byron"], "Eve"),  # and with it the edge to Clare
        ):
            with live.change() as change:
                getattr(change, method)(given)
            assert list(live.refresh().entity_names) == left.split()


def test_one_of_three_ways_is_given(live: Any) -> None:
    change = live.change()
    for given, code in (
        ({}, "missing"),
        ({"ids": ["a"], "where": X}, "conflict"),
        ({"ids": [], "document": 1}, "conflict"),
    ):
        with refused(InputError, code, "ids"):
            change.delete_passages(**given)
    with refused(InputError, "type", "where"):
        change.delete_passages(where={"user": "x"})
    with refused(InputError, "type", "document"):
        change.delete_passages(document=True)
    for given in ({"where": hf.where(colour="red")}, {"where": hf.where(user=3)}, {"ids": ["none"]}):
        change = live.change()
        change.delete_passages(**given)
        with pytest.raises(InputError):
            change.preview()
        with pytest.raises(InputError):
            change.commit()
    for given in ({"where": hf.where(user="nobody")}, {"document": "none"}, {"document": 7}):
        with live.change() as change:
            change.delete_passages(**given)
        assert change.deleted == Deletions(0, 0, 0, 0)
    assert live.refresh().seq == 0


def test_passages_that_were_committed_and_not_read_match(live: Any) -> None:
    for at in range(5):
        with live.change() as change:
            metadata = {"user": "y"} if at % 2 else {"user": "x", "colour": "red"} if at == 4 else {}
            row = {"id": f"n{at}", "text": f"text {at}", "metadata": metadata, "document": f"doc {'c' if at else 'z'}"}
            change.add_passages([row], vectors=[vector_of("n")])
        for where, count in ((Y, 2 + (at + 1) // 2), (hf.where(user__exists=False), (0, 1, 1, 2, 2)[at] + (at == 0))):
            change = live.change()
            change.delete_passages(where=where)
            assert change.preview().passages == (count if where is Y else 1 + at // 2 - (at == 4))
    change = live.change()
    change.delete_passages(where=hf.where(colour="red") | ~hf.where(colour__exists=True) & Y)
    assert change.preview().passages == 5
    with live.change() as change:
        change.delete_passages(document="doc c")
        change.delete_passages(document="doc z")
    assert change.deleted.passages == 6
    with live.change() as change:
        change.delete_passages(document="doc c")
    assert change.deleted.passages == 0
    assert list(live.refresh().passage_ids) == ["a", "b", "d"]


# ---- A change with a filter ----


def test_a_filtered_change_deletes_its_own_passages_and_counts_its_own_view(live: Any) -> None:
    """Ada is in passages of both users; y cannot see whether she stays."""
    alone = index_of(TWO)
    for where, document in ((X | Y, None), (None, "doc c"), (~hf.where(user="nobody"), None)):
        change = live.change(only=Y)
        change.delete_passages(where=where, document=document)
        if document is None:
            entities = Deletions(2, alone.words.first, alone.num_entities - alone.words.first, 2)
        else:
            entities = Deletions(1, 1, 2, 1)  # Dora, her word and zebra
        assert change.preview() == entities
    with live.change(only=Y) as change:
        change.delete_passages(document="doc a")
    assert change.deleted == Deletions(0, 0, 0, 0)
    with live.change(only=Y) as change:
        change.delete_passages(where=X | Y)
    assert differences(live.refresh(), index_of(ONE)) == []


@pytest.mark.parametrize("held", [False, True])
def test_a_filtered_change_learns_nothing_of_other_passages(held: bool, tmp_path: Path) -> None:
    """The answers are the same whether or not another user's passages have the names, and a user stated them."""
    index_of([ONE[0], *(TWO if held else ()), found("e", ("Byron", "Gil"), user="y" if held else "z")]).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        if held:
            with live.change() as change:
                change.add_entities(["Byron"], vectors=[vector_of("Byron")], missing=True)
        with live.change(only=X) as change:
            change.delete_passages(where=X)
        assert change.deleted == Deletions(1, 2, 3, 1)


# ---- Bytes ----


@pytest.mark.parametrize("storage", ["float32", "float16", "int8"])
def test_no_byte_of_what_was_forgotten_is_in_a_file(storage: str, tmp_path: Path) -> None:
    tokens: list[str] = []

    def token() -> str:
        tokens.append("".join(chr(97 + byte % 26) for byte in secrets.token_bytes(14)))
        return tokens[-1]

    def secret(id: str, names: tuple[str, ...]) -> tuple[Extraction, dict[str, Any]]:
        one, row = found(id, names, user=token(), more=f"{token()} {token()}")
        return one, row | {"title": token(), "document": token(), "metadata": row["metadata"] | {"tags": [token()]}}

    secrets_ = [secret(token(), (token().capitalize(), token().capitalize())) for _ in range(4)]
    secrets_[0][1]["id"] = secrets_[0][0].id
    index = index_of([ONE[0], *secrets_[:2], ONE[1]], storage=storage)
    index.save(tmp_path)
    vectors = [row for array in (index.vectors[1:3], index.entity_vectors) for row in array]
    gone = [name for name in index.entity_names if name not in index_of(ONE).entity_names]
    kept = {
        bytes(vector) for vector, name in zip(index.entity_vectors, index.entity_names, strict=True) if name not in gone
    }
    lost = [bytes(vector) for vector in vectors if bytes(vector) not in kept]
    assert len(lost) > 10
    with hf.Index.open(tmp_path, writable=True) as live:
        for one, row in secrets_[2:]:
            with live.change() as change:
                change.add_passages([row], vectors=[vector_of(row["id"])])
                memory = build_memory(WordReader.like(live.index.words).add([one]))
                for at, name in enumerate(memory.entities):
                    given = {"vectors": [vector_of(name)], "words": at >= memory.num_names, "missing": True}
                    change.add_entities([name], stated=False, **given)
                change.add_memory(memory)
        before = [path.read_bytes() for path in tmp_path.iterdir()]
        assert all(any(word.encode() in data for data in before) for word in tokens if word.islower())
        with live.change() as change:
            change.delete_passages(where=~X)
        assert change.deleted.passages == 4
        live.refresh()
        live.compact()
        files = {path.name: path.read_bytes().lower() for path in tmp_path.iterdir()}
        assert [name for name, data in files.items() for word in tokens if word.encode() in data] == []
        raw = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert [vector for vector in lost if vector in raw] == []
        assert all(bytes(vector) in raw for vector in hf.Index.open(tmp_path).vectors)
