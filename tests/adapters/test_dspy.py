"""The DSPy retriever: predictions, several questions as one search, in programs, here and over ``hopfuse serve``."""

from __future__ import annotations

import asyncio

import pytest
from adapters.frameworks import QUESTIONS
from hopfuse.adapters.searcher import Searcher
from hopfuse.errors import InputError

pytest.importorskip("ahocorasick", reason="names in questions are found by pyahocorasick (extra text)")
pytest.importorskip("dspy", reason="the adapter needs dspy (extra dspy)")

import dspy
from hopfuse.adapters.dspy import HopfuseRetriever


def seen(made):
    return list(zip(made.ids, made.passages, made.scores, made.metadata, strict=True))


def told(hits):
    return [(hit.id, hit.text, hit.score, {"title": hit.title, **hit.metadata}) for hit in hits]


def test_a_prediction_is_the_hits(source, monkeypatch):
    hits = [told(row) for row in Searcher(source).search(QUESTIONS, k=3)]
    retriever = HopfuseRetriever(source)
    assert [seen(retriever(one)) for one in QUESTIONS] == hits
    asked = []
    search = Searcher.search

    def spy(self, questions, **given):
        asked.append(questions)
        return search(self, questions, **given)

    monkeypatch.setattr(Searcher, "search", spy)
    assert [seen(made) for made in retriever(QUESTIONS)] == hits
    assert asked == [QUESTIONS]  # one search
    assert seen(asyncio.run(retriever.acall(QUESTIONS[0]))) == hits[0]
    assert [seen(made) for made in asyncio.run(retriever.acall(QUESTIONS, k=1))] == [row[:1] for row in hits]


def test_notes_are_in_the_prediction_or_in_the_log(source, caplog):
    retriever = HopfuseRetriever(source)
    assert retriever(QUESTIONS[0]).notes == []
    (note,) = retriever("Xyzzy?").notes
    retriever.rm("Xyzzy?")
    assert [line.startswith(note) for line in caplog.messages] == [True]


def test_k_and_filters(source):
    retriever = HopfuseRetriever(source, k=8, allow={"tenant": "a"})
    assert set(retriever(QUESTIONS[0]).ids) <= {"p0", "p2", "p4", "p6"}
    assert len(retriever(QUESTIONS[0], k=1).ids) == 1
    assert retriever(QUESTIONS[0], allow=["p3"]).ids == ["p3"]
    with pytest.raises(InputError) as caught:
        retriever(QUESTIONS[0], allow=["no"])
    assert (caught.value.code, caught.value.given) == ("unknown", "no")


class Program(dspy.Module):
    """A program with a retriever of its own, and one that asks DSPy's retrieval model."""

    def __init__(self, retriever):
        super().__init__()
        self.own, self.plain = retriever, dspy.Retrieve(k=2)

    def forward(self, question):
        return dspy.Prediction(own=self.own(question, k=2).passages, plain=self.plain(question).passages)


def test_in_a_program_that_is_copied_and_saved(source, tmp_path):
    retriever = HopfuseRetriever(source, k=5)
    program = Program(retriever)
    expected = [hit.text for hit in Searcher(source).search(QUESTIONS[:1], k=2)[0]]
    with dspy.context(rm=retriever.rm):
        for one in (program, program.deepcopy(), program.reset_copy()):
            made = one(question=QUESTIONS[0])
            assert made.own == made.plain == expected
    del program.plain  # dspy.Retrieve of 3.4.1 cannot be saved
    program.save(tmp_path / "program.json")
    other = Program(HopfuseRetriever(source, k=1))
    del other.plain
    other.load(tmp_path / "program.json")
    assert other.own.k == 5
    first = retriever.rm(QUESTIONS[0])[0]
    assert (first.long_text, first.id) == (expected[0], retriever(QUESTIONS[0]).ids[0])
