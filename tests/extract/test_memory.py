"""A memory against sums by hand: names, facts, majorities, the typed graph, synonyms."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.extract import Extraction, Predicates, abbreviations, build_memory, canonical_key, similar_pairs
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused


def extraction(id: str, entities: tuple[str, ...] = (), *triples: tuple[str, str, str]) -> Extraction:
    return Extraction(id, f"Title {id}", f"text of {id}", entities, triples)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("The Beatles", "beatles"),
        ("beatles!", "beatles"),
        ("  A   Hard Day's Night ", "hard day s night"),
        ("A. Lovelace", "a lovelace"),
        ('"The Wall"', "wall"),
        ("The", "the"),
        ("C", "c"),
        ("C#", "c#"),
        ("-5", "-5"),
        ("(-5)", "-5"),
        ("5", "5"),
        ("well-known 9-volt", "well known 9 volt"),
        ("1/2", "1/2"),
        ("1-2", "1 2"),
        ("10:30", "10:30"),
        ("3.5 m.", "3.5 m"),
        ("日本。", "日本"),
        ("¿Qué?", "qué"),
        ("|||", "|||"),
        ("AT&T", "at&t"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Jean‐Paul", "jean paul"),
        ("...", "..."),
        ("", ""),
    ],
)
def test_keys_of_names(name: str, key: str) -> None:
    assert canonical_key(name) == key


@given(st.text())
def test_a_keys_spaces_and_case_do_not_count(name: str) -> None:
    key = canonical_key(name)
    assert key == canonical_key(f"  {name}\t")
    assert key == " ".join(key.split())
    assert bool(key) == bool(name.strip())


def test_ids_that_are_integers_stay_integers() -> None:
    memory = build_memory([Extraction(70, "", "Ada wrote.", ("Ada",)), Extraction(7, "", "Ada read.", ("Ada",))])
    assert memory.ids == (70, 7)
    assert list(memory.index().passage_ids) == [70, 7]
    for wrong in (True, 1.0, None):
        with refused(InputError, "type", "id"):
            Extraction(wrong, "", "")


def test_names_of_one_key_are_one_entity_named_as_most_often() -> None:
    read = [
        extraction("a", ("the Beatles", "Ringo")),
        extraction("b", ("The Beatles", "Beatles", "RINGO")),
        extraction("c", ("The  Beatles",), ("Ringo", "plays", "drums")),
    ]
    memory = build_memory(read)
    assert memory.entities == ("The Beatles", "Ringo", "drums")
    assert memory.aliases == (("the Beatles", "Beatles"), ("RINGO",), ())
    assert memory.mentions.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1], [2, 2]]
    assert memory.document_frequency.tolist() == [3, 3, 1]
    assert memory.specificity.tolist() == [0.25, 0.25, 0.5]
    assert memory.lengths.tolist() == [3, 3, 3]


def test_facts_are_merged_and_those_that_say_nothing_make_no_edge() -> None:
    read = [
        extraction("a", (), ("Ada", "was directed by", "Bob"), ("Ada", "is", "Carl"), ("Ada", "likes", "the Ada")),
        extraction("b", (), ("ADA", "Was directed by", "bob"), ("Bob", "was directed by", "Ada")),
        extraction("c", (), ("Ada", "was directed by", "Bob"), ("Ada", "was directed by", "Bob")),
    ]
    memory = build_memory(read)
    assert [(f.head, f.relation, f.tail, f.family, f.passages) for f in memory.facts] == [
        (0, "was directed by", 1, "creation", (0, 1, 2)),
        (1, "was directed by", 0, "creation", (1,)),
    ]
    assert memory.left_out == {"malformed": 0, "generic": 1, "loop": 1, "outvoted": 0}
    assert [0, 2] in memory.mentions.tolist()  # Carl is mentioned, all the same


PLACE = "place of birth"


def test_disagreement_is_resolved_by_the_majority_and_recorded() -> None:
    read = [
        extraction("a", (), ("Ada", PLACE, "Paris"), ("Ada", "visited", "Rome")),
        extraction("b", (), ("Ada", PLACE, "London"), ("Bob", PLACE, "Rome")),
        extraction("c", (), ("Ada", "Place of birth", "London"), ("Bob", PLACE, "Paris"), ("Ada", "visited", "Paris")),
    ]
    memory = build_memory(read)
    name = {entity: number for number, entity in enumerate(memory.entities)}
    assert [(memory.entities[f.head], f.relation, memory.entities[f.tail]) for f in memory.facts] == [
        ("Ada", "visited", "Rome"),
        ("Ada", PLACE, "London"),
        ("Bob", PLACE, "Rome"),  # one passage each: the first stated
        ("Ada", "visited", "Paris"),
    ]
    ada, bob = memory.conflicts
    assert (ada.head, ada.relation, ada.kept, ada.passages) == (name["Ada"], PLACE, name["London"], (1, 2))
    assert ada.dropped == {name["Paris"]: (0,)}
    assert (bob.kept, bob.dropped) == (name["Rome"], {name["Paris"]: (2,)})
    assert memory.left_out["outvoted"] == 2
    assert not build_memory(read, Predicates(functional=())).conflicts


def test_two_values_in_one_passage_do_not_disagree() -> None:
    read = [
        extraction("a", (), ("Ada", PLACE, "London"), ("Ada", PLACE, "England")),
        extraction("b", (), ("Ada", PLACE, "London"), ("Ada", "born in", "1815"), ("Ada", "born in", "London")),
        extraction("c", (), ("Ada", "born in", "Paris")),
    ]
    memory = build_memory(read)
    assert not memory.conflicts
    assert len(memory.facts) == 5
    assert memory.left_out["outvoted"] == 0


NAMES = ["Ada", "the Ada", "Bob", "Carl", "Dora"]
FACTS = st.tuples(st.sampled_from(NAMES), st.sampled_from(["is", "born in", "wrote", "likes"]), st.sampled_from(NAMES))


@given(st.lists(st.tuples(st.lists(st.sampled_from(NAMES), max_size=3), st.lists(FACTS, max_size=4)), max_size=6))
def test_the_graph_is_what_was_counted_by_hand(drawn: list[tuple[list[str], list[tuple[str, str, str]]]]) -> None:
    read = [extraction(str(i), tuple(names), *facts) for i, (names, facts) in enumerate(drawn)]
    memory = build_memory(read, Predicates(functional=()))
    if not memory.entities:
        assert not memory.facts
        return
    number = {canonical_key(name): e for e, name in enumerate(memory.entities)}
    expected: dict[tuple[int, int, str], float] = defaultdict(float)
    family = {"born in": "birth", "wrote": "creation", "likes": "other"}
    for passage, (names, facts) in enumerate(drawn):
        ends = [end for head, _, tail in facts for end in (head, tail)]
        for e in {number[canonical_key(name)] for name in (*names, *ends)}:
            expected[passage, len(read) + e, "context"] = 1.0
        keyed = {(number[canonical_key(h)], r, number[canonical_key(t)]) for h, r, t in facts if r != "is"}
        for head, relation, tail in keyed:
            if head != tail:
                a, b = sorted((len(read) + head, len(read) + tail))
                expected[a, b, family[relation]] += 1.0
    graph = memory.graph()
    src, dst, weight, types = graph.edges()
    kinds = [graph.edge_type_names[t] for t in types]
    rows = zip(src.tolist(), dst.tolist(), kinds, weight.tolist(), strict=True)
    found = {(a, b, kind): w for a, b, kind, w in rows if a < b}
    assert found == dict(expected)
    assert not graph.directed


def test_synonyms_are_edges_and_an_index_holds_it_all() -> None:
    read = [
        Extraction("a", "A", "The International Monetary Fund (IMF) lent.", ("International Monetary Fund",)),
        Extraction("b", "B", "IMF and UN.", ("IMF", "UN")),
    ]
    memory = build_memory(read)
    pairs = memory.abbreviated(abbreviations(memory.texts))
    assert pairs.tolist() == [[0, 1]]
    graph = memory.graph([*pairs.tolist(), [1, 2]], [1.0, 0.5])
    src, dst, weight, types = graph.edges()
    synonym = graph.edge_type_names.index("synonym")
    rows = zip(src.tolist(), dst.tolist(), weight.tolist(), types.tolist(), strict=True)
    assert sorted((a, b, w) for a, b, w, t in rows if t == synonym and a < b) == [(2, 3, 1.0), (3, 4, 0.5)]
    index = memory.index(graph, vectors=np.eye(2, dtype=np.float32))
    assert (list(index.passage_ids), list(index.titles)) == (["a", "b"], ["A", "B"])
    assert tuple(index.entity_names) == memory.entities
    assert index.graph is not None
    assert index.graph.edge_type_names == ("context", "synonym")
    found = hf.recipes.PhaseGraph(index).search(vectors=[[1.0, 0.0]], entities=[["imf"]], k=2)
    assert {passage for passage, _ in found.lists["graph"].row(0)} == {0, 1}
    wrong: list[tuple[Any, tuple[Any, ...]]] = [
        ([[0, 9]], ("unknown", None, {"given": 9})),
        ([[-1, 0]], ("unknown", None, {"given": -1})),
        ([[0, 1, 2]], ("shape", None, {"given": (1, 3)})),
        ([[0.9, 1.7]], ("dtype",)),
        ([1, 1], ("shape", None, {"given": (2,)})),
        ([[1, 1]], ("conflict", None, {"entity": 1})),
        ([[0, 1], [1, 0]], ("duplicate", None, {"given": (0, 1)})),
        ([[0, 1], [2]], ("type",)),
        ([["a", "b"]], ("dtype",)),
        (3, ("type",)),
    ]
    for pairs, error in wrong:
        with refused(InputError, error[0], "synonyms", *error[2:]):
            memory.graph(pairs)
    for similarities, code in (([1.0, 1.0], "shape"), (3, "type"), ([[1.0]], "shape")):
        with refused(InputError, code, "similarities"):
            memory.graph([[0, 1]], similarities)  # type: ignore[arg-type]


def test_nothing_read_is_an_empty_memory_and_ids_are_distinct() -> None:
    memory = build_memory([])
    assert (memory.ids, memory.entities, memory.facts, memory.mentions.shape) == ((), (), (), (0, 2))
    with refused(InputError, "duplicate", "extractions"):
        build_memory([extraction("a"), extraction("a")])
    with refused(InputError, "shape", "triples[0]"):
        Extraction("a", "", "", (), (("a", "b"),))  # type: ignore[arg-type]
    with refused(InputError, "type", "entities[0]"):
        Extraction("a", "", "", (3,))  # type: ignore[arg-type]
    for entities in ("Ada", None):
        with refused(InputError, "type", "entities"):
            Extraction("a", "", "", entities)  # type: ignore[arg-type]
    with refused(InputError, "range", "malformed"):
        Extraction("a", "", "", malformed="x")  # type: ignore[arg-type]
    assert Extraction("a", "", "", ["Ada"], [("a", "b", "c")]).triples == (("a", "b", "c"),)  # type: ignore[arg-type]
    with refused(InputError, "type", "extractions[0]"):
        build_memory(["a"])  # type: ignore[list-item]


def test_predicates_may_be_given() -> None:
    known = Predicates({"rule": ("led", "ruled")}, generic=("met",), functional=("ruled by",))
    assert (known.family("was ruled by"), known.family("born in")) == ("rule", "other")
    assert (known.is_generic("Met"), known.is_generic("is"), known.is_functional("Ruled by")) == (True, False, True)
    assert Predicates().family("died in the city of") == "death"  # the first family that has a word of it
    assert Predicates({"code": ("c#",)}).family("written in C#") == "code"
    for wrong, error in (
        ({"families": {"other": ("x",)}}, ("conflict", "families", {"given": "other"})),
        ({"families": {"synonym": ("x",)}}, ("conflict", "families", {"given": "synonym"})),
        ({"families": {"generic": "likes"}}, ("type", "families['generic']", {"given": "str"})),
        ({"families": {"kin": ("co-founder",)}}, ("syntax", "families['kin']", {"given": "co-founder"})),
        ({"generic": "is"}, ("type", "generic", {"given": "str"})),
    ):
        with refused(InputError, *error):
            Predicates(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("The World Health Organization (WHO) said so.", [("WHO", "World Health Organization")]),
        ("It uses hidden Markov models (HMMs).", [("HMMs", "hidden Markov models")]),
        ("WHO (World Health Organization) said so.", [("WHO", "World Health Organization")]),
        ("Rome (2011) fell. The gas (carbon dioxide) rose.", []),
        ("An end. United Nations (UN; founded 1945)", [("UN", "United Nations")]),
        ("Nothing fits (XYZ) here, nor ( ) nor () there (", []),
        ("IMF (IMF)", []),
        ("He left. It (HLI) was", []),
        ("Department of Homeland Security (DHS)", [("DHS", "Department of Homeland Security")]),
    ],
)
def test_abbreviations(text: str, pairs: list[tuple[str, str]]) -> None:
    assert list(abbreviations([text])) == pairs


def test_abbreviations_take_texts_and_time_that_grows_with_them() -> None:
    for wrong in ("one text", None):
        with refused(InputError, "type", "texts"):
            abbreviations(wrong)  # type: ignore[arg-type]
    assert abbreviations(["word (ab) " * 20_000]) == {}
    far = "United " + "x" * 600 + " Nations (UN)"
    assert abbreviations([far]) == {}


@given(st.lists(st.text(alphabet="ab (A)B.", max_size=40), max_size=3))
def test_no_text_breaks_abbreviations(texts: list[str]) -> None:
    for (short, long), times in abbreviations(texts).items():
        assert times >= 1
        assert long[0].lower() == short[0].lower()
        assert any(long in text for text in texts)


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.floats(-1, 1), st.booleans())
def test_similar_pairs_are_all_of_them(seed: int, count: int, bound: float, typed: bool) -> None:
    draw = np.random.default_rng(seed)
    vectors = draw.standard_normal((count, 3)).astype(np.float32)
    types = [str(kind) for kind in draw.integers(0, 2, count)]
    bounds = {"0": bound, "1": min(1.0, bound + 0.3)}
    least = np.array([bounds[kind] if typed else bound for kind in types])
    unit = vectors.astype(np.float64) / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    cosines = unit @ unit.T
    pairs, similarities = similar_pairs(vectors, bounds if typed else bound, types=types if typed else None)
    needed = np.maximum(least[:, None], least[None, :])
    a, b = np.nonzero(np.triu(cosines >= needed, 1))
    near = np.abs(cosines - needed) < 1e-5  # float32 decides
    listed = {tuple(pair) for pair in pairs.tolist()}
    assert {(i, j) for i, j in zip(a.tolist(), b.tolist(), strict=True) if not near[i, j]} <= listed
    assert all(i < j and (cosines[i, j] >= needed[i, j] or near[i, j]) for i, j in listed)
    assert pairs.tolist() == sorted(pairs.tolist())
    np.testing.assert_allclose(similarities, cosines[pairs[:, 0], pairs[:, 1]], atol=1e-5)


def test_similar_pairs_refuse_what_has_no_bound() -> None:
    vectors = np.eye(2, dtype=np.float32)
    for options, error in (
        ({"min_similarity": 1.5}, ("range", "min_similarity", {"given": 1.5})),
        ({"min_similarity": {"a": 0.5}}, ("unused", "min_similarity")),
        ({"min_similarity": {"a": 0.5}, "types": ["a", "b"]}, ("missing", "min_similarity['b']")),
        (
            {"min_similarity": {"a": 0.5}, "types": ["a", None]},
            ("type", "types[1]", {"given": "NoneType"}),
        ),
        (
            {"min_similarity": {"a": 0.5, "*": 0.5}, "types": [3, "a"]},
            ("type", "types[0]", {"given": "int"}),
        ),
        ({"min_similarity": {"*": 0.5}, "types": ["a", ["b"]]}, ("type", "types[1]", {"given": "list"})),
        ({"types": ["a", 0.5]}, ("type", "types[1]", {"given": "float"})),
        ({"types": "ab"}, ("type", "types", {"given": "str"})),
        ({"types": 2}, ("type", "types", {"given": "int"})),
        (
            {"min_similarity": {"a": True}, "types": ["a", "a"]},
            ("range", "min_similarity['a']", {"given": True}),
        ),
        ({"types": ["a"]}, ("length", "types", {"given": 1})),
    ):
        with refused(InputError, *error):
            similar_pairs(vectors, **options)  # type: ignore[arg-type]
    assert similar_pairs(np.zeros((0, 3), np.float32))[0].shape == (0, 2)


def test_an_index_holds_the_facts_and_who_states_them() -> None:
    read = [
        extraction("a", (), ("Ada", "wrote", "Notes"), ("Ada", "born in", "London")),
        extraction("b", (), ("the Notes", "Wrote", "Ada"), ("Ada", "is", "Ada")),
        extraction("c", ("Engine",), ("ada", "wrote", "notes")),
    ]
    memory = build_memory(read)
    facts = memory.index().facts
    assert facts is not None
    assert (facts.num_passages, facts.num_entities) == (3, len(memory.entities))
    held = [
        (head, facts.relations[relation], tail, tuple(facts.passages[facts.indptr[at] : facts.indptr[at + 1]].tolist()))
        for at, (head, relation, tail) in enumerate(facts.rows.tolist())
    ]
    assert held == [(fact.head, fact.relation, fact.tail, fact.passages) for fact in memory.facts]
    assert held == [(0, "wrote", 1, (0, 2)), (0, "born in", 2, (0,)), (1, "wrote", 0, (1,))]
    assert build_memory([]).index().info()["facts"] == {"facts": 0, "relations": 0, "statements": 0}
