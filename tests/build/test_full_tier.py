"""The full tier: no test runs twice or never, two lanes, budgets, and outcomes that a later run goes on from."""

from __future__ import annotations

import itertools
import json
import re
import sys
import threading
import tomllib
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tiers

sys.path.insert(0, str(Path(__file__).parents[2] / ".ci"))

import arm_python
import code_parts
import full_checks
import library_parts
import workplace
from code_parts import ELSEWHERE, SUITE
from full_checks import PARTS, Outcome
from workplace import ROOT


def is_inside(name: str, paths: Sequence[str]) -> bool:
    return any(name == path or name.startswith(f"{path}/") for path in paths)


def test_every_test_is_in_one_part() -> None:
    """Of the suite; a file that another part runs whole is in none."""
    owners: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = path.relative_to(ROOT).as_posix()
        inside = [part for part, paths in SUITE.items() if is_inside(name, paths)]
        owners[name] = ["elsewhere"] if is_inside(name, ELSEWHERE) else inside or ["library"]
    assert {name: parts for name, parts in owners.items() if len(parts) != 1} == {}
    assert {part for parts in owners.values() for part in parts} == {*SUITE, "elsewhere", "library"}
    assert [path for paths in (*SUITE.values(), ELSEWHERE) for path in paths if not (ROOT / path).exists()] == []


class Item:
    """What the tiers look at of a test."""

    def __init__(
        self, nodeid: str, *marks: str, drawn: bool = False, variant: str = "", more: bool = False, **values: object
    ) -> None:
        self.nodeid, self.marks, self.obj = nodeid, marks, SimpleNamespace(is_hypothesis_test=drawn)
        self.module = SimpleNamespace(FULL=True) if more else SimpleNamespace()
        self.callspec = SimpleNamespace(params={"variant": variant, **values})

    def get_closest_marker(self, mark: str) -> str | None:
        return mark if mark in self.marks else None


def test_both_tiers_together_run_every_test_and_the_rest_repeats_none() -> None:
    emulated = [Item(f"tests/kernels/test_a.py::test_x[simt-{at}]", variant="simt") for at in range(tiers.EMULATED + 1)]
    marked, drawn = Item("tests/io/test_b.py::test_y", "full"), Item("tests/io/test_b.py::test_z", drawn=True)
    plain, module = Item("tests/io/test_b.py::test_p"), Item("tests/io/test_c.py::test_q", more=True)
    folder = Item("tests/cli/test_d.py::test_r")
    every: list[Any] = [*emulated, marked, drawn, plain, module, folder]
    assert tiers.selected(every, full=True, rest=False) == every
    assert tiers.selected(every, full=False, rest=False) == [emulated[0], emulated[-1], drawn, plain, module, folder]
    assert tiers.selected(every, full=True, rest=True) == [*emulated[1:-1], marked, drawn, module, folder]


def product(*marks: str, test: str, sizes: tuple[int, int, int]) -> list[Any]:
    """Return the cases of a test of all values of three parameters."""
    return [
        Item(f"tests/{test}[{a}-{b}-{c}]", *marks, a=a, b=b, c=c) for a, b, c in itertools.product(*map(range, sizes))
    ]


def pairs(cases: Sequence[Any]) -> set[Any]:
    return {two for case in cases for two in itertools.combinations(sorted(case.callspec.params.items()), 2)}


