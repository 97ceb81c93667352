"""The compiler launcher of the quick tier, which lets the other builds wait for the strict one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / ".ci" / "run"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    made = tmp_path / "work"
    for name in ("sdist", "atlas"):
        (made / name).mkdir(parents=True)
    text = RUN.read_text(encoding="utf-8")
    function = text[text.index("compile_launcher() {") :].partition("\n}\n")[0] + "\n}\n"
    subprocess.run([bash, "-c", f"work={made}\n{function}\nPATH=/usr/bin:/bin compile_launcher"], check=True)
    return made


def compiling(work: Path, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([work / "compile", "true"], cwd=work / name)


def test_other_builds_compile_after_the_strict_one(work: Path) -> None:
    assert compiling(work, "sdist").wait(60) == 0
    other = compiling(work, "atlas")
    with pytest.raises(subprocess.TimeoutExpired):
        other.wait(0.5)
    (work / "strict.ended").touch()
    assert other.wait(60) == 0


def test_a_compiler_that_waits_ends_with_the_folder(work: Path) -> None:
    """As when a part has failed, whose end removes the folder while a build in the background goes on."""
    other = compiling(work, "atlas")
    with pytest.raises(subprocess.TimeoutExpired):
        other.wait(0.5)
    shutil.rmtree(work)
    assert other.wait(60) == 1
