"""Questions that are made from an index: what is taken out of it, and what is left as it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from diagnose.made import retriever, walk_wins
from hopfuse.diagnose import indicate, one_passage_sample, searchable, two_passage_sample
from hopfuse.errors import InputError
from hopfuse.extract import WordReader, build_memory
from hopfuse.types import Incidence
from refusals import refused

for package in ("bm25s", "Stemmer", "ahocorasick", "scipy"):
    pytest.importorskip(package, reason="words, names and intervals")

NAMES = ("Elbe", "Oder", "Main", "Isar", "Lech", "Saale", "Havel", "Spree", "Warta", "Drava", "Tisza", "Neisse")


class Letters:
    """An encoder that counts letters, and keeps the texts of passages that it encodes."""

    name, dim, normalize = "letters", 26, False

    def __init__(self) -> None:
        self.passages: list[str] = []

    def encode_queries(self, given: Any) -> np.ndarray[Any, Any]:
        return np.array([[1 + text.lower().count(chr(97 + at)) for at in range(26)] for text in given], np.float32)

    def encode_passages(self, given: Any) -> np.ndarray[Any, Any]:
        self.passages += given
        return self.encode_queries(given)


def rows() -> list[dict[str, Any]]:
    """Rivers with titles of their own, and towns whose title they share."""
    made = [
        {"id": f"r{at}", "title": f"The {name} river", "text": f"It passes {name} town, and no other place near {at}."}
        for at, name in enumerate(NAMES)
    ]
    return made + [
        {"id": f"t{at}", "title": "Town", "text": f"{name} has a market. It is held every Monday in the old square."}
        for at, name in enumerate(NAMES)
    ]


def bridges() -> list[dict[str, Any]]:
    """Bridges over rivers, and passages about the rivers, which share the rivers' names alone."""
    made = [
        {"title": f"Bridge {at}", "text": f"This one leads over the {name} since 18{at}."}
        for at, name in enumerate(NAMES)
    ]
    return made + [{"title": "", "text": f"{name} carries ships and timber. It is long."} for name in NAMES]


def words(made: list[dict[str, Any]] | None = None) -> hf.Index:
    index = build_memory(WordReader().read(made or rows())).index()
    return index.with_lexical(hf.lexical.BM25.build(index.texts_to_index()).matrix)


def arrays(index: hf.Index) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in index.arrays().items()}


def mentions(index: hf.Index, row: int) -> set[str]:
    assert index.graph is not None
    of = Incidence.from_graph(index.graph, index.num_passages)
    nodes = of.indices[of.indptr[row] : of.indptr[row + 1]].tolist()
    return {index.entity_names[node - index.num_passages] for node in nodes if node >= index.num_passages}


def test_a_title_or_first_sentence_is_taken_out_of_everything() -> None:
    encoder, plain = Letters(), words()
    index = plain.with_vectors(encoder.encode_passages(plain.texts_to_index()), encoder=encoder)
    before = arrays(index)
    encoder.passages.clear()
    sample = one_passage_sample(hf.Retriever(index, encoder=encoder))
    changed = sample.retriever.index
    assert len(sample.questions) == 24
    by_row = {gold[0]: question for gold, question in zip(sample.qrels.gold, sample.questions, strict=True)}
    assert (by_row[0], by_row[12]) == ("The Elbe river", "Elbe has a market")
    assert (changed.titles[0], changed.texts[0]) == ("", index.texts[0])
    assert (changed.titles[12], changed.texts[12]) == ("Town", "It is held every Monday in the old square.")
    assert list(changed.passage_ids) == list(index.passage_ids)
    assert mentions(index, 0) - mentions(changed, 0) == {"river"}  # Elbe is in the text too
    assert mentions(index, 12) - mentions(changed, 12) == {"elbe", "market"}
    texts = changed.texts_to_index()
    assert sorted(encoder.passages) == sorted(texts)
    assert changed.vectors is not None
    assert (changed.vectors == encoder.encode_queries(texts)).all()
    assert changed.lexical is not None
    assert (changed.lexical.scores == hf.lexical.BM25.build(texts).matrix.scores).all()
    assert changed.words == index.words
    assert arrays(index) == before


def test_equal_texts_and_short_ones_are_not_asked_for() -> None:
    made = rows()
    made[1]["text"] = made[0]["text"]
    made[2]["text"] = "Too short."
    index = hf.Index.build(passages=made)
    gold = {row for (row,) in one_passage_sample(index).qrels.gold}
    assert gold == set(range(24)) - {0, 1, 2}


