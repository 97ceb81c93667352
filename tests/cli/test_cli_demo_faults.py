"""Folders that the demo cannot read: each is refused by what is wrong, where, and what would do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cli.cli_files import read_jsonl, write_jsonl
from cli.demo_folders import ENTITIES, FACTS, write_all
from hopfuse.cli import main
from hopfuse.cli.demo_folders import checked_folder, folder_index
from hopfuse.encoders import WordLlamaEncoder

for package in ("ahocorasick", "wordllama"):
    pytest.importorskip(package)


@pytest.fixture
def folders(tmp_path):
    return write_all(tmp_path)


def text(file: str, new: str, *, behind: bool = False) -> Callable[[Path], None]:
    """Another text of a file, or more of it at its end."""

    def write(folder: Path) -> None:
        old = (folder / file).read_text(encoding="utf-8") if behind else ""
        (folder / file).write_text(old + new, encoding="utf-8")

    return write


def rows(file: str, change: Callable[[list[dict]], list[dict]]) -> Callable[[Path], None]:
    """Other rows of a .jsonl file."""
    return lambda folder: write_jsonl(folder / file, change(read_jsonl(folder / file)))


def vectors(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Path], None]:
    """Other vectors of the questions."""
    path = "query_emb.f16.npy"
    return lambda folder: np.save(folder / path, change(np.load(folder / path)))


def another_node(folder: Path) -> None:
    nodes = [("passage", fact[0]) for fact in FACTS] + [("passage", "more")] + [("entity", name) for name in ENTITIES]
    lines = [f"{at}\t{kind}\t{name}\n" for at, (kind, name) in enumerate(nodes)]
    (folder / "graph" / "nodes.tsv").write_text("".join(lines), encoding="utf-8")


def no_questions(folder: Path) -> None:
    for hops in (1, 2, 3):
        (folder / f"qa_{hops}hop_dev.txt").write_text("")


METAQA = {
    "a fact short of a column": (
        text("kb.tsv", "Solaris\tdirected by\n", behind=True),
        ["kb.tsv, line 9 has 2 columns; it must have 3, separated by tabs: head, relation, tail"],
    ),
    "no facts": (text("kb.tsv", ""), ["kb.tsv has no facts"]),
    "an entity without a number": (
        text("entity2text.txt", "Alien\n"),
        ["entity2text.txt, line 1 has 1 columns", "number, entity"],
    ),
    "an answer that is no entity": (
        text("qa_3hop_dev.txt", "who made [Alien]\tAlien|Ridley\n", behind=True),
        ["qa_3hop_dev.txt, line 2 has the answer 'Ridley', which is no entity of kb.tsv or entity2text.txt"],
    ),
    "a question without answers": (
        text("qa_1hop_dev.txt", "who made [Alien]\n"),
        ["qa_1hop_dev.txt, line 1 has 1 columns", "question, answers"],
    ),
    "no questions": (no_questions, ["has no questions", "qa_*hop_dev.txt are empty; give one of them some"]),
}
GRAPH = {
    "an edge to no node": (text("graph/edges.tsv", "0\tzero\tcontext\t1\n"), ["edges.tsv, line 1", "'zero'"]),
    "an edge short of a column": (text("graph/edges.tsv", "0\n"), ["edges.tsv, line 1 has 1 fields"]),
    "a fact of no passage": (text("graph/facts.tsv", "8\tis\t9\t99\n"), ["facts.tsv, line 1", "99"]),
    "a passage less": (rows("passages.jsonl", lambda all: all[:-1]), ["vectors has 8 rows; there are 7"]),
    "a node for a passage more": (another_node, ["nodes.tsv has 9 passages, passages.jsonl 8; they must agree"]),
    "a name for a line less": (
        rows("query_entities.jsonl", lambda all: all[:-1]),
        ["query_entities.jsonl has 5 lines for the 6 questions of queries.jsonl"],
    ),
    "a name for a line more": (
        rows("query_entities.jsonl", lambda all: [*all, {"id": "q6", "entities": []}]),
        ["query_entities.jsonl has 7 lines for the 6 questions of queries.jsonl"],
    ),
    "names in another order": (
        rows("query_entities.jsonl", lambda all: all[::-1]),
        ["query_entities.jsonl, line 1 is of the question 'q5', where queries.jsonl has 'q0'"],
    ),
    "names without kinds": (
        rows("query_entities.jsonl", lambda all: [{**row, "entities": ["Alien"]} for row in all]),
        ["query_entities.jsonl, line 1 has the entities ['Alien']; they are a list of [name, kind]"],
    ),
    "names that are no JSON": (text("query_entities.jsonl", "Alien\n"), ["query_entities.jsonl, line 1 is not JSON"]),
    "a vector less": (vectors(lambda all: all[:-1]), ["query_emb.f16.npy has shape (5, 8); it must be (6, 8)"]),
    "shorter vectors": (vectors(lambda all: all[:, :4]), ["query_emb.f16.npy has shape (6, 4); it must be (6, 8)"]),
    "no vectors": (text("query_emb.f16.npy", "none"), ["query_emb.f16.npy cannot be read as an .npy array"]),
}
PASSAGES = {
    "a gold passage that is not there": (
        rows("queries.jsonl", lambda all: [*all[:-1], {**all[-1], "gold": [99], "hops": [], "last_hop": []}]),
        ["queries.jsonl has 1 gold passages that passages.jsonl lacks: '99'; gold are ids of passages"],
    ),
    "no questions": (text("queries.jsonl", ""), ["queries.jsonl has no questions; give it a line with id, question"]),
    "a question without a text": (
        rows("queries.jsonl", lambda all: [{key: row[key] for key in ("id", "gold")} for row in all]),
        ["query 'q0' has no text to ask"],
    ),
}
FAULTS = {"metaqa": METAQA, "graph": GRAPH | PASSAGES, "openie": PASSAGES}


@pytest.mark.parametrize(("kind", "fault"), [(kind, fault) for kind, faults in FAULTS.items() for fault in faults])
def test_a_faulty_folder_is_refused(refused_here, folders, kind, fault) -> None:
    spoil, said = FAULTS[kind][fault]
    spoil(folders[kind])
    error = refused_here("demo", "--threads", 1, "--data", folders[kind])
    for part in said:
        assert part in error


@pytest.mark.parametrize("fault", METAQA)
def test_faulty_triples_are_refused(refused_here, folders, fault) -> None:
    spoil, said = METAQA[fault]
    spoil(folders["metaqa"])
    error = refused_here("demo", "--recipe", "triple-hybrid", "--threads", 1, "--data", folders["metaqa"])
    assert all(part in error for part in said), error


def test_text_that_is_not_utf_8_is_refused(refused_here, folders) -> None:
    with (folders["metaqa"] / "kb.tsv").open("ab") as file:
        file.write(b"Am\xe9lie\tin language\tFrench\n")
    assert "kb.tsv, line 9 is not UTF-8" in refused_here("demo", "--data", folders["metaqa"])


def test_edges_and_facts_may_have_headers_as_build_takes_them(folders) -> None:
    folder, encoder = checked_folder(folders["graph"]), WordLlamaEncoder()
    plain = folder_index(folder, encoder)
    for file, header in (("edges", "src\tdst\ttype\tweight\n"), ("facts", "head\trelation\ttail\tpassage\n")):
        path = folder.path / "graph" / f"{file}.tsv"
        path.write_text(header + path.read_text(encoding="utf-8"), encoding="utf-8")
    titled = folder_index(folder, encoder)
    assert json.dumps(titled.info()) == json.dumps(plain.info())
    assert titled.graph.indices.tolist() == plain.graph.indices.tolist()
    assert titled.facts.rows.tolist() == plain.facts.rows.tolist()


def test_questions_without_gold_are_asked_and_not_judged(folders, capsys) -> None:
    unjudged = {"gold": [], "hops": [], "last_hop": []}
    rows("queries.jsonl", lambda all: [row | unjudged for row in all])(folders["graph"])
    with pytest.raises(SystemExit) as left:
        main(["demo", "--threads", "1", "--data", str(folders["graph"])])
    assert left.value.code == 0
    assert "hops unknown: 6" in capsys.readouterr().out
