"""The report depends on the rows alone, and summaries are correct."""

from __future__ import annotations

import ast
import copy
import csv
import json
from pathlib import Path

import numpy as np
import pytest

from bench import __main__ as command
from bench.report import files, render
from bench.stats import ratios, summary
from bench.text import seconds, times

ROW = {
    "case": "dense-200k",
    "peer": "faiss",
    "status": "ok",
    "data": "synthetic",
    "sizes": {"vectors": 200_000, "dim": 384, "k": 10, "batch": 32},
    "threads": 2,
    "quick": False,
    "gate": {
        "oracle": {"queries": 2, "error": 1e-8, "tolerance": 1e-6},
        "peer": {"queries": 32, "error": 2e-8, "tolerance": 2e-6},
    },
    "hopfuse": summary([0.010, 0.012, 0.011]),
    "peer_time": summary([0.050, 0.055, 0.052]),
    "ratio": {"of_medians": 4.727, "of_pairs": 4.8},
    "peer_timed_queries": 32,
    "peer_note": "",
    "kernels": ["dense_topk_f32_avx2"],
    "load": {"average_before": 0.1, "other_cores": 0.02},
    "machine": {"cpu": "A CPU", "family_model": None, "flags": ["avx2"], "cores": 2, "system": "Linux x86_64"},
    "commit": "0123456789ab",
    "modified": False,
    "versions": {"python": "3.12.0", "compiler": None, "hopfuse": "0.1.0", "numpy": "2.0.0", "faiss-cpu": "1.9.0"},
}
SKIP = {"case": "ppr-hotpotqa", "peer": "igraph", "status": "skip", "reason": "No module named 'igraph'"}


def test_the_same_rows_give_the_same_page() -> None:
    rows = [ROW, SKIP]
    page = render(rows, "a.jsonl")
    assert page == render(copy.deepcopy(rows), "a.jsonl")
    assert page == render(json.loads(json.dumps(rows)), "a.jsonl")
    for part in ("4.73×", "11.0 ms", "52.0 ms", "0123456789ab", "A CPU", "| faiss | - | 32 |", "| 2 | 4.73× |"):
        assert part in page
    assert "ppr-hotpotqa, igraph: skip: No module named 'igraph'" in page


