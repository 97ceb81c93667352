"""``hopfuse build`` and ``add`` with files as other programs and people write them."""

from __future__ import annotations

import json

from cli.cli_files import about, hopfuse, refused
from hopfuse import Index

CHUNK = {"id": "a", "text": "one", "metadata": {"source": "x.pdf", "loc": {"lines": {"from": 1, "to": 4}}}}


def test_objects_in_metadata_become_columns_by_choice(tmp_path):
    path, more, out = tmp_path / "p.jsonl", tmp_path / "more.jsonl", tmp_path / "index"
    path.write_text(f"{json.dumps(CHUNK)}\n\n")
    error = refused("build", path, "--out", out)
    assert error == about("type", "metadata.loc", type="flatten", place="p.jsonl, line 1")
    assert "--metadata-type" in error.message
    for kind in ("loc=flatten", "*=flatten"):
        hopfuse("build", path, "--metadata-type", kind, "--out", out, "--overwrite")
        assert Index.open(out).metadata.row(0) == {"source": "x.pdf", "loc.lines.from": 1, "loc.lines.to": 4}
    more.write_text(json.dumps({**CHUNK, "id": "b", "metadata": {"loc": {"lines": {"from": 5}}}}))
    hopfuse("add", out, more)
    assert Index.open(out).metadata.row(1) == {"loc.lines.from": 5}
    assert refused("build", path, "--metadata-type", "*=int64", "--out", out, "--overwrite") == about(
        "choice", "metadata_types['*']"
    )


def test_tables_in_quotes_as_pandas_writes_them(tmp_path):
    out = tmp_path / "index"
    (tmp_path / "p.tsv").write_text('id\ttext\ttitle\na\t"He said ""no"".\nThen left."\tA\n\nb\ttwo\tB\n')
    (tmp_path / "nodes.tsv").write_text(
        '0\tpassage\t"The ""A"""\n1\tpassage\tB\n\n2\tentity\t"Dwayne ""Rock"" Johnson"\n'
    )
    (tmp_path / "edges.tsv").write_text('"src"\t"dst"\t"type"\n"0"\t"2"\t"context"\n')
    files = ("--nodes", tmp_path / "nodes.tsv", "--edges", tmp_path / "edges.tsv")
    hopfuse("build", tmp_path / "p.tsv", *files, "--out", out)
    index = Index.open(out)
    assert list(index.texts) == ['He said "no".\nThen left.', "two"]
    assert list(index.entity_names) == ['Dwayne "Rock" Johnson']
    assert index.info()["graph"]["edge_types"] == {"context": 1}
    (tmp_path / "nodes.tsv").write_text("0\tpassage\tA\n\n1\tpassage\tB\n2\tword\tC\n")
    wrong = refused("build", tmp_path / "p.tsv", *files, "--out", out, "--overwrite")
    assert wrong == about("syntax", "nodes", place="nodes.tsv, line 4")
