"""examples/atlas over folders of questions: every form is answered and measured, and faulty files are refused."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import read_jsonl, write_jsonl
from hopfuse.errors import HopfuseError
from refusals import refused
from rich.console import Console

from examples.atlas import run
from examples.atlas.data import Dataset, folder_data

for package in ("ahocorasick", "bm25s", "wordllama"):
    pytest.importorskip(package, reason="the atlas needs the extra atlas")

FILMS = ["Alien", "Blade Runner", "Gladiator", "Solaris", "Stalker", "Mirror"]
MAKERS = ["Ridley Scott", "Andrei Tarkovsky"]
TOWNS = ["South Shields", "Zavrazhye"]
FACTS = [(film, "directed by", MAKERS[at // 3]) for at, film in enumerate(FILMS)]
FACTS += [(maker, "born in", town) for maker, town in zip(MAKERS, TOWNS, strict=True)]
ENTITIES = [*FILMS, *MAKERS, *TOWNS]
DIM = 8


class Encoder:
    """Vectors of a text's letters, summed by position."""

    name, dim, normalize = "letters", DIM, True

    def encode_passages(self, texts):
        sums = np.array([[sum(map(ord, text[at::DIM])) for at in range(DIM)] for text in texts], np.float32)
        return sums.reshape(-1, DIM) / np.maximum(np.linalg.norm(sums.reshape(-1, DIM), axis=1, keepdims=True), 1)

    encode_queries = encode_passages


