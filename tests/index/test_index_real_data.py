"""A real corpus and graph: built from files, saved, opened, and compared with the files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hopfuse import Facts
from hopfuse.index import Index
from index.index_files import assert_same, assert_same_facts

from bench.data_sets import data_root

DATA = data_root() / "hotpotqa"
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="no HotpotQA data; set HOPFUSE_DATA to the folder that has it"
)


@pytest.fixture(scope="module")
def nodes() -> list[list[str]]:
    lines = (DATA / "graph" / "nodes.tsv").read_text(encoding="utf-8").split("\n")
    return [line.split("\t") for line in lines if line]


@pytest.fixture(scope="module")
def built(nodes: list[list[str]]) -> Index:
    return Index.build(
        passages=DATA / "passages.jsonl",
        vectors=DATA / "passage_emb.f16.npy",
        graph=DATA / "graph" / "edges.tsv",
        entities=[name for _, kind, name in nodes if kind == "entity"],
        facts=DATA / "graph" / "facts.tsv",
        fact_ends="node",
        storage="float16",
        metric="cosine",
    )


def test_the_index_is_what_the_files_say(built: Index, nodes: list[list[str]]) -> None:
    stats = json.loads((DATA / "graph" / "stats.json").read_text())
    info = built.info()
    assert (info["num_passages"], info["num_entities"]) == (stats["passages"], stats["entities"])
    assert info["graph"]["nodes"] == stats["nodes"] == len(nodes)
    assert info["graph"]["edge_types"]["context"] == stats["context_edges"]
    with open(DATA / "passages.jsonl", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    assert list(built.texts) == [row["text"] for row in rows]
    assert list(built.titles) == [row["title"] for row in rows]
    assert built.vectors is not None
    assert np.array_equal(built.vectors, np.load(DATA / "passage_emb.f16.npy"))
    assert built.entity_names[0] == nodes[built.entity_node(0)][2]


def test_passage_frequency_is_what_a_plain_loop_counts(built: Index) -> None:
    passages: dict[int, set[int]] = {}
    with open(DATA / "graph" / "edges.tsv", encoding="utf-8") as file:
        for line in file:
            a, b = sorted(int(x) for x in line.split("\t")[:2])
            if a < built.num_passages <= b:
                passages.setdefault(b - built.num_passages, set()).add(a)
    expected = [len(passages.get(e, ())) for e in range(built.num_entities)]
    assert built.passage_frequency is not None
    assert built.passage_frequency.tolist() == expected


def test_facts_are_what_a_plain_loop_reads(built: Index, nodes: list[list[str]]) -> None:
    expected: dict[tuple[str, str, str], set[int]] = {}
    with open(DATA / "graph" / "facts.tsv", encoding="utf-8") as file:
        for line in file:
            head, relation, tail, passage = line.rstrip("\n").split("\t")
            expected.setdefault((nodes[int(head)][2], relation, nodes[int(tail)][2]), set()).add(int(passage))
    facts, names = built.facts, list(built.entity_names)
    assert facts is not None
    ends = facts.indptr.tolist()
    assert {
        (names[head], facts.relations[relation], names[tail]): set(facts.passages[ends[at] : ends[at + 1]].tolist())
        for at, (head, relation, tail) in enumerate(facts.rows.tolist())
    } == expected
    by_name = Facts.from_names([(*triple, p) for triple in expected for p in expected[triple]], names, len(built.texts))
    assert_same_facts(by_name, facts)


def test_it_round_trips(built: Index, tmp_path: Path) -> None:
    built.save(tmp_path)
    assert_same(Index.open(tmp_path, verify="full"), built)
