"""The shell commands of docs/start.md and the guides run as written, in page order, in a fresh folder and environment.

The folder is a copy of the checkout without the package's sources, with small files under the names that the pages use.
``pip install '.[extras]'`` installs a wheel of the checkout with exactly these extras, so that a page that leaves one
out fails. What cannot run here is in ``NOT_RUN``, with the reason that the report of the tests shows.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from adapters.hipporag_memory import write_outputs
from cli.cli_files import read_jsonl, write_documented

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("start.md", *sorted(f"guides/{path.name}" for path in (ROOT / "docs" / "guides").glob("*.md")))
BUILD = "hopfuse build chunks.jsonl --reader words --encoder wordllama --out my-index"
#: Commands that are not run, by page and beginning, and why.
NOT_RUN = {
    ("guides/answers.md", "python examples/answers.py"): "needs a model; tests/examples/test_answers.py has a server",
    ("guides/cpp.md", "cmake"): "writes to /opt; tests/build/test_cpp_package.py installs elsewhere",
    ("guides/cpp.md", "build/example/example"): "is built by the commands before it, which write to /opt",
    ("guides/gpu.md", "hopfuse selftest"): "needs a GPU; tests/cuda and the emulator run its cases",
    (
        "guides/research.md",
        "python -m experiments.side_by_side",
    ): "needs data sets; tests/experiments has small ones",
}
#: What a page takes for granted: commands that make it, which run in the page's environment.
BEFORE = {
    "guides/offline.md": ["hopfuse build chunks.jsonl --reader words --out my-index"],
    "guides/service.md": [BUILD],
    "guides/research.md": [
        BUILD,
        "hopfuse score my-index --queries queries.jsonl --recipe phase-graph --out mine.trec",
        "hopfuse score my-index --queries queries.jsonl --recipe plain-hybrid --out dense.trec",
    ],
}
SERVED = "http://127.0.0.1:8080"


def commands(page: str) -> list[str]:
    """Return the commands of a page's shell blocks, without comments."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [command for line in lines if (command := re.sub(r"\s+# .*|^# .*", "", line).strip())]


def why_not(page: str, command: str) -> str | None:
    """Return why a command is not run, or None."""
    found = [reason for (of, begins), reason in NOT_RUN.items() if of == page and command.startswith(begins)]
    return found[0] if found else None


LEFT_OUT = [(page, command) for page in PAGES for command in commands(page) if why_not(page, command)]


@pytest.mark.parametrize(("page", "command"), LEFT_OUT)
def test_a_command_is_not_run(page: str, command: str) -> None:
    pytest.skip(f"docs/{page}: `{command}` {why_not(page, command)}")


def test_every_reason_belongs_to_a_command() -> None:
    stale = [one for one in NOT_RUN if not any(page == one[0] and text.startswith(one[1]) for page, text in LEFT_OUT)]
    assert stale == []
    assert set(BEFORE) <= set(PAGES)


# ---- A page's environment --------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the checkout: of the full tier, or built here."""
    given = os.environ.get("HOPFUSE_WHEEL")
    if given:
        return Path(given)
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT], check=True)
    (made,) = folder.glob("hopfuse-*.whl")
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the checkout without the package, and the files that pages name."""
    target = tmp_path / "checkout"
    left_out = shutil.ignore_patterns(".*", "build", "python", "tests", "shared", "__pycache__")
    shutil.copytree(ROOT, target, ignore=left_out)
    write_documented(target)
    shutil.copy(target / "queries.jsonl", target / "questions.jsonl")
    rows = read_jsonl(target / "queries.jsonl")
    judged = "".join(f"{row['id']} 0 {gold} 1\n" for row in rows for gold in row["gold"])
    (target / "qrels.trec").write_text(judged, encoding="utf-8")
    write_outputs(target / "outputs", "gpt-4o-mini", "gpt-4o-mini_recorded_words")
    return target


@pytest.fixture
def shell(folder: Path, tmp_path: Path, wheel: Path) -> Callable[[str], str]:
    """Run a command in the folder, with a fresh environment's programs first; it must succeed."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "OPENAI_API_KEY", "OPENAI_BASE_URL")
    variables = {name: value for name, value in os.environ.items() if name not in hidden}
    variables |= {"PATH": f"{tmp_path / 'venv' / 'bin'}:{os.environ['PATH']}", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def run(command: str) -> str:
        done = subprocess.run(
            ["bash", "-ec", from_wheel(command, wheel)],
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done.stdout

    run.variables = variables  # type: ignore[attr-defined]
    return run


def from_wheel(command: str, wheel: Path) -> str:
    """Return a command that installs the wheel where the page installs the checkout."""
    return re.sub(r"(?<=^pip install )'\.(\[[\w,-]+\])'", rf"'{wheel}\1'", command)


@contextmanager
def serving(command: str, folder: Path, variables: dict[str, str]) -> Iterator[None]:
    """Run a server until the block ends."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", 8080)) == 0:
            pytest.skip("another program serves on port 8080, which the page names")
    with subprocess.Popen(["bash", "-ec", f"exec {command}"], cwd=folder, env=variables) as server:
        try:
            for _ in range(6000):
                assert server.poll() is None, f"{command} ended"
                if is_ready():
                    break
                time.sleep(0.1)
            yield
        finally:
            server.send_signal(signal.SIGTERM)


def is_ready() -> bool:
    try:
        with urllib.request.urlopen(f"{SERVED}/health/ready") as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


# ---- The pages -------------------------------------------------------------------------------------------------------


def steps(page: str, command: str) -> list[str]:
    """Return a command, or those of all machines where the page says that each runs its own."""
    return [command.replace("1/4", f"{at}/4") for at in range(1, 5)] if "--shard 1/4" in command else [command]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)])
def test_its_commands_run(page: str, folder: Path, shell: Callable[[str], str], wheel: Path) -> None:
    given = [command for command in commands(page) if not why_not(page, command)]
    if not given:
        pytest.skip(f"no command of docs/{page} runs here")
    if "'hopfuse[" in given[0]:  # "once hopfuse itself is installed"
        shell(f"pip install '{wheel}'")
    before = BEFORE.get(page, [])
    for at, command in enumerate(given):
        if command.startswith("hopfuse serve "):
            with serving(command, folder, shell.variables):  # type: ignore[attr-defined]
                for later in given[at + 1 :]:
                    shell(later)
            return
        for step in steps(page, command):
            shell(step)
        if at == 0:
            for step in before:
                shell(step)


def test_extras_are_those_of_the_page() -> None:
    assert from_wheel("pip install '.[demo,llm]'", Path("/a.whl")) == "pip install '/a.whl[demo,llm]'"
    assert from_wheel("pip install 'hopfuse[cli]'", Path("/a.whl")) == "pip install 'hopfuse[cli]'"
    first = {page: commands(page)[0] for page in PAGES if commands(page) and page != "guides/cpp.md"}
    assert {page for page, command in first.items() if not command.startswith("pip install ")} == set()
