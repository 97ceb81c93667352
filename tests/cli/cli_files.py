"""The real command, and small files for it."""

from __future__ import annotations

import io
import itertools
import json
import os
import signal
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import processes
from hopfuse.cli import main
from tiers import FULL

#: A process for each command takes most of these tests' time: the full tier has one, the quick tier runs commands here.
IN_PROCESSES = FULL

TEXTS = [
    "Ada wrote notes on the Engine.",
    "Babbage built the Engine in London.",
    "London is on the Thames.",
    "The Thames flows to the sea.",
    "A program is a list of steps.",
    "Turing thought about machines.",
]
ENTITIES = ["Ada", "Engine", "Babbage", "London", "Thames", "Turing"]
ALIASES = [{"entity": "Ada", "aliases": ["Countess of Lovelace"]}, {"entity": 3, "aliases": ["Londinium"]}]
EDGES = [(0, 6), (0, 7), (1, 8), (1, 7), (1, 9), (2, 9), (2, 10), (3, 10), (5, 11)]
DIM = 8
QUERIES = 300


def command(*args):
    return [sys.executable, "-m", "hopfuse", *map(str, args)]


def run(*args, env=None):
    """Run a command, and return its output and exit code; ``env`` are further variables of the environment."""
    if IN_PROCESSES:
        given = os.environ | (env or {})
        return processes.run(command(*args), capture_output=True, text=True, check=False, env=given)
    return run_here(*args, env=env)


def shown(message, category, filename, lineno, file=None, line=None):
    """Print a warning as a program does, where pytest would collect it."""
    print(warnings.formatwarning(message, category, filename, lineno, line), end="", file=sys.stderr)


