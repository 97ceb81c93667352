"""Matchers and words of a part share the tables of the whole index; they find what matchers made of the part find."""

from __future__ import annotations

import pickle
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.extract import EntityLinker, QuestionMatcher, WordMatcher
from hopfuse.lexical import BM25

pytest.importorskip("ahocorasick", reason="names are found with pyahocorasick")

NAMES = [
    "Of",
    "Reading",
    "Time",
    "ISO",
    "Ada King",
    "St. Louis",
    "São Paulo",
    "time zone",
    ".it",
    "Euro",
    "reading",
    "Of",
]
ALIASES = {4: ["Lovelace", "AK"], 6: ["Sampa", "IT"], 9: ["EUR", "EG"], 2: ["Reading"], 10: ["Time"]}
WORDS = ["of", "reading", "time", "zone", "iso", "ada", "king", "town", "lies", "eur", "st", "louis", "river", "rivers"]
QUESTIONS = [
    "Where is Reading?", "where is reading", "where same lies", "the country where of is", "ISO number of euro",
    "the iso number of sao paulo", "IN WHICH TIME ZONE IS ST LOUIS", "ada king and lovelace read eur in .it",
    "time", "what time is it in reading", "Is AK of Sampa?", "rivers of time", "the Time of Reading", "eg reading",
]  # fmt: skip
#: Parts of all sizes: some count words in their own texts, others in those of the whole.
SIZES = (1, 3, 8, 20, 39)


def index_of(seed: int, *, words: bool) -> hf.Index:
    random = np.random.default_rng(seed)
    texts = [" ".join(random.choice([*WORDS, *NAMES], 8)) for _ in range(40)]
    passages = [{"text": text, "title": ["", "Title"][at % 2]} for at, text in enumerate(texts)]
    if words:
        return hf.Index.build(passages, reader="words")
    edges = [{"src": p, "dst": 40 + int(e)} for p in range(40) for e in random.choice(len(NAMES), 3, replace=False)]
    edges.append({"src": 40, "dst": 41, "passage": 3})  # an entity that no allowed passage contains may be there too
    index = hf.Index.build(passages=passages, entities=NAMES, aliases=ALIASES, graph=edges)
    return index.with_lexical(BM25.build(texts).matrix)


def anew(index: hf.Index) -> hf.Index:
    """The same index, which knows nothing of the one that it is a part of."""
    copy: hf.Index = pickle.loads(pickle.dumps(index))
    assert copy.part_of is None
    return copy


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", [EntityLinker, QuestionMatcher, WordMatcher])
def test_matchers_of_parts_find_what_matchers_made_of_the_part_find(kind: Any, seed: int) -> None:
    whole = index_of(seed, words=kind is WordMatcher)
    random, matcher = np.random.default_rng(seed), kind(whole)
    for size in SIZES:
        part = whole.part(np.isin(np.arange(40), random.choice(40, size, replace=False)))
        own = matcher.part(part)
        assert own.match(QUESTIONS) == kind(anew(part.index)).match(QUESTIONS)
        half = part.index.part(np.arange(size) % 2 == 0)
        assert own.part(half).match(QUESTIONS) == kind(anew(half.index)).match(QUESTIONS)
        if kind is EntityLinker:
            assert len(own) == len(kind(anew(part.index)))
            allow = [np.arange(size) % 3 == at % 3 for at in range(len(QUESTIONS))]
            assert own.match(QUESTIONS, allow=allow) == kind(anew(part.index)).match(QUESTIONS, allow=allow)
    assert matcher.match(QUESTIONS) == kind(whole).match(QUESTIONS)  # parts change nothing


def test_a_matcher_of_another_index_is_made_of_the_part_alone() -> None:
    whole, other = index_of(0, words=False), index_of(1, words=False)
    part = whole.part(np.arange(40) < 9)
    assert EntityLinker(other).part(part).match(QUESTIONS) == EntityLinker(anew(part.index)).match(QUESTIONS)


@pytest.mark.parametrize("seed", range(4))
def test_words_of_parts_are_those_of_the_rebuilt_matrix(seed: int) -> None:
    whole = index_of(seed, words=False)
    assert whole.lexical is not None
    leg, random = BM25(whole.lexical), np.random.default_rng(seed)
    for size in SIZES:
        part = whole.part(np.isin(np.arange(40), random.choice(40, size, replace=False)))
        shared = leg.part(part.passages, matrix=part.index.lexical)
        own, copied = leg.part(part.passages), BM25(anew(part.index).lexical)
        half = np.arange(0, size, 2)
        for one, expected in ((shared, copied), (own, copied), (own.part(half), BM25(copied.matrix.part(half)))):
            found, wanted = one.search(QUESTIONS, 5), expected.search(QUESTIONS, 5)
            assert np.array_equal(found.ids, wanted.ids)
            assert np.array_equal(found.scores.view(np.int32), wanted.scores.view(np.int32))
            assert one.matrix.terms == expected.matrix.terms