def write_passages(folder):
    """Write a passage for each fact, and a question for each film: in which town was its director born?"""
    folder.mkdir()
    rows = [{"id": at, "title": head, "text": f"{head} {verb} {tail}."} for at, (head, verb, tail) in enumerate(FACTS)]
    write_jsonl(folder / "passages.jsonl", rows)
    questions = []
    for at, film in enumerate(FILMS):
        hops = [at, len(FILMS) + at // 3]
        judged = {"gold": hops, "hops": [[hop] for hop in hops], "last_hop": hops[1:], "answer": TOWNS[at // 3]}
        questions.append({"id": f"q{at}", "question": f"In which town was the director of {film} born?", **judged})
    write_jsonl(folder / "queries.jsonl", questions)


def write_openie(folder):
    write_passages(folder)
    rows = [{"id": str(at), "entities": [fact[0], fact[2]], "triples": [fact]} for at, fact in enumerate(FACTS)]
    write_jsonl(folder / "openie.jsonl", rows)


def write_graph(folder):
    """A question's vector is its film's passage's, so that the last hop is found by the graph alone."""
    write_passages(folder)
    (folder / "graph").mkdir()
    names = [("passage", fact[0]) for fact in FACTS] + [("entity", name) for name in ENTITIES]
    write_lines(folder / "graph" / "nodes.tsv", [f"{at}\t{kind}\t{name}" for at, (kind, name) in enumerate(names)])
    node = {name: len(FACTS) + at for at, name in enumerate(ENTITIES)}
    edges = [f"{at}\t{node[end]}\tcontext\t1.0" for at, fact in enumerate(FACTS) for end in (fact[0], fact[2])]
    edges += [f"{node[head]}\t{node[tail]}\trelation\t1" for head, _, tail in FACTS]
    write_lines(folder / "graph" / "edges.tsv", edges)
    facts = [f"{node[head]}\t{relation}\t{node[tail]}\t{at}" for at, (head, relation, tail) in enumerate(FACTS)]
    write_lines(folder / "graph" / "facts.tsv", facts)
    vectors = np.random.default_rng(1).standard_normal((len(FACTS), DIM))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    np.save(folder / "passage_emb.f16.npy", vectors)
    np.save(folder / "query_emb.f16.npy", vectors[: len(FILMS)])
    write_jsonl(folder / "query_entities.jsonl", [{"id": f"q{q}", "entities": [[f, "W"]]} for q, f in enumerate(FILMS)])


def write_metaqa(folder):
    folder.mkdir()
    write_lines(folder / "kb.tsv", ["\t".join(fact) for fact in FACTS])
    write_lines(folder / "entity2text.txt", [f"{at}\t{name}" for at, name in enumerate(ENTITIES)])
    one = [f"[{film}] was directed by whom\t{maker}" for film, _, maker in FACTS[: len(FILMS)]]
    two = [f"where was the director of [{f}] born\t{TOWNS[at // 3]}" for at, f in enumerate(FILMS)]
    three = ["which films have directors born where the director of [Alien] was\tAlien|Blade Runner|Gladiator"]
    for hops, lines in enumerate((one, two, three), 1):
        write_lines(folder / f"qa_{hops}hop_dev.txt", lines)


def write_lines(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def folders(tmp_path):
    """A folder of each form, by its name."""
    writers = {"graph": write_graph, "openie": write_openie, "metaqa": write_metaqa}
    for kind, write in writers.items():
        write(tmp_path / kind)
    return {kind: tmp_path / kind for kind in writers}


@pytest.mark.parametrize("kind", ["graph", "openie", "metaqa"])
def test_every_form_is_answered_and_measured(folders, kind, capsys, monkeypatch):
    monkeypatch.setattr(run, "WordLlamaEncoder", Encoder)
    monkeypatch.setattr(run, "SECONDS", 0.0)
    monkeypatch.setattr(sys, "argv", ["atlas", "--data", str(folders[kind])])
    run.main()
    said = capsys.readouterr().out
    rows = re.findall(r"^ +(dense retrieval|graph walk|\w+) +([\d.]+|-) +[\d.]+ ", said, re.MULTILINE)
    assert [name for name, _ in rows] == [
        "dense retrieval",
        "graph walk",
        "PlainHybrid",
        "GuidedWalk",
        "PhaseGraph",
        "HybridRRF",
        "PolicyRAG",
    ]
    offered = (
        "To ask questions of your own in a browser, add --save atlas-index and then run:\n"
        "  hopfuse serve atlas-index  # pip install 'hopfuse[serve]'\n"
    )
    assert said.index(offered) < said.index("dense retrieval    ") < said.rindex("PolicyRAG")
    found = {name: float(share) for name, share in rows}
    assert found["graph walk"] == 100 or kind == "metaqa"


def test_a_saved_atlas_can_be_served(folders, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(run, "WordLlamaEncoder", Encoder)
    monkeypatch.setattr(run, "SECONDS", 0.0)
    kept = tmp_path / "my index"
    monkeypatch.setattr(
        sys, "argv", ["atlas", "--data", str(folders["openie"]), "--recipe", "phase-graph", "--save", str(kept)]
    )
    run.main()
    command = re.search(r"(hopfuse serve .*\S) +#", capsys.readouterr().out)[1]
    assert shlex.split(command) == ["hopfuse", "serve", f"{kept}"]
    assert hf.Index.open(kept).num_passages == len(FACTS)


def test_numbers_are_the_recipes_own(folders):
    data = folder_data(folders["graph"], Encoder())
    searches = run.make_searches(data, Encoder(), ["phase-graph"])
    vectors = np.load(folders["graph"] / "query_emb.f16.npy")
    recipe = hf.recipes.PhaseGraph(data.index, encoder=Encoder())
    hits = recipe.search(list(data.qrels.questions), vectors=vectors, entities=[[film] for film in FILMS], k=10).hits
    assert run.in_batches(searches["PhaseGraph"], len(FILMS)).ids.tolist() == hits.ids.tolist()
    dense = run.in_batches(searches[run.DENSE], len(FILMS))
    assert dense.ids[:, 0].tolist() == list(range(len(FILMS))), "a question's own film is nearest"


def test_the_question_explained_is_one_that_the_walk_alone_answers(folders):
    data = folder_data(folders["graph"], Encoder())
    rows = {run.DENSE: [0, 1], run.WALK: [2, 7]}
    found = {name: hf.Hits([row] * len(FILMS), [[0.5, 0.2]] * len(FILMS)) for name, row in rows.items()}
    console = Console(width=100, file=StringIO())
    run.explain(console, data, found)
    said = console.file.getvalue()
    assert "For 3 questions" in said
    assert "the director of Solaris born?  Answer: Zavrazhye" in said
    assert re.search(r"Andrei Tarkovsky born in Zavrazhye\. +- +2", said)


def test_questions_are_spread_over_all(folders):
    data: Dataset = folder_data(folders["graph"], Encoder()).take(3)
    assert data.entities == [[FILMS[at]] for at in (0, 2, 4)]
    assert data.qrels.ids == ("q0", "q2", "q4")
    assert len(data.vectors) == 3


def test_passages_describe_the_entities_of_metaqa(folders):
    data = folder_data(folders["metaqa"], Encoder())
    assert list(data.index.titles) == list(data.index.entity_names) == ENTITIES
    scott = ENTITIES.index("Ridley Scott")
    assert data.index.texts[scott].startswith("Alien directed by Ridley Scott. Blade Runner directed by Ridley Scott. ")
    assert data.index.passage_frequency[scott] == 5, "its own, three films' and its town's"
    assert len(data.index.facts) == len(FACTS)
    at = data.qrels.questions.index("Stalker was directed by whom")
    assert [ENTITIES[row] for row in data.qrels.gold[at]] == ["Andrei Tarkovsky"]
    assert data.entities[at] == ["Stalker"]
    assert data.qrels.num_hops.tolist() == [1] * 6 + [2] * 6 + [3]


Spoil = Callable[[Path], None]


def text(file: str, new: str, *, behind: bool = False) -> Spoil:
    """Return what writes another text of a file, or more of it at its end."""

    def write(folder: Path) -> None:
        old = (folder / file).read_text(encoding="utf-8") if behind else ""
        (folder / file).write_text(old + new, encoding="utf-8")

    return write


def rows(file: str, change: Callable[[list[dict]], list[dict]]) -> Spoil:
    return lambda folder: write_jsonl(folder / file, change(read_jsonl(folder / file)))


def vectors(change: Callable[[np.ndarray], np.ndarray]) -> Spoil:
    path = "query_emb.f16.npy"
    return lambda folder: np.save(folder / path, change(np.load(folder / path)))


def no_questions(folder: Path) -> None:
    for hops in (1, 2, 3):
        (folder / f"qa_{hops}hop_dev.txt").write_text("")


METAQA = {
    "a fact short of a column": (
        text("kb.tsv", "Solaris\tdirected by\n", behind=True),
        ("length", None, "kb.tsv, line 9"),
    ),
    "no facts": (text("kb.tsv", ""), ("empty", "kb.tsv", "")),
    "an entity without a number": (text("entity2text.txt", "Alien\n"), ("length", None, "entity2text.txt, line 1")),
    "an answer that is no entity": (
        text("qa_3hop_dev.txt", "who made [Alien]\tAlien|Ridley\n", behind=True),
        ("unknown", "answers", "qa_3hop_dev.txt, line 2"),
    ),
    "a question without answers": (
        text("qa_1hop_dev.txt", "who [Alien]\n"),
        ("length", None, "qa_1hop_dev.txt, line 1"),
    ),
    "no questions": (no_questions, ("empty", "qa_*hop_dev.txt", "")),
    "text that is not UTF-8": (
        lambda folder: (folder / "kb.tsv").write_bytes(b"Am\xe9lie"),
        ("syntax", None, "kb.tsv, line 1"),
    ),
}
GRAPH = {
    "an edge to no node": (text("graph/edges.tsv", "0\tzero\tcontext\t1\n"), ("type", "dst", "edges.tsv, line 1")),
    "an edge short of a column": (text("graph/edges.tsv", "0\n"), ("syntax", None, "edges.tsv, line 1")),
    "a fact of no passage": (text("graph/facts.tsv", "8\tis\t9\t99\n"), ("range", "passage", "facts.tsv, line 1")),
    "a passage less": (rows("passages.jsonl", lambda all: all[:-1]), ("length", "vectors", "")),
    "a node short of a column": (text("graph/nodes.tsv", "0\tentity\n"), ("length", None, "nodes.tsv, line 1")),
    "a name for a line less": (
        rows("query_entities.jsonl", lambda all: all[:-1]),
        ("order", "query_entities.jsonl", ""),
    ),
    "names without kinds": (
        rows("query_entities.jsonl", lambda all: [{**row, "entities": ["Alien"]} for row in all]),
        ("type", "entities", "query_entities.jsonl, line 1"),
    ),
    "names that are no JSON": (
        text("query_entities.jsonl", "Alien\n"),
        ("syntax", None, "query_entities.jsonl, line 1"),
    ),
    "shorter vectors": (vectors(lambda all: all[:, :4]), ("shape", "query_emb.f16.npy", "")),
    "no vectors": (text("query_emb.f16.npy", "none"), ("syntax", "query_emb.f16.npy", "")),
}
PASSAGES = {
    "a gold passage that is not there": (
        rows("queries.jsonl", lambda all: [*all[:-1], {**all[-1], "gold": [99], "hops": [], "last_hop": []}]),
        ("unknown", "gold", "queries.jsonl"),
    ),
    "no questions": (text("queries.jsonl", ""), ("empty", "queries.jsonl", "")),
    "a question without a text": (
        rows("queries.jsonl", lambda all: [{key: row[key] for key in ("id", "gold")} for row in all]),
        ("missing", None, "queries.jsonl, line 1"),
    ),
}
FAULTS = {"metaqa": METAQA, "graph": GRAPH | PASSAGES, "openie": PASSAGES}


@pytest.mark.parametrize(("kind", "fault"), [(kind, fault) for kind, faults in FAULTS.items() for fault in faults])
def test_a_faulty_folder_is_refused_by_file(folders, kind, fault):
    spoil, (code, field, place) = FAULTS[kind][fault]
    spoil(folders[kind])
    with refused(HopfuseError, code, field) as caught:
        folder_data(folders[kind], Encoder())
    assert not place or any(one.endswith(place) for one in caught.value.places)


def test_a_folder_of_another_form_is_refused(tmp_path):
    (tmp_path / "types.json").write_text(json.dumps({}))
    with refused(HopfuseError, "missing", "data") as caught:
        folder_data(tmp_path, Encoder())
    assert all(file in caught.value.allowed for file in ("openie.jsonl", "kb.tsv", "entity2text.txt"))
