"""The commands of docs/start.md and of the pages on evaluation and offline scoring run as written, on small files."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import processes
import pytest
from cli.cli_files import read_jsonl, write_documented

for package in ("wordllama", "bm25s", "Stemmer", "scipy", "jinja2", "matplotlib"):
    pytest.importorskip(package, reason=f"the documented commands use {package}")

ROOT = Path(__file__).parents[2]
#: Pages on evaluation; later ones read runs that the commands of earlier ones wrote.
EVALUATION = ("evaluation", "sweep", "compare", "datasets", "diagnose")
#: Commands that ask a language model, or read its answers.
ASKS_A_MODEL = ("--endpoint", "answered.jsonl", "selftest")
#: Commands that want a Ray cluster: tests/offline/test_ray.py has them.
ON_A_CLUSTER = ("--engine ray",)


def commands(page: str) -> list[list[str]]:
    """Return the commands of a page's shell blocks, without comments."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    found = [shlex.split(line, comments=True) for line in lines if line.startswith("hopfuse ")]
    return [words[1:] for words in found if not any(word in " ".join(words) for word in (*ASKS_A_MODEL, *ON_A_CLUSTER))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with passages, facts and judged questions."""
    monkeypatch.chdir(tmp_path)
    return write_documented(tmp_path)


def test_the_commands_of_start_run(folder, output_of) -> None:
    found = commands("docs/start.md")
    assert [words[0] for words in found] == ["build", "search", "trace", "score"]
    shown = [output_of(*words) for words in found]
    assert "Thames\n   The Thames flows through London." in shown[1]
    assert (folder / "ranked.jsonl").exists()


def write_data_set(data: Path) -> None:
    """Write a folder in the form that docs/datasets.md describes, from the files of the working folder."""
    (data / "graph").mkdir(parents=True)
    for file, place in (("chunks.jsonl", "passages.jsonl"), ("queries.jsonl", "queries.jsonl")):
        shutil.copy(file, data / place)
    for file in ("nodes.tsv", "edges.tsv"):
        shutil.copy(file, data / "graph" / file)
    (data / "graph" / "facts.tsv").write_text("14\tdirected\t15\t0\n", encoding="utf-8")
    for name, rows in (("passage", 14), ("query", 16)):
        np.save(data / f"{name}_emb.f16.npy", np.random.default_rng(rows).normal(size=(rows, 8)).astype(np.float16))


@pytest.mark.full
def test_the_commands_of_evaluation_run(folder, output_of) -> None:
    more = ("--encoder", "wordllama", "--lexical", "--out", "my-index")
    output_of("build", "chunks.jsonl", "--from", "openie.jsonl", *more)
    output_of("policy", "--out", "policy.toml")
    write_data_set(folder / "FOLDER")
    found = [words for page in EVALUATION for words in commands(f"docs/{page}.md")]
    assert {words[0] for words in found} == {"build", "score", "eval", "sweep", "compare", "diagnose"}
    for words in found:
        if words[0] == "sweep":
            shutil.copy("fused.jsonl", "graph.jsonl")
        elif "graph.jsonl" in words:
            Path("graph.jsonl").unlink()
        assert output_of(*words) is not None


def test_the_commands_and_the_program_of_offline_run(folder, output_of) -> None:
    from hopfuse.encoders import WordLlamaEncoder

    rows = read_jsonl(folder / "queries.jsonl")
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    output_of(
        "build",
        "chunks.jsonl",
        "--edges",
        "edges.tsv",
        "--nodes",
        "nodes.tsv",
        "--encoder",
        "wordllama:64",
        "--out",
        "my-index",
    )
    vectors = WordLlamaEncoder(64).encode_queries([row["question"] for row in rows])
    np.save("vectors.npy", vectors)
    more = [row | {"vector": vector.tolist()} for row, vector in zip(rows, vectors, strict=True)]
    parquet.write_table(
        arrow.Table.from_pylist([{k: r[k] for k in ("id", "question", "vector")} for r in more]), "queries.parquet"
    )
    for words in commands("docs/offline.md"):
        output_of(*words)
    program, _ = re.findall(  # the other one wants a Ray cluster
        r"```python\n(.*?)```", (ROOT / "docs" / "offline.md").read_text(encoding="utf-8"), re.DOTALL
    )
    Path("program.py").write_text(
        program.replace('Path("run")', 'Path("again")').replace("ranked.jsonl", "again.jsonl")
    )
    processes.run([sys.executable, "program.py"], check=True)
    assert Path("merged.jsonl").exists()
    assert [row["id"] for row in read_jsonl("again.jsonl")] == [row["id"] for row in rows]
