"""What the command line says, as text: options, positional arguments, settings and keys of a policy."""

from __future__ import annotations

import pytest
from cli.cli_files import run
from cli.recipe_files import write_memory

pytest.importorskip("click")
pytest.importorskip("rich")

LINES = [
    (
        "search INDEX Who? --allow-scope results",
        "--allow-scope is given without --allow, --where or --at; add it, or leave it out",
    ),
    ("search INDEX Who? --row 1", "--row is given without --vectors, whose row it is; add it, or leave it out"),
    (
        "search INDEX Who? --vectors V --recipe phase-graph --dense-k 0",
        "--dense-k is 0; it must be a whole number from 1 to 2147483647",
    ),
    (
        "search INDEX Who? --vectors V --recipe triple-hybrid --option hops=0",
        "--option hops is 0; it must be a whole number from 1 to 2147483647",
    ),
    ("search INDEX Who? --option hops", "--option is 'hops'; give a name and a value, such as --option graph_k=50"),
    (
        "trace INDEX Who? --vectors V --recipe policy-rag --option walk.damping=2",
        "--option walk.damping is 2.0; it must be one finite number in [0, 0.999]",
    ),
    (
        "trace INDEX Who? --policy P --recipe policy-rag",
        "P: walk.damping is 2; it must be one finite number in [0, 0.999]",
    ),
    (
        "search INDEX Who? --where year__ge=3",
        "there is no column 'year' to filter by; the index has no metadata: build it with metadata",
    ),
    (
        "search INDEX Who? --where language__in=de,en",
        "there is no column 'language' to filter by; the index has no metadata: build it with metadata. A row's "
        "language is no metadata: give it there as well",
    ),
    ("build --out NEW", "PASSAGES is missing; give it, or --from"),
    (
        "build --reader words --out NEW",
        "--reader is given without PASSAGES or --from, which it reads; add it, or leave it out",
    ),
    (
        "build Q --entities E --nodes N --out NEW",
        "--entities is given beside --nodes, which names the entities, too; leave one of them out",
    ),
    ("score run NEW --shard 3", "--shard is '3'; give a share and the number of shares, such as 2/8"),
    (
        "score INDEX --queries Q --out - --overwrite",
        "--overwrite is given beside --out -, which is not a file; leave one of them out",
    ),
    ("sweep --sets S", "--sets: there is no file 'S'"),
]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = write_memory(tmp_path_factory.mktemp("lines"))
    (folder / "bad.toml").write_text("version = 1\n[walk]\ndamping = 2\n", encoding="utf-8")
    return {
        "INDEX": folder / "index",
        "V": folder / "vectors.npy",
        "P": folder / "bad.toml",
        "Q": folder / "queries.jsonl",
        "NEW": folder / "new",
    }


@pytest.mark.parametrize(("command", "line"), LINES, ids=[command for command, _ in LINES])
def test_a_line_names_what_was_typed(places, command, line):
    done = run(*(places.get(word, word) for word in command.split()))
    assert (done.returncode, done.stderr.replace(f"{places['P']}", "P")) == (2, f"hopfuse: {line}\n")
