"""The workflows: actions pinned by commit, few permissions, and nothing published before the whole suite passed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="workflows are read by PyYAML, which packages of the extra dev install")

WORKFLOWS = Path(__file__).parents[2] / ".github" / "workflows"
NAMES = ("ci", "docs", "nightly", "release", "wheels")
#: Actions whose repository could not be read up to the tag; a comment says so above each.
BY_TAG = {"pypa/gh-action-pypi-publish"}
#: The only jobs that may get a token for another service. They run no code of the checkout.
TRUSTED = {("release", "publish"), ("docs", "deploy")}


def text_of(name: str) -> str:
    return (WORKFLOWS / f"{name}.yml").read_text(encoding="utf-8")


def jobs_of(name: str) -> dict[str, dict[str, Any]]:
    jobs: dict[str, dict[str, Any]] = yaml.safe_load(text_of(name))["jobs"]
    return jobs


def steps_of(job: dict[str, Any]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = job.get("steps", [])
    return steps


def test_these_are_all_workflows() -> None:
    assert sorted(path.stem for path in WORKFLOWS.glob("*")) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_actions_are_pinned_by_commit(name: str) -> None:
    used = re.findall(r"^(.*\n).*uses: (\S+)(.*)$", text_of(name), re.MULTILINE)
    assert used
    for above, action, comment in used:
        repository, _, version = action.partition("@")
        if action.startswith("./.github/"):
            assert (WORKFLOWS.parents[1] / action).is_file()
        elif repository in BY_TAG:
            assert "put its hash here" in above
            assert re.fullmatch(r"v\d+\.\d+\.\d+", version)
        else:
            assert re.fullmatch(r"[0-9a-f]{40}", version), action
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action


def test_one_action_has_one_version() -> None:
    versions: dict[str, set[str]] = {}
    for action, version in re.findall(r"uses: ([\w./-]+)@(\S+ *#? *\S*)", "".join(map(text_of, NAMES))):
        versions.setdefault(action, set()).add(version.strip())
    assert {action: found for action, found in versions.items() if len(found) != 1} == {}


@pytest.mark.parametrize("name", NAMES)
def test_jobs_have_few_rights_and_an_end(name: str) -> None:
    assert yaml.safe_load(text_of(name))["permissions"] == {"contents": "read"}
    for of, job in jobs_of(name).items():
        if (name, of) in TRUSTED:
            assert "contents" not in job["permissions"]
            assert not [step for step in steps_of(job) if "run" in step or "checkout" in step["uses"]]
        else:
            assert "permissions" not in job, of
        assert "uses" in job or job["timeout-minutes"] <= 120, of
        for step in steps_of(job):
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False, of


def test_publishing_waits_for_the_whole_suite() -> None:
    jobs = jobs_of("release")
    assert set(jobs["publish"]["needs"]) == {"quick", "full", "build"}
    called = {of: job.get("uses", "").rpartition("/")[2] for of, job in jobs.items()}
    assert called == {"ready": "", "quick": "ci.yml", "full": "nightly.yml", "build": "wheels.yml", "publish": ""}
    assert "publish_links.py release" in steps_of(jobs["ready"])[-1]["run"]
    assert all("ready" in job["needs"] for of, job in jobs.items() if of not in ("ready", "publish"))
    for job in jobs_of("wheels").values():
        names = [step.get("name", "") for step in steps_of(job)]
        assert names.index("Fill in the links of a release") == 2


def test_every_python_of_the_classifiers_is_tested() -> None:
    project = (WORKFLOWS.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    classified = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    assert jobs_of("ci")["quick"]["strategy"]["matrix"]["python"] == classified
