"""Names in changes of an index: spellings of an entity, and entities that are merged."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.extract import Extraction, WordReader, build_memory
from hypothesis import given, settings
from hypothesis import strategies as st
from index.live_model import differences
from refusals import refused

NAMES = ["electrons", "US", "L'Aquila", "Electrons", "U.S.", "L’Aquila", "the electrons", "Gran\u00adSasso"]


def extraction(at: int, *names: str, facts: tuple[tuple[str, str, str], ...] = ()) -> Extraction:
    return Extraction(f"p{at}", "", f"text {at}", names, facts)


def started(folder: Path, rows: list[Extraction]) -> None:
    build_memory(rows).index().save(folder)


def added(folder: Path, at: int, *names: str, **options: Any) -> hf.Index:
    """Add a passage with names, one edge each, as the server does."""
    with hf.Index.open(folder, writable=True) as live:
        with live.change(**options) as change:
            change.add_passages([{"id": f"p{at}", "text": f"text {at}"}])
            change.add_entities(names, missing=True)
            change.add_edges(
                {"src": ("passage", f"p{at}"), "dst": ("entity", name), "type": "context"} for name in names
            )
        return live.refresh()


def test_names_one_by_one_make_the_entities_of_a_build(tmp_path: Path) -> None:
    rows = [extraction(at, name) for at, name in enumerate(NAMES)]
    whole = build_memory(rows).index()
    started(tmp_path / "memory", rows[:1])
    with hf.Index.open(tmp_path / "memory", writable=True) as live:
        for one in rows[1:]:
            with live.change() as change:
                change.add_passages([{"id": one.id, "text": one.text}])
                change.add_memory(build_memory([one]))
        read = live.refresh()
    started(tmp_path / "names", rows[:1])
    for at, name in enumerate(NAMES[1:], 1):
        named = added(tmp_path / "names", at, name)
    for index in (read, named):
        assert list(index.entity_names) == ["electrons", "US", "L'Aquila", "Gran\u00adSasso"]
        assert list(index.entity_names) == list(whole.entity_names)
        assert list(index.entity_aliases) == list(whole.entity_aliases)
        assert list(index.passage_frequency) == list(whole.passage_frequency)
    assert whole.num_entities == 4


def test_spellings_in_one_change_are_one_entity(tmp_path: Path) -> None:
    started(tmp_path, [extraction(0, "US")])
    index = added(tmp_path, 1, "U.S.", "O’Hara", "O'Hara", "us")
    assert list(index.entity_names) == ["US", "O’Hara"]
    assert list(index.entity_aliases) == [("U.S.", "us"), ("O'Hara",)]
    index = added(tmp_path, 2, "U.S.")
    assert index.num_entities == 2
    assert list(index.entity_aliases) == [("U.S.", "us"), ("O'Hara",)]


def test_an_exact_name_is_meant_before_a_spelling(tmp_path: Path) -> None:
    graph = [{"src": 0, "dst": 1, "type": "context"}]
    hf.Index.build(passages=[{"id": "p0", "text": "t"}], entities=["US", "U.S."], graph=graph).save(tmp_path)
    assert added(tmp_path, 1, "U.S.").passage_frequency.tolist() == [1, 1]
    assert added(tmp_path, 2, "u.s.").passage_frequency.tolist() == [2, 1]


def test_edges_and_facts_may_spell_a_name_that_is_clear(tmp_path: Path) -> None:
    started(tmp_path, [extraction(0, "US", "L'Aquila", facts=(("US", "near", "L'Aquila"),))])
    with hf.Index.open(tmp_path, writable=True) as live:
        with live.change() as change:
            edge = {"src": ("entity", "U.S."), "dst": ("entity", "L’Aquila"), "type": "near", "stated_by": "p0"}
            change.add_edges([edge])
            change.add_facts([("U.S.", "borders", "L’Aquila", "p0")])
            change.add_aliases({"U.S.": ["America"]})
        index = live.refresh()
        assert index.num_entities == 2
        assert index.facts is not None
        assert index.facts.rows.tolist() == [[0, 0, 1], [0, 1, 1]]
        for name in ("Usa", "L Aquilas"):
            change = live.change()
            change.add_facts([(name, "borders", "US", "p0")])
            with refused(InputError, "unknown", None, given=name):
                change.commit()
        change = live.change()
        change.delete_entities(["U.S."])
        with refused(InputError, "unknown", None, given="U.S."):
            change.commit()


def test_a_change_with_a_filter_adds_no_alias(tmp_path: Path) -> None:
    rows = [{"id": "p0", "text": "t", "metadata": {"tenant": "a"}}]
    graph = [{"src": 0, "dst": 1, "type": "context"}]
    hf.Index.build(passages=rows, entities=["US"], graph=graph).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        with live.change(only=hf.where(tenant="a")) as change:
            change.add_passages([{"id": "p1", "text": "t", "metadata": {"tenant": "a"}}])
            change.add_entities(["U.S."], missing=True)
            change.add_edges([{"src": ("passage", "p1"), "dst": ("entity", "U.S.")}])
        index = live.refresh()
    assert (index.num_entities, list(index.entity_aliases), index.passage_frequency.tolist()) == (1, [()], [2])


@pytest.mark.parametrize("held", ["Other", "O’Hara", "O'Hara"])
def test_a_change_with_a_filter_reads_names_whatever_others_hold(tmp_path: Path, held: str) -> None:
    rows = [{"id": "p0", "text": "t", "metadata": {"tenant": "a"}}, {"id": "p1", "text": "t"}]
    graph = [{"src": at, "dst": 2 + at, "type": "context"} for at in range(2)]
    hf.Index.build(passages=rows, entities=["US", held], graph=graph).save(tmp_path)
    only = hf.where(tenant="a")
    with hf.Index.open(tmp_path, writable=True) as live:
        with live.change(only=only) as change:
            change.add_passages([{"id": "p2", "text": "t", "metadata": {"tenant": "a"}}])
            change.add_memory(build_memory([extraction(2, "O'Hara", "U.S.")]))
        index = live.refresh()
    assert index.num_entities == (3 if held == "Other" else 2)
    assert list(index.entity_aliases) == [()] * index.num_entities
    assert index.passage_frequency[0] == 2


FIRST = Path(__file__).parents[1] / "golden" / "rules" / "rule-1-names.hopfuse"


def test_an_index_of_the_first_rule_matches_and_keeps_names_by_it(tmp_path: Path) -> None:
    (tmp_path / "generation-000000000001.hopfuse").write_bytes(FIRST.read_bytes())
    (tmp_path / "CURRENT").write_bytes(b"generation-000000000001.hopfuse\n")
    with hf.Index.open(tmp_path, writable=True) as live:
        with live.change() as change:
            change.add_entities(["O’Hara", "U\u00adSA", "u.s.a."], missing=True)
        index = live.refresh()
        assert list(index.entity_names) == ["O'Hara", "São Paulo", "USA", "艾瑞克", "U\u00adSA"]
        assert list(index.entity_aliases)[:3] == [("O’Hara",), (), ("u.s.a.",)]
        with live.change() as change:
            change.merge_entities({"USA": ["U\u00adSA"]})
        live.compact()
        assert (live.refresh().name_rule, live.index.num_entities) == (1, 4)


# ---- Merging ----

FACTS = (("America", "borders", "Mexico"), ("America", "near", "US"), ("Mexico", "borders", "Cuba"))
ROWS = [
    extraction(0, "US", "Mexico", facts=(("US", "borders", "Mexico"),)),
    extraction(1, "America", "Mexico", facts=FACTS),
    extraction(2, "US", "America"),
    extraction(3, "USA", facts=(("Cuba", "far from", "USA"), ("US", "borders", "Mexico"))),
]
ONE = {"America": "US", "USA": "US"}


def renamed(row: Extraction) -> Extraction:
    """Return an extraction in which the merged names are one."""
    facts = tuple((ONE.get(head, head), relation, ONE.get(tail, tail)) for head, relation, tail in row.triples)
    return Extraction(row.id, row.title, row.text, tuple(ONE.get(name, name) for name in row.entities), facts)


def merged(folder: Path, entities: dict[str, list[str]], **options: Any) -> hf.Index:
    with hf.Index.open(folder, writable=True) as live:
        with live.change(**options) as change:
            change.merge_entities(entities)
        return live.refresh()


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("live_rows", [0, 1, 3])
def test_a_merged_index_has_the_edges_and_facts_of_one_built_with_one_name(
    tmp_path: Path, live_rows: int, compacted: bool
) -> None:
    rows = ROWS[: len(ROWS) - live_rows]
    started(tmp_path, rows)
    with hf.Index.open(tmp_path, writable=True) as live:
        for one in ROWS[len(rows) :]:
            with live.change() as change:
                change.add_passages([{"id": one.id, "text": one.text}])
                change.add_memory(build_memory([one]))
        if compacted:
            live.compact()
        with live.change() as change:
            change.merge_entities({"US": ["America", "USA"]})
        assert live.refresh().seq == change.seq == live_rows + 1
        assert live.history()[-1]["counts"]["deleted entities"] == -2
        index = live.index
        if compacted:
            live.compact()
            assert differences(live.refresh(), index) == []
    whole = build_memory(list(map(renamed, ROWS))).index()
    assert sorted(index.entity_names) == sorted(whole.entity_names)
    at = list(index.entity_names).index("US")
    assert set(index.entity_aliases[at]) == {"America", "USA"}
    assert bool(index.stated[at])
    for name in index.entity_names:
        ours, theirs = (list(one.entity_names).index(name) for one in (index, whole))
        assert index.passage_frequency[ours] == whole.passage_frequency[theirs]
    assert statements(index) == statements(whole)
    assert set(edges(index)) == set(edges(whole))
    assert all(weight == 1 for (kind, *_), weight in edges(index).items() if kind == "context")


def statements(index: hf.Index) -> set[tuple[str, str, str, int]]:
    facts, names = index.facts, index.entity_names
    assert facts is not None
    return {
        (names[head], facts.relations[relation], names[tail], passage)
        for at, (head, relation, tail) in enumerate(facts.rows.tolist())
        for passage in facts.passages[facts.indptr[at] : facts.indptr[at + 1]].tolist()
    }


def edges(index: hf.Index) -> dict[tuple[str, ...], float]:
    assert index.graph is not None
    names = [*index.passage_ids, *index.entity_names]
    columns = (column.tolist() for column in index.graph.edges())
    kinds = index.graph.edge_type_names
    return {(kinds[kind], *sorted((names[a], names[b]))): weight for a, b, weight, kind in zip(*columns, strict=True)}


def test_a_deleted_passage_takes_its_statements_of_a_merged_entity_along(tmp_path: Path) -> None:
    started(tmp_path, ROWS)
    merged(tmp_path, {"US": ["America", "USA"]})
    with hf.Index.open(tmp_path, writable=True) as live:
        with live.change() as change:
            change.delete_passages(["p1"])
        index = live.refresh()
    whole = build_memory([renamed(row) for row in ROWS if row.id != "p1"]).index()
    assert statements(index) == statements(whole)
    assert set(edges(index)) - {("near", "Cuba", "Mexico")} >= set(edges(whole))
    assert not [edge for edge in edges(index) if "p1" in edge]


def test_entities_merge_in_steps_and_beside_other_changes(tmp_path: Path) -> None:
    started(tmp_path / "steps", ROWS)
    merged(tmp_path / "steps", {"America": ["USA"]})
    steps = merged(tmp_path / "steps", {"US": ["America"]})
    started(tmp_path / "once", ROWS)
    once = merged(tmp_path / "once", {"US": ["America", "USA"]})
    assert (statements(steps), edges(steps)) == (statements(once), edges(once))
    started(tmp_path / "more", ROWS)
    with hf.Index.open(tmp_path / "more", writable=True) as live:
        with live.change() as change:
            change.merge_entities({"US": ["America", "USA"]})
            change.delete_passages(["p1"])
            change.delete_entities(["Cuba"])
            change.add_passages([{"id": "p9", "text": "t"}])
            change.add_entities(["USA"], missing=True)
            change.add_edges([{"src": ("passage", "p9"), "dst": ("entity", "USA"), "type": "context"}])
        index = live.refresh()
    assert list(index.entity_names) == ["US", "Mexico"]
    assert edges(index)["context", "US", "p9"] == 1
    assert statements(index) == {("US", "borders", "Mexico", 0), ("US", "borders", "Mexico", 2)}


def test_what_the_change_deletes_is_not_stated_again(tmp_path: Path) -> None:
    started(tmp_path, [*ROWS, extraction(4, "America"), extraction(5, "America")])
    with hf.Index.open(tmp_path, writable=True) as live:
        with live.change() as change:
            change.add_aliases({"America": ["the States", "Columbia"]})
        with live.change() as change:
            change.merge_entities({"US": ["America", "USA"]})
            change.delete_aliases({"America": ["Columbia"]})
            change.delete_facts([("America", "borders", "Mexico")])
            edge = {"src": ("entity", "America"), "dst": ("passage", "p4"), "type": "context"}
            change.delete_edges([edge])
        index = live.refresh()
    assert set(index.entity_aliases[0]) == {"America", "USA", "the States"}
    assert ("context", "US", "p4") not in edges(index)
    assert ("context", "US", "p5") in edges(index)
    assert {passage for head, relation, tail, passage in statements(index) if tail == "Mexico"} == {0, 3}


@pytest.mark.parametrize("name", ["America", "america", "USA", "The States"])
@pytest.mark.parametrize("compacted", [False, True])
def test_a_name_that_went_means_the_entity_that_stayed(tmp_path: Path, name: str, compacted: bool) -> None:
    started(tmp_path, ROWS)
    with hf.Index.open(tmp_path, writable=True) as live:
        with live.change() as change:
            change.merge_entities({"US": ["America", "USA"]})
            change.add_aliases({"US": ["States"]})
        if compacted:
            live.compact()
        before = live.refresh().num_entities
        for at, call in enumerate(("read", "named")):
            with live.change() as change:
                row = extraction(8 + at, name)
                change.add_passages([{"id": row.id, "text": row.text}])
                if call == "read":
                    change.add_memory(build_memory([row]))
                else:
                    change.add_entities([name], missing=True)
                    change.add_edges([{"src": ("passage", row.id), "dst": ("entity", name), "type": "context"}])
        index = live.refresh()
        assert index.num_entities == before
        assert {("context", "US", "p8"), ("context", "US", "p9")} <= set(edges(index))
        with live.change() as change:
            change.delete_aliases({"US": [alias for alias in index.entity_aliases[0] if alias != "US"]})
        with live.change() as change:
            change.add_entities([name], missing=True)
        assert live.refresh().num_entities == before + 1


def test_an_alias_of_two_entities_or_a_code_means_none(tmp_path: Path) -> None:
    graph = [{"src": 0, "dst": 1, "type": "context"}]
    aliases = {"Italy": ["IT", "Bel Paese"], "Rome": ["the City"], "London": ["The City"]}
    rows = [{"id": "p0", "text": "t"}]
    hf.Index.build(passages=rows, entities=[*aliases], aliases=aliases, graph=graph).save(tmp_path)
    names = ["bel-paese", "IT", "it", "The City"]
    assert list(added(tmp_path, 1, *names).entity_names) == ["Italy", "Rome", "London", "it", "The City"]


def test_a_merged_name_is_read_as_the_other_in_the_same_change(tmp_path: Path) -> None:
    started(tmp_path, ROWS)
    with hf.Index.open(tmp_path, writable=True) as live:
        with live.change() as change:
            change.merge_entities({"US": ["America", "USA"]})
            change.add_passages([{"id": "p8", "text": "t"}])
            change.add_memory(build_memory([extraction(8, "America")]))
        assert ("context", "US", "p8") in edges(live.refresh())
        assert "America" not in list(live.index.entity_names)


def test_an_unknown_passage_of_an_edge_stays_unknown(tmp_path: Path) -> None:
    graph = hf.Graph.from_edges([0, 1, 2], [1, 3, 3], num_nodes=4)
    hf.Index.build(passages=[{"id": "p0", "text": "t"}], entities=["US", "USA", "Mexico"], graph=graph).save(tmp_path)
    index = merged(tmp_path, {"US": ["USA"]})
    kind = graph.edge_type_names[0]
    assert edges(index) == {(kind, "US", "p0"): 1, (kind, "Mexico", "US"): 2}
    assert index.edge_statements is not None
    assert set(index.edge_statements.passages.tolist()) == {-2}


def test_bad_merges_are_refused_and_change_nothing(tmp_path: Path) -> None:
    started(tmp_path, ROWS)
    with hf.Index.open(tmp_path, writable=True) as live:
        for given, error in (
            ({"US": ["US"]}, ("conflict", "merge", {"given": "US"})),
            ({"US": ["America"], "Mexico": ["America"]}, ("conflict", "merge", {"given": "America"})),
            ({"US": ["America"], "America": ["Mexico"]}, ("conflict", "merge", {"given": "America"})),
            ({"US": ["nobody"]}, ("unknown", None, {"given": "nobody"})),
            ({"nobody": ["US"]}, ("unknown", None, {"given": "nobody"})),
        ):
            change = live.change()
            change.merge_entities(given)
            with refused(InputError, *error[:2], **error[2]):
                change.commit()
        for given, error in (({"US": "America"}, ("type", "merge['US']")), ([("US", "A")], ("type", "merge"))):
            with refused(InputError, *error):
                live.change().merge_entities(given)  # type: ignore[arg-type]
        change = live.change(only=hf.where(tenant="a"))
        change.merge_entities({"US": ["America"]})
        with refused(InputError, "denied", None):
            change.commit()
        assert live.refresh().seq == 0


@settings(max_examples=settings().max_examples // 4)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=12),
    st.integers(0, 4),
    st.integers(0, 4),
)
def test_merging_any_two_keeps_the_neighbours_of_both(
    tmp_path_factory: Any, pairs: list[tuple[int, int]], kept: int, other: int
) -> None:
    folder = tmp_path_factory.mktemp("index")
    names = [f"n{at}" for at in range(5)]
    graph = hf.Graph.from_edges([p for p, _ in pairs], [4 + e for _, e in pairs], num_nodes=9)
    rows = [{"id": f"p{at}", "text": "t"} for at in range(4)]
    hf.Index.build(passages=rows, entities=names, graph=graph).save(folder)
    if kept == other:
        return
    index = merged(folder, {names[kept]: [names[other]]})
    expected = {tuple(sorted((f"p{p}", names[kept if e == other else e]))) for p, e in pairs}
    assert {edge[1:] for edge in edges(index)} == expected
    counts = np.bincount([names.index(name) for name, _ in expected], minlength=5)
    assert [int(counts[names.index(name)]) for name in index.entity_names] == index.passage_frequency.tolist()


def test_the_first_change_after_a_compaction_reads_no_other_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    class Spy:
        def __init__(self, name: str) -> None:
            self.own = original(name)

        def stemWords(self, words: list[str]) -> list[str]:  # noqa: N802
            read.extend(words)
            return list(self.own.stemWords(words))

    original = import_module("Stemmer").Stemmer
    reader = WordReader()
    rows = [{"id": at, "text": f"rivers {' '.join(f'w{at}x{i}' for i in range(9))}"} for at in range(30)]
    build_memory(reader.read(rows[:20])).index().save(tmp_path)

    def add(live: hf.LiveIndex[hf.Index], row: dict[str, Any]) -> None:
        with live.change() as change:
            change.add_passages([row])
            change.add_memory(build_memory(reader.read([row])))

    with hf.Index.open(tmp_path, writable=True) as live:
        add(live, rows[20])
        with live.change() as change:
            change.delete_passages([3])
        live.compact()
        with monkeypatch.context() as patch:
            patch.setattr("Stemmer.Stemmer", Spy)
            add(live, rows[21] | {"text": "A river is long."})
        assert read
        assert {word for word in read if word.startswith("w")} == set()
        index = live.refresh()
    assert [name for name in index.entity_names if name.startswith("river")] == ["rivers"]
    assert index.passage_frequency is not None
    assert index.passage_frequency[list(index.entity_names).index("rivers")] == 21
