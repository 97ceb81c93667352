"""Questions typed in one case reach the encoder as they would be written, with the names of the index."""

from __future__ import annotations

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.extract import EntityLinker, QuestionMatcher
from hopfuse.recipes import GuidedWalk, HybridRRF, PhaseGraph, PolicyRAG, spelled

pytest.importorskip("ahocorasick", reason="names are found by pyahocorasick (extra text)")

NAMES = ["Reading", "St. Louis", "São Paulo", "US", "Reading FC"]
ALIASES = {"US": ["America"], "Reading FC": ["Reading"]}
WRITTEN = "Which county is Reading in?"
TYPED = "which county is reading in?"


class Encoder:
    """Encodes the letters of a text, capitals apart, and keeps the texts that it was given."""

    name, dim, normalize = "letters", 64, True

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def encode_passages(self, texts):
        counts = np.ones((len(texts), self.dim), np.float32)
        for row, text in zip(counts, texts, strict=True):
            np.add.at(row, [ord(c) % self.dim for c in text], 1)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)

    def encode_queries(self, texts):
        self.asked.append(list(texts))
        return self.encode_passages(texts)


@pytest.fixture(scope="module")
def index():
    texts = [f"{name} is a place in a county." for name in NAMES]
    return hf.Index.build(
        passages=[
            {"id": name, "text": text, "metadata": {"odd": at % 2}}
            for at, (name, text) in enumerate(zip(NAMES, texts, strict=True))
        ],
        vectors=Encoder().encode_passages(texts),
        entities=NAMES,
        aliases=ALIASES,
        graph=[{"src": p, "dst": len(NAMES) + p, "type": "context"} for p in range(len(NAMES))],
    )


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        (TYPED, WRITTEN),
        (TYPED.upper(), WRITTEN),
        (WRITTEN, WRITTEN),
        ("Which county is reading in?", "Which county is reading in?"),
        ("is st louis near reading", "Is St. Louis near Reading"),
        ("sao paulo or são paulo", "São Paulo or São Paulo"),
        ("which river flows through america", "Which river flows through America"),
        ("what is the ISO number of são paulo", "What is the ISO number of São Paulo"),
        ("what is the ISO number of SÃO PAULO", "What is the ISO number of São Paulo"),
        ("is there a place", "is there a place"),
        ("IS THERE A PLACE", "IS THERE A PLACE"),
        ("", ""),
    ],
)
def test_names_are_spelled_as_in_the_index(index, typed, read):
    assert spelled([typed], EntityLinker(index).match([typed]), index) == [read]


def test_names_and_numbers_that_were_given_change_no_text(index):
    assert spelled([TYPED], [["reading", 0]], index) == [TYPED]


@pytest.mark.parametrize("kind", [GuidedWalk, PhaseGraph, HybridRRF, PolicyRAG])
@pytest.mark.parametrize("matcher", [EntityLinker, QuestionMatcher])
@pytest.mark.parametrize("allow", [None, [True] * 4 + [False], [[True] * 5, [True, True, False, True, False]]])
def test_a_question_in_lower_case_is_searched_as_it_would_be_written(index, kind, matcher, allow):
    encoder = Encoder()
    recipe = kind(index, encoder=encoder, matcher=matcher(index))
    asked = {"k": 3} if allow is None else {"k": 3, "allow": np.array(allow)}
    written = recipe.search([WRITTEN, "Is St. Louis a place?"], **asked)
    for change in (str.lower, str.upper):
        found = recipe.search(np.array([change(WRITTEN), change("Is St Louis a place?")]), **asked)
        assert found.hits.ids.tolist() == written.hits.ids.tolist()
        assert found.hits.scores.tolist() == written.hits.scores.tolist()
    known = {WRITTEN, "Is St. Louis a place?"}
    if kind is GuidedWalk:  # which is steered by the words beside the names too
        known |= {WRITTEN.replace("Reading", " "), "Is   a place?", "Is  .   a place?"}
    assert {text for texts in encoder.asked for text in texts} <= known


def test_matches_that_were_given_count_and_vectors_that_were_given_stay(index):
    encoder = Encoder()
    recipe, matched = GuidedWalk(index, encoder=encoder), EntityLinker(index).match([TYPED])
    for options in ({}, {"allow": ["Reading", "US"]}):
        recipe.search([TYPED], entities=matched, **options)
        assert encoder.asked == [[WRITTEN], [WRITTEN.replace("Reading", " ")]]
        encoder.asked.clear()
    recipe.search([TYPED], vectors=encoder.encode_passages([TYPED]), entities=matched)
    assert encoder.asked == [[WRITTEN.replace("Reading", " ")]]


def test_an_isolated_search_knows_no_spelling_of_the_passages_that_it_may_not_see(index):
    encoder = Encoder()
    GuidedWalk(index, encoder=encoder, matcher=EntityLinker(index)).search([TYPED], allow=["US"])
    assert encoder.asked == [[TYPED]]


def test_names_typed_without_accents_are_no_other_words(index) -> None:
    """The question is read with the names as the index writes them, and these are what is left out."""
    asked = ["mayor of sao paulo", "In what state is Sao Paulo?", "mayor of st louis"]
    words = hf.lexical.FTS5.build(index.texts)
    recipe = GuidedWalk(index, encoder=Encoder(), matcher=EntityLinker(index), lexical=words)
    traces = recipe.search(asked, trace=True).traces
    assert [trace["other_words"].split() for trace in traces] == [
        ["Mayor", "of"],
        ["In", "what", "state", "is", "?"],
        ["Mayor", "of", "."],
    ]


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("is lodz a town", "Is Łódź a town"),
        ("who made alien", "Who made Alien"),
        ("who made alien (film)", "Who made Alien (film)"),
        ("who is o’hara", "Who is O'Hara"),
        ("is the u.s.a. big", "Is the USA big"),
    ],
)
def test_other_spellings_reach_the_encoder_as_the_index_writes_them(typed: str, read: str) -> None:
    names = ["Łódź", "Alien (film)", "O'Hara", "USA"]
    graph = [{"src": 0, "dst": 1 + at} for at in range(len(names))]
    index = hf.Index.build(passages=[{"text": "-"}], entities=names, graph=graph)
    assert spelled([typed], EntityLinker(index).match([typed]), index) == [read]