def run_here(*args, env=None):
    """Like :func:`run`, in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(),
        patch.dict(os.environ, env or {}),
    ):
        warnings.simplefilter("default")
        warnings.showwarning = shown
        try:
            main([str(arg) for arg in args])
            code = 0
        except SystemExit as left:
            code = left.code or 0
    printed = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(args, code, *printed)


def hopfuse(*args):
    """Run a command that must succeed."""
    done = run(*args)
    assert done.returncode == 0, done.stderr
    return done


#: The environment in which errors are printed as data.
AS_DATA = {"HOPFUSE_ERRORS": "json"}


@dataclass(frozen=True)
class About:
    """What a test expects of an error: its code and field, these of its values, and the end of one of its places."""

    code: str
    field: str | None
    place: str
    values: dict


def about(code, field=None, *, place="", **values):
    """Return what a test expects of a :class:`Refusal`."""
    shown = {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}
    return About(code, field, place, shown)


@dataclass(frozen=True, eq=False)
class Refusal:
    """An error as the command prints it for programs."""

    kind: str
    code: str
    field: str | None
    values: dict
    places: list
    message: str

    def __eq__(self, other):
        if not isinstance(other, About):
            return NotImplemented
        values = {name: self.values.get(name) for name in other.values}
        placed = not other.place or any(place.endswith(other.place) for place in self.places)
        return (self.code, self.field, values) == (other.code, other.field, other.values) and placed

    __hash__ = None


def refused(*args, env=None):
    """Run a command that must fail with exit code 2 and one line without a traceback; return the error."""
    return said_error(run(*args, env=AS_DATA | (env or {})))


def said_error(done):
    """Return the error that a command printed as data; lines of progress may come before it."""
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr
    *bars, line = done.stderr.strip().splitlines()
    known = ("Scoring ", "Verifying ", "Reading ", "Resuming ", "Adding ", "Replacing ")
    assert all(bar.startswith(known) for bar in bars), done.stderr
    given = json.loads(line)["error"]
    return Refusal(kind=given.pop("class"), **given)


DYING = """
import sys
sys.path.insert(0, sys.argv[1])
from cli.cli_files import die_at
die_at(sys.argv[2:5], sys.argv[5:])
"""


def die_at(moment, args):
    """Run a command that kills this process by SIGKILL when it calls ``module.name`` for the nth time."""
    module, name, at = sys.modules[moment[0]], moment[1], int(moment[2])
    call, calls = getattr(module, name), itertools.count(1)

    def dying(*given, **options):
        if next(calls) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **options)

    setattr(module, name, dying)
    main([str(arg) for arg in args])


def killed(moment, *args):
    """Run a command that is killed by SIGKILL when it calls ``module.name`` for the nth time."""
    if IN_PROCESSES:
        program = [sys.executable, "-c", DYING, str(Path(__file__).parents[1]), *map(str, moment), *map(str, args)]
        assert processes.run(program, capture_output=True, check=False).returncode == -signal.SIGKILL
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
        child = os.fork()
    if child == 0:
        try:
            with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
                die_at(moment, args)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read_jsonl(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def write_files(folder):
    """A folder with the inputs of a tiny index, and a few hundred queries."""
    rng = np.random.default_rng(0)
    rows = [{"id": f"p{i}", "title": text.split()[0], "text": text} for i, text in enumerate(TEXTS)]
    write_jsonl(folder / "passages.jsonl", rows)
    np.save(folder / "vectors.npy", rng.normal(size=(len(TEXTS), DIM)).astype(np.float32))
    (folder / "entities.tsv").write_text("name\n" + "\n".join(ENTITIES) + "\n", encoding="utf-8")
    edges = "".join(f"{a}\t{b}\tcontext\t1.0\n" for a, b in EDGES)
    (folder / "edges.tsv").write_text("src\tdst\ttype\tweight\n" + edges + "6\t8\trelation\t2.0\n", encoding="utf-8")
    write_jsonl(folder / "aliases.jsonl", ALIASES)
    asked = [{"id": f"q{i}", "text": f"What of {ENTITIES[i % 6]} and {ENTITIES[i % 5]}?"} for i in range(QUERIES)]
    write_jsonl(folder / "queries.jsonl", asked)
    np.save(folder / "query_vectors.npy", rng.normal(size=(QUERIES, DIM)).astype(np.float32))
    return folder


def build_args(files):
    names = {"vectors": "vectors.npy", "edges": "edges.tsv", "entities": "entities.tsv"}
    options = (x for option, name in names.items() for x in (f"--{option}", files / name))
    return ["build", files / "passages.jsonl", *options]


# ---- The files that the pages' commands read -----------------------------------------------------------------

STATED = [
    ("Alien", "Ridley Scott directed Alien.", ["Ridley Scott", "directed", "Alien"]),
    ("Ridley Scott", "Ridley Scott was born in South Shields.", ["Ridley Scott", "was born in", "South Shields"]),
    ("South Shields", "South Shields lies by the Thames in London.", ["South Shields", "lies by", "Thames"]),
    ("Thames", "The Thames flows through London.", ["Thames", "flows through", "London"]),
]


def write_documented(folder):
    """A folder with passages, facts and judged questions, under the names that the pages of docs/ use."""
    rows = [{"id": at, "title": title, "text": text} for at, (title, text, _) in enumerate(STATED)]
    rows += [{"id": at, "title": f"Number {at}", "text": f"A passage about {at}."} for at in range(len(rows), 14)]
    write_jsonl(folder / "chunks.jsonl", rows)
    write_jsonl(
        folder / "openie.jsonl",
        [{"id": at, "entities": [fact[0]], "triples": [fact]} for at, (_, _, fact) in enumerate(STATED)],
    )
    golds = [(at % 4, (at + 1) % 4) for at in range(16)]
    asked = [{"id": f"q{at}", "question": f"What of {STATED[gold[0]][0]}?"} for at, gold in enumerate(golds)]
    judged = [{"gold": gold, "hops": [[gold[0]], [gold[1]]], "last_hop": [gold[1]]} for gold in golds]
    write_jsonl(folder / "queries.jsonl", [row | more for row, more in zip(asked, judged, strict=True)])
    names = [fact[0] for _, _, fact in STATED]
    kinds = [*(("passage", str(at)) for at in range(14)), *(("entity", name) for name in names)]
    lines = [f"{node}\t{kind}\t{name}\n" for node, (kind, name) in enumerate(kinds)]
    (folder / "nodes.tsv").write_text("".join(lines), encoding="utf-8")
    edges = "".join(f"{at}\t{14 + at}\tcontext\t1.0\n" for at in range(len(names)))
    (folder / "edges.tsv").write_text("src\tdst\ttype\tweight\n" + edges, encoding="utf-8")
    sets = "".join(f'[{name}]\nindex = "my-index"\nqueries = "queries.jsonl"\n' for name in ("news", "films"))
    (folder / "sets.toml").write_text(sets, encoding="utf-8")
    return folder
