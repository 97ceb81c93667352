from dataclasses import replace
from pathlib import Path

import pytest
from cli.cli_files import write_jsonl
from hopfuse import Index
from hopfuse.offline import Folder, Output, make_plan

ROWS, PART = 95, 10


@pytest.fixture(scope="session")
def queries(tmp_path_factory):
    path = tmp_path_factory.mktemp("queries") / "queries.jsonl"
    return write_jsonl(path, [{"id": f"q{at}", "text": "x" * (at % 7)} for at in range(ROWS)])


@pytest.fixture(scope="session")
def an_index(tmp_path_factory):
    """The directory of an index that no scorer reads."""
    directory = tmp_path_factory.mktemp("index") / "index"
    Index.build(passages=[{"text": "A river."}]).save(directory)
    return directory


@pytest.fixture
def planned(queries, an_index, tmp_path):
    """Make a folder with a plan over the queries, for scorers that open no index."""

    def make(name="run", kind="jsonl", part_rows=PART, **scoring):
        folder = Folder(Path(tmp_path, name))
        plan = make_plan(queries, an_index, scoring=scoring, output=Output(kind), part_rows=part_rows)
        folder.create(replace(plan, index={"directory": "nowhere"}))
        return folder

    return make


def parts_of(folder):
    """The bytes of all parts that are there."""
    return {path.name: path.read_bytes() for path in sorted((folder.path / "parts").iterdir())}
