"""Tables of names, words and texts that follow an index through random changes: in each state those that are new."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.extract import EntityLinker, QuestionMatcher, WordMatcher, WordReader, build_memory
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import FULL

pytest.importorskip("ahocorasick", reason="names are found by pyahocorasick")

# The drawn words are of many languages.
pytestmark = pytest.mark.filterwarnings("ignore:.* of the text is in languages that no reader is for:UserWarning")

#: Names with accents, apostrophes, hints, codes, signs, endings of cases, and common words.
NAMES = [
    "Of", "Reading", "Time", "ISO", "Ada King", "St. Louis", "São Paulo", "Sao Paulo", "time zone", ".it", "Euro",
    "reading", "Mercury (planet)", "Mercury (metal)", "Mercury", "L'Eau", "Leau", "Bob's", "Bobs", "Jean-Luc",
    "Jean Luc", "Москва", "Москвa", "Helsinki", "Helsingin", "Turku", "Same",
]  # fmt: skip
ALIASES = ["Lovelace", "AK", "Sampa", "IT", "EUR", "EG", "Reading", "Time", "Mercury", "l’eau", "Moskva", "Helsinki"]
WORDS = ["of", "reading", "time", "zone", "iso", "ada", "king", "town", "eur", "st", "louis", "river", "rivers", "same"]
QUESTIONS = [
    "Where is Reading?", "where is reading", "where same lies", "the country where of is", "ISO number of euro",
    "the iso number of sao paulo", "IN WHICH TIME ZONE IS ST LOUIS", "ada king and lovelace read eur in .it", "time",
    "what time is it in reading", "Is AK of São Paulo?", "rivers of time", "the Time of Reading", "eg reading",
    "is mercury a planet", "Is Mercury a metal?", "where does l'eau flow", "bob's river", "Is Bobs in Bob’s town?",
    "jean luc", "Jean-Luc in Jean Luc", "где в Москве река", "Missä Helsingissä on Turun joki?", "which rivers",
]  # fmt: skip


class World:
    """A live index and what is in it, which changes at random."""

    def __init__(self, folder: Path, seed: int, *, words: bool) -> None:
        self.random, self.count = np.random.default_rng(seed), 0
        self.passages, self.names = list[str](), list[str]()
        rows = [self.row() for _ in range(6)]
        if words:
            hf.Index.build(rows, reader="words").save(folder)
        else:
            self.names = [str(name) for name in self.random.choice(NAMES, 8, replace=False)]
            edges = [{"src": p, "dst": 6 + int(e)} for p in range(6) for e in self.random.choice(8, 2, replace=False)]
            hf.Index.build(rows, entities=self.names, graph=edges).save(folder)
        self.live = hf.Index.open(folder, writable=True)
        info = self.live.index.words
        self.reader = None if info is None else WordReader.like(info)

    def row(self, id: str | None = None) -> dict[str, Any]:
        if id is None:
            self.count += 1
            id = f"p{self.count}"
            self.passages.append(id)
        return {"id": id, "title": str(self.random.choice(["", "Title"])), "text": self.text()}

    def text(self) -> str:
        return " ".join(self.random.choice([*WORDS, *NAMES], 8))

    def one(self, values: list[str]) -> str:
        return str(self.random.choice(values))

    def change(self) -> hf.Index:
        """Change the index in one or two ways, and return its new state."""
        kinds: list[Callable[[hf.index.Change], None]] = [self._add, self._replace, self._delete]
        if self.reader is None:
            kinds += [self._name, self._alias, self._unalias, self._unname, self._merge]
        with self.live.change() as change:
            kinds[self.random.integers(len(kinds))](change)
        if self.random.integers(12) == 0:
            self.live.compact()
        return self.live.refresh()

    def _add(self, change: hf.index.Change) -> None:
        rows = [self.row() for _ in range(self.random.integers(1, 4))]
        change.add_passages(rows)
        self._read(change, rows)

    def _replace(self, change: hf.index.Change) -> None:
        rows = [self.row(self.one(self.passages))]
        change.replace_passages(rows)
        self._read(change, rows)

    def _read(self, change: hf.index.Change, rows: list[dict[str, Any]]) -> None:
        if self.reader is not None:
            change.add_memory(build_memory(self.reader.read(rows)))
        elif self.names:
            change.add_edges([{"src": ("passage", row["id"]), "dst": ("entity", self.one(self.names))} for row in rows])

    def _delete(self, change: hf.index.Change) -> None:
        if len(self.passages) > 2:
            change.delete_passages([self.passages.pop(self.random.integers(len(self.passages)))])

    def _name(self, change: hf.index.Change) -> None:
        fresh = [name for name in NAMES if name not in self.names]
        if fresh:
            names = list(dict.fromkeys(self.one(fresh) for _ in range(2)))
            self.names += names
            change.add_entities(names)

    def _alias(self, change: hf.index.Change) -> None:
        if self.names:
            change.add_aliases({self.one(self.names): [self.one(ALIASES)]})

    def _unalias(self, change: hf.index.Change) -> None:
        index = self.live.index
        owners = [e for e, aliases in enumerate(index.entity_aliases) if aliases]
        if owners:
            owner = int(self.random.choice(owners))
            change.delete_aliases({index.entity_names[owner]: [self.one(list(index.entity_aliases[owner]))]})

    def _unname(self, change: hf.index.Change) -> None:
        if len(self.names) > 2:
            change.delete_entities([self.names.pop(self.random.integers(len(self.names)))])

    def _merge(self, change: hf.index.Change) -> None:
        if len(self.names) > 3:
            change.merge_entities({self.names[0]: [self.names.pop()]})


def anew(index: hf.Index) -> hf.Index:
    """The same index, which knows of no other state."""
    copy: hf.Index = pickle.loads(pickle.dumps(index))
    return copy


def parts_of(index: hf.Index, random: np.random.Generator) -> list[np.ndarray]:
    return [random.random(index.num_passages) < share for share in (0.2, 0.6)]


@settings(max_examples=40 if FULL else 5, deadline=None)
@given(seed=st.integers(0, 10**6))
@pytest.mark.parametrize("kind", [EntityLinker, QuestionMatcher, WordMatcher])
def test_a_matcher_that_follows_an_index_is_one_that_is_made_anew(kind: Any, seed: int) -> None:
    with TemporaryDirectory() as folder:
        world = World(Path(folder), seed, words=kind is WordMatcher)
        earlier: list[tuple[Any, Any]] = []
        with world.live:
            matcher = kind(world.live.index)
            matcher.match(QUESTIONS[: seed % len(QUESTIONS)])  # what is made at the first use is made, or not
            for _ in range(12):
                index = world.change()
                matcher, new = matcher.of_state(index), kind(anew(index))
                assert matcher.match(QUESTIONS) == new.match(QUESTIONS)
                earlier.append((matcher, matcher.match(QUESTIONS)))
                for mask in parts_of(index, world.random):
                    part = index.part(mask)
                    assert matcher.part(part).match(QUESTIONS) == kind(anew(part.index)).match(QUESTIONS)
                    if kind is EntityLinker:
                        assert matcher.match(QUESTIONS, allow=mask) == new.match(QUESTIONS, allow=mask)
                        assert len(matcher) == len(new)
        for one, found in earlier:  # the states before answer as they did
            assert one.match(QUESTIONS) == found


def test_two_states_that_follow_the_same_one_do_not_share_what_is_new(tmp_path: Path) -> None:
    world = World(tmp_path, 3, words=False)
    with world.live:
        first = EntityLinker(world.live.index)
        second = world.change()
        third = world.change()
        for index in (third, second, third):
            assert first.of_state(index).match(QUESTIONS) == EntityLinker(anew(index)).match(QUESTIONS)


@settings(max_examples=20 if FULL else 3, deadline=None)
@given(seed=st.integers(0, 10**6))
@pytest.mark.parametrize("words", [False, True])
def test_searches_that_follow_an_index_are_those_of_a_new_retriever(words: bool, seed: int) -> None:
    with TemporaryDirectory() as folder:
        world = World(Path(folder), seed, words=words)
        with world.live:
            recipe = hf.Retriever(world.live, "hybrid-rrf")
            for _ in range(8):
                index = world.change()
                allow = parts_of(index, world.random)[1]
                new = hf.Retriever(anew(index), "hybrid-rrf")
                for how in ({}, {"allow": allow}, {"allow": allow, "allow_scope": "results"}):
                    found, wanted = (one.search(QUESTIONS, k=4, trace=True, **how) for one in (recipe, new))
                    assert np.array_equal(found.hits.ids, wanted.hits.ids)
                    assert np.array_equal(found.hits.scores, wanted.hits.scores)
                    assert found.traces == wanted.traces


def calls_of(work: Callable[[], Any]) -> int:
    """Return how many functions a piece of work calls, of Python and of C: what it would do in a loop over the rows."""
    calls = 0

    def count(frame: Any, event: str, about: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("words", [True, False])
def test_the_work_of_a_change_does_not_grow_with_the_index(words: bool, tmp_path: Path) -> None:
    most = []
    for size in (100, 1000):
        folder = tmp_path / f"{size}"
        rows = [{"id": f"{at}", "text": f"the river {at} flows by the town T{at % 97}"} for at in range(size)]
        names = {} if words else {"entities": [f"Town {at}" for at in range(size)]}
        graph = {} if words else {"graph": [{"src": at, "dst": size + at} for at in range(size)]}
        reader = {"reader": "words"} if words else {}
        hf.Index.build(rows, **names, **graph, **reader).save(folder)
        counts = []
        with hf.Index.open(folder, writable=True) as live:
            matcher = QuestionMatcher(live.index)
            matcher.match(["which town", "is town 3 near"])
            for step in range(9):
                row = {"id": f"new {step}", "text": f"a lake {step} lies by a new town"}
                with live.change() as change:
                    change.add_passages([row])
                    if words:
                        change.add_memory(build_memory(WordReader().read([row])))
                    else:
                        change.add_entities([f"Lake {step}"])
                        change.add_aliases({f"Lake {step}": [f"Alias {step}"]})
                        change.add_edges([{"src": ("passage", row["id"]), "dst": ("entity", f"Lake {step}")}])
                index = live.refresh()

                def follow(index: hf.Index = index, step: int = step) -> None:
                    nonlocal matcher
                    matcher = matcher.of_state(index)
                    matcher.match([f"is lake {step} near town 3"])

                counts.append(calls_of(follow))
        most.append(float(np.median(counts)))
    assert most[1] < 1.2 * most[0] + 50


def test_the_work_of_a_search_after_a_change_does_not_grow_with_the_index(tmp_path: Path) -> None:
    most = []
    for size in (100, 1000):
        folder, random = tmp_path / f"{size}", np.random.default_rng(0)
        rows = [{"id": f"{at}", "text": f"the river {at} flows by the town T{at % 97}"} for at in range(size)]
        hf.Index.build(rows, reader="words", vectors=random.standard_normal((size, 8))).save(folder)
        counts = []
        with hf.Index.open(folder, writable=True) as live:
            retriever = hf.Retriever(live.index, "guided-walk", encoder="none")
            retriever.search(["which town"], vectors=np.ones((1, 8)))
            reader = WordReader.like(live.index.words)
            for step in range(5):
                row = {"id": f"new {step}", "text": f"a lake {step} lies by a new town"}
                with live.change() as change:
                    change.add_passages([row], vectors=random.standard_normal((1, 8)))
                    change.add_memory(build_memory(reader.read([row])))
                index = live.refresh()

                def follow(index: hf.Index = index, step: int = step) -> None:
                    nonlocal retriever
                    retriever = retriever.of_state(index)
                    retriever.search([f"is lake {step} near town 3"], vectors=np.ones((1, 8)), k=5)

                counts.append(calls_of(follow))
        most.append(float(np.median(counts)))
    assert most[1] < 1.05 * most[0]
