"""Make the folders of data sets from the files that their authors publish."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..folders import read_lines, read_tsv
from .selection import Judged, Selection
from .sets import DataSet

#: A question as its file has it: question, answer, type, and the fields that only some sets have.
Raw = Mapping[str, Any]
#: Yields the questions of a file, each with the title and text of its paragraphs.
Reader = Callable[[Path], Iterator[tuple[Raw, list[tuple[str, str]]]]]


def raw_path(raw: Path, name: str) -> Path:
    """Return a file of ``raw`` by its path there or by its name alone; raise FileNotFoundError if there is none."""
    for path in (raw / name, raw / Path(name).name):
        if path.is_file():
            return path
    raise FileNotFoundError(f"{raw / name} is absent")


def build(one: DataSet, raw: Path, folder: Path, selection: Selection | None = None) -> list[str]:
    """Make the folder of a set from the files in ``raw``; return the names of the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    if one.layout in QUESTIONS:
        return _question_folder(one, raw, folder, selection or Selection.read(one.name))
    return GRAPHS[one.layout](raw, folder)


# ---- Question folders -----------------------------------------------------------------------------------------------


def _question_folder(one: DataSet, raw: Path, folder: Path, selection: Selection) -> list[str]:
    """Write the passages and questions that the selection names."""
    (name,) = one.raw
    read, more = QUESTIONS[one.layout]
    passages: dict[tuple[str, str], None] = {}
    by_id: dict[str, Raw] = {}
    for row, paragraphs in read(raw_path(raw, name)):
        passages.update(dict.fromkeys(paragraphs))
        by_id[row["id"]] = row
    chosen = selection.choose(passages)
    absent = [judged.id for judged in selection.questions if judged.id not in by_id]
    if absent:
        raise ValueError(f"{len(absent)} questions are not in the file, such as {absent[0]}: another release of it?")
    write_lines(
        folder / "passages.jsonl",
        ({"id": at, "title": title, "text": text} for at, (title, text) in enumerate(chosen)),
    )
    split = "train" if one.layout == "musique" else "dev"
    write_lines(
        folder / "queries.jsonl",
        (_judged(by_id[judged.id], judged, split) | more(by_id[judged.id], judged) for judged in selection.questions),
    )
    return ["passages.jsonl", "queries.jsonl"]


def _judged(row: Raw, judged: Judged, split: str) -> dict[str, Any]:
    """Return a line of queries.jsonl; the last hop is known where there are several."""
    return {
        "id": row["id"],
        "split": split,
        "type": row["type"],
        "question": row["question"],
        "answer": row["answer"],
        "aliases": row.get("aliases", []),
        "gold": judged.gold,
        "hops": judged.hops,
        "last_hop": judged.hops[-1] if len(judged.hops) > 1 else [],
    }


def _hotpot(between: str) -> Reader:
    """Return the reader of HotpotQA's form, whose paragraphs are lists of sentences."""

    def read(path: Path) -> Iterator[tuple[Raw, list[tuple[str, str]]]]:
        for row in json.loads(path.read_text(encoding="utf-8")):
            paragraphs = [(title, between.join(sentences)) for title, sentences in row["context"]]
            yield {"id": row["_id"], **{key: row[key] for key in ("type", "question", "answer")}}, paragraphs

    return read


def _musique(path: Path) -> Iterator[tuple[Raw, list[tuple[str, str]]]]:
    for row in read_lines(path):
        asked = {
            "id": row["id"],
            "type": row["id"].partition("__")[0],
            "question": row["question"],
            "answer": row["answer"],
            "aliases": row["answer_aliases"],
            "decomposition": [
                {key: step[key] for key in ("question", "answer")} for step in row["question_decomposition"]
            ],
        }
        yield asked, [(one["title"], one["paragraph_text"]) for one in row["paragraphs"]]


#: Readers of files of questions by layout, and the fields that only one of them has. In HotpotQA's sentences, the space
#: between two stands before the second.
QUESTIONS: dict[str, tuple[Reader, Callable[[Raw, Judged], dict[str, Any]]]] = {
    "hotpot": (_hotpot(""), lambda row, judged: {"hop_order": "heuristic" if len(judged.hops) > 1 else ""}),
    "2wiki": (_hotpot(" "), lambda row, judged: {}),
    "musique": (_musique, lambda row, judged: {"decomposition": row["decomposition"]}),
}


# ---- Knowledge graphs -----------------------------------------------------------------------------------------------


def _metaqa(raw: Path, folder: Path) -> list[str]:
    """Write distinct facts with spaces in the names of relations, the entities, questions and their types."""
    facts = dict.fromkeys(tuple(line.split("|")) for line in _read(raw_path(raw, "kb.txt")))
    relations = dict.fromkeys(relation.replace("_", " ") for _, relation, _ in facts)
    write_tsv(folder / "kb.tsv", ((head, relation.replace("_", " "), tail) for head, relation, tail in facts))
    write_tsv(folder / "entity2text.txt", read_tsv(raw_path(raw, "entity/kb_entity_dict.txt")))
    write_tsv(folder / "relation2text.txt", ((str(at), relation) for at, relation in enumerate(relations)))
    written = ["kb.tsv", "entity2text.txt", "relation2text.txt"]
    for hops in (1, 2, 3):
        for kind, source in (("qa", "vanilla/qa_dev.txt"), ("qtype", "qa_dev_qtype.txt")):
            name = f"{kind}_{hops}hop_dev.txt"
            shutil.copyfile(raw / f"{hops}-hop" / source, folder / name)
            written.append(name)
    return written


def _codex(raw: Path, folder: Path) -> list[str]:
    """Copy the files of the small graph, with the language in the names of labels."""
    names = {f"{part}.txt": f"triples/codex-s/{part}.txt" for part in ("train", "valid", "test")}
    names |= {"entity2types.json": "types/entity2types.json"}
    names |= {f"{kind}.en.json": f"{kind}/en/{kind}.json" for kind in ("types", "relations")}
    for name, source in names.items():
        shutil.copyfile(raw_path(raw, source), folder / name)
    return list(names)


#: Makers of the folders without passages, by layout.
GRAPHS: dict[str, Callable[[Path, Path], list[str]]] = {"metaqa": _metaqa, "codex": _codex}


# ---- Files ----------------------------------------------------------------------------------------------------------


def _read(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def write_tsv(path: Path, rows: Iterable[Iterable[str]]) -> None:
    """Write a tab-separated file."""
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a JSON lines file."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
