"""The DSPy retriever: predictions, several questions as one search, in programs, here and over ``hopfuse serve``."""

from __future__ import annotations

import asyncio
import copy

import pytest
from adapters.frameworks import QUESTIONS, small_index
from adapters.memories import add_elsewhere, check_reads_its_writes, turn
from hopfuse.adapters.searcher import Searcher
from hopfuse.errors import InputError

pytest.importorskip("ahocorasick", reason="names in questions are found by pyahocorasick (extra text)")
pytest.importorskip("dspy", reason="the adapter needs dspy (extra dspy)")

import dspy
from hopfuse.adapters.dspy import HopfuseMemory, HopfuseRetriever
from refusals import refused


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


# ---- Texts that are added --------------------------------------------------------------------------------------------


def added(memory):
    """Return a function that adds a turn."""

    def add(id, text, metadata):
        assert memory.add([text], [id], [metadata]) == [id]

    return add


def test_a_text_is_found_right_after_its_add(tmp_path):
    memory = HopfuseMemory(tmp_path / "memory", k=4)
    check_reads_its_writes(added(memory), lambda question: memory(question).ids, lambda id: memory.delete([id]))
    assert copy.deepcopy(memory)(turn(3)[3]).ids[0] == turn(3)[0]  # a copy of a program
    (id,) = memory.add("Ada wrote notes.")
    assert memory("Who wrote notes?").ids[0] == id
    assert memory(turn(3)[3], allow={"user": "b"}).ids[0] == turn(3)[0]
    assert memory.delete(allow={"user": "b"}) == 80
    assert memory.delete(["turn 0", "turn 1"]) == 1
    for call, code in ((lambda: memory.delete(), "missing"), (lambda: memory.delete(["a"], {"user": "a"}), "conflict")):
        with refused(InputError, code, "ids"):
            call()
    with refused(InputError, "length", "metadata", given=1):
        memory.add(["one", "two"], metadata=[{}])
    memory.close()
    id, question = add_elsewhere(tmp_path / "memory", 300)
    assert memory(question, at_least="latest").ids[0] == id


def test_a_text_is_found_right_after_its_add_to_a_server(writable_url):
    memory = HopfuseMemory(writable_url, k=4)

    def ask(question):
        return asyncio.run(memory.acall(question)).ids

    check_reads_its_writes(added(memory), ask, lambda id: memory.delete([id]), count=20)


def test_a_folder_is_followed(tmp_path):
    small_index().save(tmp_path)
    follower, latest = HopfuseRetriever(tmp_path), HopfuseRetriever(tmp_path, at_least="latest")
    id, question = add_elsewhere(tmp_path, 0)
    assert id not in follower(question).ids
    assert latest(question).ids[0] == latest.rm(question)[0].id == asyncio.run(latest.acall(question)).ids[0] == id
    assert follower(question, at_least=1).ids[0] == id