def test_the_file_of_timings_has_every_pair_with_its_checks() -> None:
    text = files([ROW, SKIP], "a.jsonl")["results/performance-timings.csv"]
    (row,) = csv.DictReader(text.splitlines())
    expected = {
        "case": "dense-200k", "batch": "32", "sizes": "vectors=200000 dim=384 k=10", "peer": "faiss", "threads": "2",
        "peer_threads": "all", "hopfuse_median_s": "0.011", "peer_median_s": "0.052", "ratio": "4.727",
        "ratio_of_pairs": "4.8", "turns": "3", "other_load": "0.02", "oracle_error": "1e-08", "peer_queries": "32",
        "kernels": "dense_topk_f32_avx2", "commit": "0123456789ab", "machine": "A CPU",
        "versions": "python=3.12.0 hopfuse=0.1.0 numpy=2.0.0 faiss-cpu=1.9.0",
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


def test_the_fastest_other_library_stands_first_and_hopfuse_itself_is_none() -> None:
    faster = ROW | {"peer": "numpy-matmul", "ratio": {"of_medians": 2.0, "of_pairs": 2.0}}
    itself = ROW | {"peer": "one-thread", "ratio": {"of_medians": 1.5, "of_pairs": 1.5}}
    page = render([ROW, faster, itself], "a.jsonl")
    assert "| 200,000 × 384 | NumPy | faiss | 32 | 11.0 ms | 52.0 ms | 2 and 1 | 2.00× |" in page
    assert "| faiss | float32 | 2 | 4.73× |" in page
    assert "None of the libraries was faster in any case." in page


def test_a_case_in_which_another_library_is_faster_is_said() -> None:
    page = render([ROW | {"ratio": {"of_medians": 0.9, "of_pairs": 0.9}}], "a.jsonl")
    assert "- 200,000 × 384, 32 at once: faiss takes 52.0 ms, hopfuse 11.0 ms." in page


@pytest.mark.parametrize(("ratio", "warns"), [(2.0, True), (9.0, False)])
def test_a_page_says_where_code_that_was_not_measured_may_be_faster(ratio: float, warns: bool) -> None:
    scipy = ROW | {"case": "ppr-hotpotqa", "peer": "scipy"}
    torch = scipy | {"peer": "torch-sparse", "ratio": {"of_medians": ratio, "of_pairs": ratio}}
    said = (
        "Where only igraph and SciPy were measured, faster code may exist: on the hotpotqa graph it is PyTorch, sparse."
    )
    assert (said in render([scipy, torch], "a.jsonl")) == warns


def test_a_missed_target_is_on_the_page_with_its_cause() -> None:
    missed = ROW | {"case": "ppr-hotpotqa-085", "peer": "igraph", "ratio": {"of_medians": 7.0, "of_pairs": 7.0}}
    missed |= {"sizes": ROW["sizes"] | {"batch": 64}}
    (line,) = (line for line in render([missed], "a.jsonl").splitlines() if "for a target of" in line)
    assert line.startswith(
        "- PPR, damping 0.85 (`ppr-hotpotqa-085`), B = 64, against igraph: 7.00×, for a target of 80.0×"
    )
    assert "0.85 takes more passes" in line
    met = missed | {"ratio": {"of_medians": 90.0, "of_pairs": 90.0}}
    assert "What was missed" not in render([met], "a.jsonl")


def test_quick_rows_and_uncommitted_sources_are_marked() -> None:
    page = render([ROW | {"quick": True, "modified": True}], "a.jsonl")
    assert "quick mode" in page
    assert "uncommitted" in page
    assert "quick mode" not in render([ROW], "a.jsonl")


def test_a_busy_machine_is_noted() -> None:
    disturbed = ROW | {"load": {"average_before": 3.0, "other_cores": 1.4}}
    assert "busy machine" in render([disturbed], "a.jsonl")
    assert "busy machine" not in render([ROW], "a.jsonl")
    assert "busy machine" not in render([ROW | {"load": {"average_before": None, "other_cores": None}}], "a.jsonl")


def test_rows_of_two_machines_stand_apart() -> None:
    other = ROW | {"machine": ROW["machine"] | {"cpu": "Another CPU", "family_model": "6/1"}}
    page = render([ROW, other], "a.jsonl", "b.jsonl")
    first, second = page.index("## On A CPU, 2 cores"), page.index("## On Another CPU (family/model 6/1), 2 cores")
    assert first < page.index("| faiss | - | 32 |") < second < page.rindex("| faiss | - | 32 |")
    assert page.count("Another CPU") == 1


def test_the_command_writes_the_page_and_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, folder = tmp_path / "rows.jsonl", tmp_path / "pages"
    rows.write_text(json.dumps(ROW) + "\n")
    assert command.main(["--report", str(rows), "--out", str(folder)]) == 0
    expected = files([ROW], "rows.jsonl")
    assert {"performance.md", "results/performance-timings.csv", "results/performance-targets.csv"} <= set(expected)
    assert {name: (folder / name).read_text(encoding="utf-8") for name in expected} == expected
    assert capsys.readouterr().out.splitlines() == [str(folder / name) for name in expected]


def test_summary_and_ratios() -> None:
    rng = np.random.default_rng(1)
    ours, theirs = rng.uniform(1, 2, 31).tolist(), rng.uniform(5, 9, 31).tolist()
    found = summary(ours)
    assert found["n"] == 31
    assert found["median"] == pytest.approx(sorted(ours)[15], rel=1e-3)
    assert found["q1"] == pytest.approx(np.quantile(ours, 0.25), rel=1e-3)
    assert found["q3"] == pytest.approx(np.quantile(ours, 0.75), rel=1e-3)
    assert (found["min"], found["max"]) == pytest.approx((min(ours), max(ours)), rel=1e-3)
    pairs = sorted(t / o for o, t in zip(ours, theirs, strict=True))
    assert ratios(ours, theirs)["of_pairs"] == pytest.approx(pairs[15], rel=1e-3)
    assert ratios(ours, theirs)["of_medians"] == pytest.approx(sorted(theirs)[15] / sorted(ours)[15], rel=1e-3)


@pytest.mark.parametrize(
    ("value", "text"), [(2.0, "2.00 s"), (0.0123, "12.3 ms"), (0.456, "456 ms"), (4.2e-5, "42.0 µs")]
)
def test_durations(value: float, text: str) -> None:
    assert seconds(value) == text


def test_ratio_text() -> None:
    assert [times(value) for value in (0.5, 3.14159, 41.27, 412.7)] == ["0.50×", "3.14×", "41.3×", "413×"]


def test_only_public_names_of_hopfuse_are_used(root: Path) -> None:
    files = sorted((root / "bench").rglob("*.py"))
    assert len(files) > 20
    for file in files:
        tree = ast.parse(file.read_text())
        names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
        rooms = {name.split(".")[1] for name in names if name.startswith("hopfuse.")}
        assert rooms <= {
            "adapters",
            "encoders",
            "errors",
            "evaluate",
            "extract",
            "io",
            "lexical",
            "offline",
            "recipes",
            "reference",
            "serve",
            "stores",
        }, file.name
        assert not [name for name in names if name.startswith(("hopfuse.recipes.", "hopfuse.serve."))], file.name
        owned = {d.name for d in ast.walk(tree) if isinstance(d, ast.FunctionDef | ast.AsyncFunctionDef)}
        owned |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
        private = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr.startswith("_")}
        private = {name for name in private if not name.endswith("__")}
        assert private <= owned | {"_start", "_asdict", "_upsert"}, file.name  # the last is of HippoRAG's stores