def test_a_question_does_not_keep_the_speaker_of_a_turn() -> None:
    said = [{"text": f"Michael Ray: I saw the {name} today. It was quite high, as in every spring."} for name in NAMES]
    sample = one_passage_sample(hf.Index.build(passages=said))
    assert set(sample.questions) == {f"I saw the {name} today" for name in NAMES}
    assert set(sample.retriever.index.texts) == {"Michael Ray: It was quite high, as in every spring."}


def strangers() -> list[dict[str, Any]]:
    """Passages whose titles share nothing with their texts."""
    days = [f"{first}{second}" for first in "bdfgklmn" for second in ("al", "el", "il", "ol", "ul", "an", "en", "in")]
    return [
        {"title": f"Zug{at}", "text": f"A day of {day}, which nobody has described."} for at, day in enumerate(days)
    ]


def test_a_sample_in_which_nothing_is_found_chooses_nothing() -> None:
    found = indicate(hf.Index.build(passages=strangers()))
    assert (found.use, found.chance, found.tells("one passage")) == (None, 5 / 64, False)
    assert "This sample says nothing here: " in str(found)
    assert "Use words" not in str(found)
    assert "No sample says which recipe to use. Keep the default search" in str(found)
    assert "such as 'Zug" in str(found)


def test_samples_that_disagree_choose_nothing() -> None:
    told = indicate(words(), size=12)
    one = told.verdicts["one passage"]
    pair = {"one passage": one, "two passages": replace(one, use="hybrid-convex")}
    questions = dict.fromkeys(pair, "Which?")
    found = replace(told, verdicts=pair, first_questions=questions, chance=0.0)
    assert found.use is None
    assert f"The samples disagree: {one.use} by the sample of one passage, hybrid-convex by" in str(found)
    assert replace(found, verdicts=dict.fromkeys(pair, one)).use == one.use


def test_the_sample_is_that_of_the_ids() -> None:
    index, turned = (hf.Index.build(passages=made) for made in (rows(), rows()[::-1]))
    few, other = one_passage_sample(index, 10), one_passage_sample(turned, 10)
    assert few.questions == other.questions == one_passage_sample(index).questions[:10]
    assert two_passage_sample(words(bridges())).questions == two_passage_sample(words(bridges())).questions


def named() -> hf.Index:
    """The bridges, in a graph of the rivers."""
    edges = [{"src": row, "dst": 24 + row % 12} for row in range(24)]
    return hf.Index.build(passages=bridges(), entities=list(NAMES), graph=edges)


@pytest.mark.parametrize("make", [lambda: words(bridges()), named], ids=["words", "names"])
def test_pairs_are_joined_by_a_rare_name_that_the_question_lacks(make: Any) -> None:
    index = make()
    sample = two_passage_sample(retriever(index))
    assert sample.retriever.index is index
    asked = dict(zip(sample.qrels.gold, sample.questions, strict=True))
    assert asked == {(at, 12 + at): f"Bridge {at} carries ships timber" for at in range(12)}


def test_what_a_sample_lacks_is_said() -> None:
    few = hf.Index.build(passages=rows()[:5])
    with refused(InputError, "range", "index", count=5, least=10):
        one_passage_sample(few)
    with refused(InputError, "range", "size", given=5, least=10):
        one_passage_sample(hf.Index.build(passages=rows()), 5)
    with refused(InputError, "missing", "index"):
        two_passage_sample(few)
    with refused(InputError, "missing", "encoder"):
        one_passage_sample(retriever(walk_wins(4).index))
    with refused(InputError, "shape", "encoder", given=26, allowed=16):
        one_passage_sample(retriever(walk_wins(4).index, encoder=Letters()))
    found = indicate(few)
    assert (found.use, dict(found.verdicts), set(found.lacks)) == (None, {}, {"one passage", "two passages"})
    assert str(found).startswith("No sample of one passage: ")


def test_an_indication_has_a_verdict_for_each_sample() -> None:
    found = indicate(words(), size=12)
    assert list(found.verdicts) == ["one passage"]  # titles and first sentences have the names that join
    one = found.verdicts["one passage"]
    assert one.questions == 12
    assert replace(found, chance=0.0).use == one.use
    assert found.to_dict()["one passage"]["use"] == one.use
    assert "titles or first sentences" in str(found)


def test_vectors_of_questions_that_nothing_makes_are_not_used() -> None:
    index = walk_wins(4).index
    made, lack = searchable(retriever(index))
    assert (made.index.dim, made.recipe.name) == (None, "hybrid-rrf")
    assert "not used" in str(lack)
    for other in (retriever(index), hf.Retriever(index.with_vectors(None))):
        assert searchable(other, vectors=True)[0] is other
