"""Facts on the command line: given by name or by node, shown; and the errors."""

import json

import pytest
from cli.cli_files import EDGES, ENTITIES, TEXTS, about, build_args, hopfuse
from hopfuse import Index

FACTS = [
    ("Ada", "wrote on", "Engine", 0),
    ("Babbage", "built", "Engine", 1),
    ("Engine", "in", "London", 1),
    ("London", "is on", "Thames", 2),
    ("Babbage", "built", "Engine", 0),
]
COUNTS = {"facts": 4, "relations": 4, "statements": 5}


def write_tsv(path, rows):
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def facts(tmp_path):
    return write_tsv(tmp_path / "facts.tsv", FACTS)


@pytest.fixture
def folder(tmp_path):
    """Nodes, edges and facts by number."""
    nodes = [("passage", text.split()[0]) for text in TEXTS] + [("entity", name) for name in ENTITIES]
    write_tsv(tmp_path / "nodes.tsv", [(node, *row) for node, row in enumerate(nodes)])
    write_tsv(tmp_path / "edges.tsv", [(a, b, "context", 1.0) for a, b in EDGES])
    number = {name: len(TEXTS) + entity for entity, name in enumerate(ENTITIES)}
    write_tsv(tmp_path / "facts.tsv", [(number[head], relation, number[tail], p) for head, relation, tail, p in FACTS])
    return tmp_path


def folder_args(files, folder):
    names = {"nodes": "nodes.tsv", "edges": "edges.tsv", "facts": "facts.tsv"}
    options = (x for option, name in names.items() for x in (f"--{option}", folder / name))
    return ["build", files / "passages.jsonl", *options]


def named(index):
    names, kept = list(index.entity_names), index.facts
    return {
        (names[head], kept.relations[relation], names[tail]): set(kept.passages[kept.indptr[at] : kept.indptr[at + 1]])
        for at, (head, relation, tail) in enumerate(kept.rows.tolist())
    }


EXPECTED = {
    ("Ada", "wrote on", "Engine"): {0},
    ("Babbage", "built", "Engine"): {0, 1},
    ("Engine", "in", "London"): {1},
    ("London", "is on", "Thames"): {2},
}


def test_facts_by_name_are_kept_and_shown(files, facts, tmp_path):
    done = hopfuse(*build_args(files), "--facts", facts, "--out", tmp_path / "index")
    assert "facts: statements" in done.stdout
    assert named(Index.open(tmp_path / "index", verify="full")) == EXPECTED
    output = hopfuse("info", tmp_path / "index", "--verify").stdout
    assert [line.split()[-2] for line in output.splitlines() if "facts:" in line] == ["4", "4", "5"]
    assert json.loads(hopfuse("info", tmp_path / "index", "--json").stdout)["facts"] == COUNTS


def test_a_folder_of_nodes_edges_and_facts_by_number(files, folder):
    hopfuse(*folder_args(files, folder), "--fact-ends", "node", "--out", folder / "index")
    built = Index.open(folder / "index", verify="full")
    assert list(built.entity_names) == ENTITIES
    assert built.info()["facts"] == COUNTS
    assert named(built) == EXPECTED


def test_an_index_without_facts_prints_none(index):
    assert "facts:" not in hopfuse("info", index).stdout
    assert json.loads(hopfuse("info", index, "--json").stdout)["facts"] is None


def test_facts_that_fit_nothing_are_refused(refused_here, files, facts, tmp_path):
    build = [*build_args(files), "--out", tmp_path / "index"]
    unknown = write_tsv(tmp_path / "unknown.tsv", [*FACTS, ("ada", "wrote", "Engine", 0)])
    line = refused_here(*build, "--facts", unknown)
    assert line == about("unknown", "entities", given="ada", place="unknown.tsv, line 6")
    assert refused_here(*build, "--facts", write_tsv(tmp_path / "far.tsv", [("Ada", "wrote", "Engine", 6)])) == about(
        "range", "passage", column="passage", given=6
    )
    assert refused_here(*build, "--fact-ends", "node") == about("unused", "fact_ends", other="facts")
    assert refused_here(*build, "--facts", facts, "--fact-ends", "node") == about(
        "type", "head", column="head", given="Ada"
    )
    assert refused_here(*build, "--facts", tmp_path / "missing.tsv") == about("missing", "facts")
    beside = ["build", "--from", facts, "--facts", facts, "--out", tmp_path / "index"]
    assert refused_here(*beside) == about("conflict", "facts", other="from")
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["0\tpassage"], about("syntax", "nodes", place="line 1")),
        (["1\tpassage\tA"], about("syntax", "nodes", place="line 1")),
        (["0\tword\tA"], about("syntax", "nodes", place="line 1")),
        (["0\tentity\tA", "1\tpassage\tB"], about("order", "nodes", place="line 2")),
        ([*(f"{at}\tpassage\tA" for at in range(5)), "5\tentity\tE"], about("length", "nodes", given="5 passages")),
        ([], about("length", "nodes", given="0 passages")),
        (["\udcff"], about("syntax", "nodes")),
    ],
)
def test_nodes_that_are_none_are_refused(refused_here, files, tmp_path, lines, message):
    nodes = tmp_path / "nodes.tsv"
    nodes.write_bytes("".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape"))
    args = ["build", files / "passages.jsonl", "--nodes", nodes, "--out", tmp_path / "index"]
    assert refused_here(*args) == message
    assert refused_here(*args, "--entities", files / "entities.tsv") == about("conflict", "entities", other="nodes")
    assert not (tmp_path / "index").exists()


def test_nodes_may_end_in_carriage_returns(files, folder):
    nodes = folder / "nodes.tsv"
    inside = ENTITIES[0].encode()  # a name may have one, too
    nodes.write_bytes(nodes.read_bytes().replace(b"\n", b"\r\n").replace(inside, b"a\r" + inside))
    hopfuse(*folder_args(files, folder), "--fact-ends", "node", "--out", folder / "index")
    assert list(Index.open(folder / "index").entity_names) == ["a\r" + ENTITIES[0], *ENTITIES[1:]]
