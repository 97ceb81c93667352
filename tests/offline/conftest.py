from pathlib import Path

import pytest
from cli.cli_files import write_jsonl
from hopfuse.io import query_file
from hopfuse.offline import Folder, Output, Plan
from hopfuse.offline.files import fingerprints
from hopfuse.offline.plan import versions

ROWS, PART = 95, 10


@pytest.fixture(scope="session")
def queries(tmp_path_factory):
    path = tmp_path_factory.mktemp("queries") / "queries.jsonl"
    return write_jsonl(path, [{"id": f"q{at}", "text": "x" * (at % 7)} for at in range(ROWS)])


@pytest.fixture
def planned(queries, tmp_path):
    """Make a folder with a plan over the queries."""

    def make(name="run", kind="jsonl", part_rows=PART, **scoring):
        output = Output(kind)
        folder = Folder(Path(tmp_path, name))
        plan = Plan(
            str(queries),
            fingerprints({"queries": queries}),
            {"directory": "nowhere"},
            scoring,
            output,
            rows=ROWS,
            part_rows=part_rows,
            offsets=query_file(queries).offsets(part_rows),
            versions=versions(output),
        )
        folder.create(plan)
        return folder

    return make


def parts_of(folder):
    """The bytes of all parts that are there."""
    return {path.name: path.read_bytes() for path in sorted((folder.path / "parts").iterdir())}
