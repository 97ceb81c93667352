"""Who states an edge, and the index that some passages alone make; what recipes find there is tested with them."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import FormatError, InputError
from hopfuse.extract import EntityLinker, Extraction, Gazetteer, QuestionMatcher, WordMatcher, WordReader, build_memory
from hopfuse.lexical import BM25, FTS5
from hopfuse.types import EdgeStatements, TermMatrix
from index.index_files import Forge, assert_same, forged, full_index
from refusals import refused

TEXTS = ["A river by the sea.", "The sea is salt.", "Rivers flow; a river is long.", "Salt and sea and salt."]
EDGES: list[dict[str, Any]] = [
    {"src": 0, "dst": 3},
    {"src": 1, "dst": 4},
    {"src": 2, "dst": 5},
    {"src": 3, "dst": 4, "type": "met", "weight": 0.5, "passage": 0},
    {"src": 4, "dst": 3, "type": "met", "weight": 0.25, "passage": 2},
    {"src": 3, "dst": 5, "type": "same", "passage": -1},
    {"src": 4, "dst": 5, "type": "met", "weight": 0.0, "passage": 1},
]


DEFAULTS: dict[str, Any] = {"type": "context", "weight": 1.0}


def table(*changed: dict[str, Any]) -> hf.Index:
    rows = [DEFAULTS | row for row in (*EDGES, *changed)]
    return hf.Index.build(passages=[{"text": "a"}, {"text": "b"}, {"text": "c"}], entities=["x", "y", "z"], graph=rows)


def edges_of(index: hf.Index) -> list[tuple[Any, ...]]:
    assert index.graph is not None
    return sorted(zip(*(part.tolist() for part in index.graph.edges()), strict=True))


def test_an_edge_counts_where_a_passage_that_states_it_is_allowed(tmp_path: Path) -> None:
    table().save(tmp_path)
    for index in (table(), hf.Index.open(tmp_path), hf.Index.open(tmp_path, verify="full")):
        assert index.edge_statements is not None
        assert index.edge_statements.passages.tolist() == [-1, -1, -1, 0, 2, -1]  # an edge of weight 0 is none
        part = index.part(np.array([True, False, False]))
        assert (part.passages.tolist(), part.entities.tolist()) == ([0], [0, 1])
        assert edges_of(part.index) == [(0, 1, 1.0, 0), (1, 2, 0.5, 1)]
        part = index.part(np.array([True, False, True]))
        assert part.entities.tolist() == [0, 1, 2]
        assert edges_of(part.index) == [(0, 2, 1.0, 0), (1, 4, 1.0, 0), (2, 3, 0.75, 1), (2, 4, 1.0, 2)]
        assert index.part(np.zeros(3, bool)).index.num_entities == 0


def test_the_parts_used_last_are_kept_as_far_as_their_bytes_allow() -> None:
    index = table()
    one, two, all_three = np.array([True, False, False]), np.array([False, True, True]), np.ones(3, bool)
    first, second = index.part(one), index.part(two)
    assert index.part(one) is first
    assert index.part(two) is second
    index.part(all_three)
    assert index.part(one) is first
    assert index.parts.nbytes == sum(index.part(mask).nbytes for mask in (all_three, two, one))
    index.keep_parts(index.parts.nbytes)
    index.part(np.array([False, True, False]))  # in place of the one that was used least recently
    assert index.part(one) is first
    assert index.part(two) is second
    index.keep_parts(0)
    assert len(index.parts) == 1
    assert index.part(two) is second
    assert index.part(one) is not first
    assert index.with_facts(None).part(two) is not second
    assert index.part(index.passage_ids[1:]) is index.part(two)
    for allow in (one[:2], np.ones((3, 3), bool)):
        with refused(InputError, "shape", "allow", allowed="a mask of the shape (3,) or (1, 3)"):
            index.part(allow)


def test_threads_that_ask_for_the_same_part_make_it_once() -> None:
    index, masks = table(), [np.array([bool(at & bit) for bit in (1, 2, 4)]) for at in range(1, 8)]
    together = threading.Barrier(4)

    def ask(_: int) -> list[int]:
        together.wait()
        return [id(index.part(mask)) for mask in masks for _ in range(3)]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert all(one == found[0] for one in found)
    assert index.parts.made == len(masks)


def test_a_part_that_cannot_be_made_is_refused_to_all_who_ask() -> None:
    graph = table().graph
    assert graph is not None
    index = hf.Index.build(
        passages=[{"text": "a"}, {"text": "b"}, {"text": "c"}], entities=["x", "y", "z"], graph=graph
    )
    for _ in range(2):
        with refused(InputError, "missing", "allow", count="2 edges"):
            index.part(np.ones(3, bool))
    assert (index.parts.made, len(index.parts)) == (0, 0)


def test_a_part_does_not_outlive_its_use_and_reads_the_strings_of_the_whole() -> None:
    index = table()
    part = index.part(np.array([True, False, True]))
    assert part.index.part_of is not None
    assert part.index.part_of.whole() is index
    assert part.index.part(np.array([True, False])).index.part_of.whole() is part.index  # type: ignore[union-attr]
    again = pickle.loads(pickle.dumps(part))
    assert (again.index.part_of, again.passages.tolist()) == (None, [0, 2])
    assert_same(again.index, part.index)
    kept = weakref.ref(part)
    index.keep_parts(0)
    index.part(np.array([False, True, True]))
    gc.disable()  # nothing but its users holds it: no cycle
    try:
        del part
        assert kept() is None
    finally:
        gc.enable()


def test_edges_without_known_statements_are_refused() -> None:
    rows = [DEFAULTS | {name: value for name, value in row.items() if name != "passage"} for row in EDGES]
    graph = table().graph
    assert graph is not None
    passages = [{"text": "a"}, {"text": "b"}, {"text": "c"}]
    for given in (rows, graph):
        index = hf.Index.build(passages=passages, entities=["x", "y", "z"], graph=given)
        with refused(InputError, "missing", "allow", count="2 edges"):
            index.part(np.ones(3, bool))
    whole = hf.Index.build(
        passages=passages, entities=["x", "y", "z"], graph=graph, statements=EdgeStatements.of_no_passage(graph)
    )
    assert edges_of(whole.part(np.array([True, True, False])).index) == [
        (0, 2, 1.0, 0),
        (1, 3, 1.0, 0),
        (2, 3, 0.75, 1),
    ]
    plain = hf.Index.build(passages=passages, graph=rows[:3])
    assert plain.edge_statements is None
    assert plain.part(np.array([False, True, False])).entities.tolist() == [1]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (
            {"src": 3, "dst": 4, "passage": 3},
            ("range", "passage", {"allowed": "a row 0 .. 2, or -1", "given": 3, "place": "graph[7]"}),
        ),
        ({"src": 3, "dst": 4, "passage": "a"}, ("type", "passage", {"allowed": "an integer", "given": "a"})),
        ({"src": 0, "dst": 4, "passage": 1}, ("conflict", "passage", {"dst": 4, "given": 1, "src": 0})),
    ],
)
def test_a_passage_that_cannot_state_an_edge_is_refused(row: dict[str, Any], expected: tuple[Any, ...]) -> None:
    with refused(InputError, *expected):
        table(row)


def changed(**changes: Any) -> EdgeStatements:
    stated = table().edge_statements
    assert stated is not None
    return EdgeStatements(**({name: getattr(stated, name).copy() for name in vars(stated)} | changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"weights": np.ones(6)}, ("conflict", "statements")),
        ({"types": np.zeros(6, np.uint8)}, ("conflict", "statements")),
        ({"passages": np.full(6, 3, np.int32)}, ("range", "statements", {"given": 3})),
        ({"ends": np.full((6, 2), 9, np.int32)}, ("range", "statements", {"given": 9, "last": 5})),
    ],
)
def test_statements_that_are_not_the_graph_s_are_refused(changes: dict[str, Any], expected: tuple[Any, ...]) -> None:
    passages, stated = [{"text": "a"}, {"text": "b"}, {"text": "c"}], changed(**changes)
    with refused(InputError, *expected):
        hf.Index.build(passages=passages, graph=table().graph, statements=stated)


def test_statements_are_arrays_of_one_length_beside_a_graph() -> None:
    for changes in (
        {"weights": np.zeros(6)},
        {"passages": np.full(6, -3, np.int32)},
        {"types": np.zeros(5, np.uint8)},
        {"ends": np.zeros((6, 2))},
        {"ends": np.full((6, 2), -1, np.int32)},
    ):
        with pytest.raises(InputError):
            changed(**changes)
    with refused(InputError, "type", "statements", given="EdgeStatements"):
        hf.Index.build(passages=[{"text": "a"}], graph=[{"src": 0, "dst": 1}], statements=changed())


def spoil(name: str, at: Any, value: Any) -> Callable[[Forge], None]:
    def change(forge: Forge) -> None:
        forge.array(name)[at] = value

    return change


@pytest.mark.parametrize(
    ("change", "expected", "lazy"),
    [
        (spoil("edge.passage", 0, 3), ("range", "passages", {"last": 2}), True),
        (spoil("edge.passage", 0, -3), ("range", "passages", {"allowed": "at least -2"}), True),
        (spoil("edge.type", 0, 3), ("range", "types"), True),
        (spoil("edge.end", (0, 0), 7), ("range", "ends"), True),
        (spoil("edge.weight", 0, 0.0), ("range", "weights", {"allowed": "above 0"}), True),
        (spoil("edge.weight", 0, 9.0), ("conflict", "statements"), False),
    ],
)
def test_forged_statements_are_refused(
    change: Callable[[Forge], None], expected: tuple[Any, ...], lazy: bool, tmp_path: Path
) -> None:
    full_index().save(tmp_path)
    forged(tmp_path, change)
    with refused(FormatError, *expected):
        hf.Index.open(tmp_path, verify="full")
    if lazy:
        with refused(FormatError, *expected):
            _ = hf.Index.open(tmp_path).edge_statements


def test_a_memory_knows_which_passages_state_its_edges() -> None:
    memory = build_memory(
        [
            Extraction(
                "a", "", "", ("Ada", "Babbage"), (("Ada", "met", "Babbage"),), links=(("near", "Ada", "London"),)
            ),
            Extraction("b", "", "", ("Ada",), (("Ada", "met", "Babbage"), ("Babbage", "knew", "Byron"))),
        ]
    )
    synonyms = memory.graph([[0, 2]], [0.5])
    index = memory.index(synonyms)
    names = list(index.entity_names)
    whole = {(names[a - 2], names[b - 2]): w for a, b, w, _ in edges_of(index) if a >= 2}
    assert whole[("Ada", "Babbage")] == 2.0
    part = index.part(np.array([True, False]))
    known = list(part.index.entity_names)
    alone = {(known[a - 1], known[b - 1]): w for a, b, w, _ in edges_of(part.index) if a >= 1}
    assert alone == {("Ada", "Babbage"): 1.0} | {pair: w for pair, w in whole.items() if "London" in pair}
    assert "Byron" not in known
    other = hf.Graph.from_edges([2], [3], num_nodes=synonyms.num_nodes)
    assert memory.statements(other) is None


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire"])
def test_lexical_legs_count_some_rows_alone(method: str) -> None:
    for rows in ([0, 2, 3], [1], []):
        texts, numbers = [TEXTS[row] for row in rows], np.array(rows, np.int64)
        part, alone = (
            leg.matrix for leg in (BM25.build(TEXTS, method=method).part(numbers), BM25.build(texts, method=method))
        )
        assert part.terms == alone.terms
        for name in ("indptr", "passages", "counts", "scores"):
            assert np.array_equal(getattr(part, name), getattr(alone, name)), name
        for tokenizer in ("porter unicode61", "unicode61 tokenchars '-'"):
            legs = (FTS5.build(TEXTS, tokenizer=tokenizer).part(numbers), FTS5.build(texts, tokenizer=tokenizer))
            ours, theirs = (leg.search(["salt river", "the sea"], 4) for leg in legs)
            assert np.array_equal(ours.ids, theirs.ids)
            assert np.array_equal(ours.scores, theirs.scores)


def test_terms_without_counts_have_no_part() -> None:
    options: dict[str, Any] = {"num_passages": 1, "method": "lucene", "k1": 1.0, "b": 0.5}
    arrays: dict[str, Any] = {"indptr": np.array([0, 1]), "passages": np.zeros(1, np.int32)}
    matrix = TermMatrix(terms=["a"], scores=np.ones(1, np.float32), **arrays, **options)
    with refused(InputError, "missing"):
        BM25(matrix).part(np.array([0]))


def test_matchers_know_the_names_of_a_part_alone() -> None:
    index = hf.Index.build(
        passages=[{"text": "Ada Byron wrote."}, {"text": "Ada met Byron."}],
        entities=["Ada Byron", "Ada", "Byron"],
        aliases={2: ["Lord"]},
        graph=[{"src": 0, "dst": 2}, {"src": 1, "dst": 3}, {"src": 1, "dst": 4}],
    )
    part = index.part(np.array([False, True]))
    gazetteer = Gazetteer(["Ada Byron", "Ada", "Byron"], {2: ["Lord"]})
    question = "Did Ada Byron know the Lord?"
    for matcher in (EntityLinker(index), gazetteer):
        assert [match.surface for match in matcher.match([question])[0]] == ["Ada Byron", "Lord"]
        found = matcher.part(part).match([question])[0]
        assert [(match.surface, int(part.entities[match.entity])) for match in found] == [
            ("Ada", 1),
            ("Byron", 2),
            ("Lord", 2),
        ]
    for cased in (False, True):
        matcher = QuestionMatcher(index, case_sensitive=cased)
        rows = [*matcher.part(part).match([question]), *matcher.match([question])]
        surfaces = [[one if isinstance(one, str) else one.surface for one in row] for row in rows]
        assert surfaces == [["Ada", "Byron", "Lord"], ["Ada Byron", "Lord"]]
    with pytest.raises(InputError):
        Gazetteer(["Ada"]).part(part)
    words = build_memory(WordReader().read([{"text": text} for text in TEXTS])).index()
    part = words.part(np.array([True, False, False, False]))
    alone = WordMatcher(words).part(part).match(["Is the river salt?"])[0]
    assert [(match.surface, words.entity_names[int(part.entities[match.entity])]) for match in alone] == [
        ("river", "river")
    ]
    numbers = QuestionMatcher(words).part(part).match(["Is the river salt?"])[0]
    assert [part.index.entity_names[number] for number in numbers] == ["river"]