def test_the_quick_tier_runs_a_sample_of_a_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every two values together on the CPU, unless too many; few cases on the emulator; elsewhere, all."""
    monkeypatch.setattr(tiers, "SAMPLE", False)  # whatever this run is
    on_cpu, elsewhere = (product(test=f"{folder}/test_a.py::x", sizes=(4, 3, 2)) for folder in ("kernels", "cli"))
    kept = tiers.selected(on_cpu, full=False, rest=False)
    assert pairs(kept) == pairs(on_cpu)
    assert len(kept) < len(on_cpu) / 1.5
    assert kept == [case for case in on_cpu if case in kept]
    assert sorted(map(on_cpu.index, (*kept, *tiers.selected(on_cpu, full=True, rest=True)))) == [*range(len(on_cpu))]
    many = product(test="kernels/test_a.py::y", sizes=(30, 3, 2))
    kept = tiers.selected(many, full=False, rest=False)
    assert len(kept) == 30
    assert {value for case in kept for value in case.callspec.params.items()} >= {("a", 29), ("b", 2), ("c", 1)}
    emulated = product("emulator", test="kernels/test_a.py::z", sizes=(9, 3, 2))
    assert len(tiers.selected(emulated, full=False, rest=False)) == tiers.MOST_EMULATED
    assert tiers.selected(elsewhere, full=False, rest=False) == elsewhere


def test_a_file_that_reads_the_tier_is_one_whose_tests_do_more() -> None:
    reads = re.compile(r'environ(\.get\(|\[)"HOPFUSE_TESTS"')
    assert [path.name for path in (ROOT / "tests").rglob("*.py") if reads.search(path.read_text("utf-8"))] == [
        "tiers.py"
    ]
    helpers = [
        path.relative_to(ROOT / "tests").parts[0]
        for path in (ROOT / "tests").rglob("*.py")
        if re.search(r"^from tiers import .*FULL", path.read_text(encoding="utf-8"), re.MULTILINE)
        and not path.name.startswith("test_")
    ]
    assert set(helpers) <= {*tiers.MORE_IN_FULL, "conftest.py"}


def test_the_part_torch_has_the_files_that_skip_without_torch_or_its_kind() -> None:
    found = {path.name for path in (ROOT / "tests").rglob("test_*.py") if library_parts.uses_torch(path)}
    assert {"test_tensors.py", "test_fastembed.py", "test_forked_workers.py", "test_pages.py"} <= found
    assert "test_full_tier.py" not in found
    assert len(found) < 20


def test_the_part_lowest_has_every_extra_and_tests_that_exist() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    environments = library_parts.LOWEST.values()
    assert {extra for one in environments for extra in one.extras} == stated.keys() - {"dev"}
    for test in (*library_parts.OTHERWISE, *(test for one in environments for test in one.tests)):
        path, _, name = test.partition("::")
        assert (ROOT / path).exists(), test
        if name:
            assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text(encoding="utf-8"), test


class Place:
    """A workplace whose commands are noted, and whose tests end with a line."""

    def __init__(self, line: str) -> None:
        self.line, self.commands = line, list[tuple[str, ...]]()

    def clone(self, name: str) -> Path:
        return Path(name)

    def wheel(self) -> Path:
        return Path("hopfuse.whl")

    def venv(self, name: str, *installs: tuple[str, ...], cwd: Path, before: Sequence[str]) -> Path:
        self.commands += [tuple(before), *installs]
        return Path(name)

    def install(self, python: Path, *arguments: object, cwd: Path | None = None) -> None:
        self.commands.append(tuple(map(str, arguments)))

    def run(self, *command: object, cwd: Path | None = None, **environment: str) -> str:
        self.commands.append(tuple(map(str, command)))
        return ""

    def pytest(self, *arguments: object, **environment: str) -> str:
        return self.line


def test_the_part_lowest_installs_the_lowest_versions_and_no_other_build_of_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = library_parts.LOWEST["encoders"]
    place: Any = Place("3 passed")
    monkeypatch.setattr(library_parts, "LOWEST", {"encoders": one})
    assert library_parts.lowest(place) == "encoders: 3 passed"
    (torch,), lowest, beside, wheel = place.commands
    assert torch == library_parts.TORCH
    assert lowest[lowest.index("--resolution") + 1] == "lowest-direct"
    assert lowest[-4:] == ("--extra", "encode", "--extra", "fastembed")
    assert all("--only-binary" in command for command in (lowest, beside, wheel))
    assert wheel[-2:] == ("--no-deps", "hopfuse.whl")


def test_no_test_of_the_part_lowest_may_be_skipped_where_a_package_is_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    one = library_parts.LOWEST["encoders"]
    monkeypatch.setattr(library_parts, "LOWEST", {"encoders": one})
    skipping: Any = Place("2 passed, 1 skipped")
    with pytest.raises(RuntimeError, match=r"encoders: 2 passed, 1 skipped; .* no test may be skipped"):
        library_parts.lowest(skipping)
    monkeypatch.setattr(library_parts, "LOWEST", {"encoders": replace(one, may_skip=True)})
    assert library_parts.lowest(skipping) == "encoders: 2 passed, 1 skipped"


def test_the_budgets_fill_two_lanes_for_a_hundred_minutes() -> None:
    first = PARTS[full_checks.FIRST][1]
    others = sum(budget for name, (_, budget) in PARTS.items() if name != full_checks.FIRST)
    assert first + others / full_checks.LANES <= full_checks.BUDGET == 100 * 60


def test_the_first_part_runs_alone_and_the_longest_ones_start_first() -> None:
    names = ["site", "quick", "gcc", "cuda", "arm"]
    expected = {"site": 1.0, "quick": 9.0, "gcc": 5.0, "cuda": 4.0, "arm": 2.0}
    started, together = list[str](), threading.Barrier(2, timeout=600)

    def run(name: str) -> Outcome:
        started.append(name)
        if name != "quick":
            together.wait()  # two at a time
        return Outcome(name, True, "", 1.0)

    done = full_checks.run_lanes(names, expected, run)
    assert [one.name for one in done] == names
    assert started[0] == "quick"
    assert set(started[1:3]) == {"gcc", "cuda"}
    assert set(started[3:]) == {"arm", "site"}


def test_outcomes_are_recorded_for_the_next_run_and_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> str:
        raise RuntimeError("pytest ended with 1:\nall of its output")

    report = tmp_path / "checks.md"
    report.write_text("before\n<!-- results -->\nold\n<!-- end of results -->\nafter\n")
    monkeypatch.setattr(full_checks, "RECORDS", tmp_path / "full")
    monkeypatch.setattr(full_checks, "REPORT", report)
    monkeypatch.setattr(full_checks, "commit", lambda: "abc1234")
    monkeypatch.setattr(full_checks, "compilers", lambda: ["- a machine"])
    passes = lambda _: "12 passed in 3.4s"  # noqa: E731 - a part
    monkeypatch.setattr(full_checks, "PARTS", {"quick": (broken, 60), "site": (passes, 120), "arm": (passes, 9)})
    place: Any = SimpleNamespace()
    assert not full_checks.run_part("quick", place).passed
    assert full_checks.missing_parts() == ["quick", "site", "arm"]
    monkeypatch.setitem(full_checks.PARTS, "quick", (passes, 60))
    assert full_checks.run_part("quick", place).passed
    full_checks.run_part("site", place)
    assert list(full_checks.outcomes_of(full_checks.record())) == ["quick", "site"]
    assert full_checks.missing_parts() == ["arm"]
    assert full_checks.expected_seconds()["arm"] == 9
    assert full_checks.expected_seconds()["site"] < 9
    full_checks.write_report()
    text = report.read_text()
    assert text.startswith("before\n<!-- results -->\nRun of ")
    assert text.endswith("<!-- end of results -->\nafter\n")
    assert "at commit abc1234" in text
    assert "| quick | None | passed | 12 passed | 0 | 60 |" in text
    assert "| arm | None | not run |  |  | 9 |" in text
    assert full_checks.unproven(lambda commit: True) == ["arm: not run"]
    full_checks.run_part("arm", place)
    full_checks.write_report()
    assert full_checks.unproven(lambda commit: commit == "abc1234") == []
    assert full_checks.unproven(lambda commit: False) == [
        "other files than docs/checks.md and docs/results/soak.jsonl differ from abc1234, which was tested"
    ]
    report.write_text("<!-- results -->\n<!-- end of results -->\n")
    assert "no commit is named" in full_checks.unproven(lambda commit: True)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no history beside the sources")
def test_a_commit_is_the_tested_one_if_only_records_differ() -> None:
    assert full_checks.is_same_but_for_records("HEAD")
    assert not full_checks.is_same_but_for_records("0" * 40)


def test_what_several_parts_use_is_made_once_and_again_after_a_failure(tmp_path: Path) -> None:
    place, made = workplace.Workplace(tmp_path, tmp_path / "log"), list[Path]()

    def fail(target: Path) -> None:
        target.mkdir()
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError, match="no network"):
        place.once("venv", fail)

    def make(target: Path) -> None:
        made.append(target)
        target.mkdir()

    threads = [threading.Thread(target=place.once, args=("venv", make)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [tmp_path / "venv"]
    with pytest.raises(RuntimeError, match="ended with 3"):
        place.run(sys.executable, "-c", "print('said'); raise SystemExit(3)")
    assert "said" in (tmp_path / "log").read_text()
    environment = json.loads(place.run(sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"))
    assert environment["CCACHE_BASEDIR"] == str(tmp_path)
    assert environment["CCACHE_DIR"] == str(ROOT / "build" / "cache" / "ccache")


def test_the_environment_of_arm_runs_by_a_script_and_has_that_native_module_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel, module, commands = tmp_path / "a.whl", tmp_path / "_native.cpython-311-aarch64-linux-gnu.so", []
    module.write_text("arm")
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("hopfuse/__init__.py", "")
        file.writestr("hopfuse/_native.cpython-312-x86_64-linux-gnu.so", "x86")
    monkeypatch.setattr(arm_python, "system", lambda w: tmp_path / "system")
    monkeypatch.setattr(arm_python, "native_module", lambda w, python: module)
    monkeypatch.setattr(workplace.Workplace, "wheel", lambda w: wheel)
    monkeypatch.setattr(workplace.Workplace, "run", lambda w, *command: commands.append(command))
    programs = arm_python.environment(workplace.Workplace(tmp_path, tmp_path / "log"), "pytest")
    package = programs.parent / "lib" / f"python{arm_python.PYTHON}" / "site-packages" / "hopfuse"
    assert {path.name for path in package.iterdir()} == {"__init__.py", module.name}
    system = tmp_path / "system"
    program = f"{system}/usr/bin/python{arm_python.PYTHON}"
    assert (programs / "python").read_text().splitlines()[1:] == [
        f'exec qemu-aarch64-static -0 "$0" -L {system} {program} "$@"'
    ]
    ((*_, numpy, pytest_),) = commands
    assert (numpy, pytest_) == ("numpy", "pytest")


def test_what_runs_on_arm_is_there() -> None:
    assert [path for path in code_parts.ON_ARM if not (ROOT / path).is_file()] == []


def test_an_environment_that_fails_keeps_no_other_from_being_tested() -> None:
    tested = list[str]()

    def passes(name: str) -> str:
        tested.append(name)
        return "3 passed"

    def fails() -> str:
        raise RuntimeError("pytest ended with 1:\n2 failed")

    environments = [("a", fails), ("b", partial(passes, "b")), ("c", partial(passes, "c"))]
    with pytest.raises(RuntimeError) as refused:
        library_parts.lines_of(environments)
    assert str(refused.value) == "a: pytest ended with 1:\n2 failed"
    assert tested == ["b", "c"]
    assert library_parts.lines_of(environments[1:]) == "b: 3 passed; c: 3 passed"
