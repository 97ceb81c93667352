"""The Python code of README.md and docs/ runs as written; every page with Python has a test that runs it."""

from __future__ import annotations

import json
import re
import signal
import socket
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import processes
import pytest
import tiny_cross_encoder

ROOT = Path(__file__).resolve().parents[1]
#: Pages whose Python is run here; each other page has its own test.
HERE = {"compare.md", "diagnose.md", "evaluation.md", "fusion.md", "operate.md", "serving.md", "sweep.md"}


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def run(page: str, number: int, known: dict[str, Any], changes: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a block of a page with the names of the blocks before it; ``changes`` replaces addresses."""
    text = blocks(page)[number]
    for old, new in (changes or {}).items():
        assert old in text
        text = text.replace(old, new)
    exec(compile(text, f"{page}, block {number}", "exec"), known)
    return known


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_every_page_with_python_is_run() -> None:
    others = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)
    )
    pages = {path.name for path in (ROOT / "docs").glob("*.md") if blocks(f"docs/{path.name}")}
    assert pages > HERE
    assert [page for page in sorted(pages - HERE) if f'"{page}"' not in others and f"docs/{page}" not in others] == []


def test_the_files_of_start_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("bm25s", reason="the index has BM25")
    (text,) = re.findall(r"```py\n(.*?)```", (ROOT / "docs/start.md").read_text(encoding="utf-8"), re.DOTALL)
    Path("passages.jsonl").write_text('{"text": "Ada wrote notes."}\n{"text": "The Engine computes."}\n')
    Path("edges.tsv").write_text("src\tdst\ttype\tweight\n0\t2\tcontext\t1\n1\t3\tcontext\t1\n")
    np.save("passage_vectors.npy", np.eye(2, dtype=np.float32))
    known = {"hf": hf, "questions": ["Who wrote notes?"], "question_vectors": np.ones((1, 2), np.float32)}
    exec(compile(text, "docs/start.md", "exec"), known)
    found: Any = known["found"]
    assert found[0][0].text == "Ada wrote notes."
    assert found.traces[0]["seeds"][0]["name"] == "Ada Lovelace"


def test_fusion_runs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lists = {name: hf.Hits.from_lists([list(enumerate(rng.random(6)))] * 2) for name in ("dense", "graph", "lexical")}
    edges = [{"src": at, "dst": 6 + at % 2} for at in range(6)]
    index = hf.Index.build(passages=[{"text": f"{at}"} for at in range(6)], entities=["a", "b"], graph=edges)
    known = {"hf": hf, "index": index, "importance": np.linspace(0, 1, 6), "graph_hits": lists["graph"], **lists}
    assert len(blocks("docs/fusion.md")) == 5
    for number in range(4):
        run("docs/fusion.md", number, known)
    assert known["fused"].counts.tolist() == [6, 6]
    for package in ("torch", "tokenizers", "sentence_transformers"):
        pytest.importorskip(package, reason="a cross-encoder needs the extra encode")
    tiny_cross_encoder.save(tmp_path / "model", 1, sys.modules["torch"], sys.modules["tokenizers"])
    known |= {"hits": lists["dense"], "questions": ["who", "who"], "passages": ["rome"] * 6}
    run("docs/fusion.md", 4, known, {"models/a-cross-encoder": str(tmp_path / "model")})
    assert known["reranked"].counts.tolist() == [6, 6]


def test_serving_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for package in ("starlette", "msgspec", "uvicorn", "httptools", "prometheus_client", "httpx", "pyarrow"):
        pytest.importorskip(package, reason=f"the server's tests use {package}")
    from serve.served import CITIES, TEXTS, Letters, configured, running

    rows = [{"id": f"p{at}", "text": text, "metadata": {"year": 2015 + at}} for at, text in enumerate(TEXTS)]
    edges = [{"src": at, "dst": len(rows) + at} for at in range(len(rows))]
    more: dict[str, Any] = {"encoder": Letters(), "vectors": Letters().encode_passages(TEXTS), "metric": "cosine"}
    hf.Index.build(passages=rows, entities=CITIES, graph=edges, **more).save(tmp_path / "wiki")
    assert (len(blocks("docs/serving.md")), len(blocks("docs/operate.md"))) == (3, 1)
    changed = {"cities": {"path": str(tmp_path / "wiki"), "writable": True}}
    with running(configured("", indexes=changed)) as url:
        known = run("docs/serving.md", 0, {}, {"http://localhost:8080": url, "timeout=5": "timeout=60"})
        assert len(capsys.readouterr().out.splitlines()) == 6
        known |= {"vectors": np.ones((2, Letters.dim), np.float32), "names": [["Lima"], []]}
        run("docs/serving.md", 1, known, {"http://localhost:8080": url})
        assert known["found"].scores.shape == (2, 10)
        run("docs/serving.md", 2, known, {"http://localhost:8080": url})
        assert known["found"].num_rows == 2
    program = "import sys\nfrom serve.served import Letters\nmy_encoder = Letters()\n" + blocks("docs/operate.md")[0]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = program.replace('"wiki-index"', f'"{tmp_path / "wiki"}"').replace("read('", f"read('port = {port}\\n")
    with processes.Popen([sys.executable, "-c", program], cwd=ROOT / "tests") as server:
        try:
            while not is_ready(f"http://127.0.0.1:{port}/health/ready"):
                assert server.poll() is None
                time.sleep(0.05)
        finally:
            server.send_signal(signal.SIGTERM)
    assert server.returncode in (0, -signal.SIGTERM)  # uvicorn shuts down, and then ends by the signal


def test_evaluation_diagnose_and_sweep_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("scipy", reason="intervals need the extra eval")
    pytest.importorskip("matplotlib", reason="plots need the extra eval")
    from hopfuse.evaluate import Qrels

    monkeypatch.chdir(tmp_path)
    names = [f"Name {at}" for at in range(12)]
    texts = [f"What about {name}?" for name in names]
    edges = [{"src": at, "dst": 12 + at} for at in range(12)]
    passages = [{"text": f"{name} is a town."} for name in names]
    index = hf.Index.build(
        passages=passages, vectors=np.eye(12), entities=names, graph=edges, aliases={at: [f"N{at}"] for at in range(12)}
    )
    judged = [{"id": f"q{at}", "question": text, "gold": [at], "last_hop": [at]} for at, text in enumerate(texts)]
    Path("queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in judged))
    for run_name, shift in (("dense", 1), ("fused", 0)):
        hits = [{"id": f"q{at}", "hits": [{"id": at + shift, "score": 1.0}]} for at in range(12)]
        Path(f"{run_name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in hits))
    known: dict[str, Any] = {"index": index, "questions": texts, "mentions": [[name] for name in names]}
    known |= {"vectors": np.eye(12, dtype=np.float32), "entities": known["mentions"]}
    walked = hf.Index.build(passages=passages, entities=names, graph=edges)
    known["recipe"], known["retriever"] = hf.recipes.HybridRRF(walked), hf.Retriever(walked)
    known["qrels"] = Qrels.read_jsonl("queries.jsonl")
    for name, count in (("evaluation", 2), ("compare", 1), ("diagnose", 1), ("sweep", 2)):
        page = f"docs/{name}.md"
        assert len(blocks(page)) == count
        for number in range(count):
            run(page, number, known)
    assert known["figures"].per_query["theirs"]["mrr"].tolist() == [0.5]
    assert known["drawn"].startswith("<svg")
    assert "Comparison(n=12, wins=12" in capsys.readouterr().out
