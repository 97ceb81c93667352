"""Plans and parts as files: what they hold, what they refuse."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hopfuse.errors import FormatError, InputError
from hopfuse.offline import Folder, Output, Plan, rows_a_part
from offline.conftest import ROWS
from refusals import refused

ROW = {"id": "q0", "hits": [{"id": "p1", "score": 0.5}, {"id": "p2", "score": 0.25}]}
ROWS_OF_PART = [ROW, {"id": "ключ", "hits": []}, {"id": "q2", "hits": [{"id": "p\u2028", "score": 1.5}]}]
KINDS = ["jsonl", pytest.param("parquet", marks=pytest.mark.skipif("not has_arrow"))]
try:
    import pyarrow  # noqa: F401

    has_arrow = True
except ModuleNotFoundError:
    has_arrow = False


def test_a_plan_is_read_as_it_was_written(planned) -> None:
    plan = planned(recipe="phase-graph").plan
    assert Plan.from_json(plan.to_json(), "plan.json") == plan
    assert plan.num_parts == 10
    ranges = [plan.row_range(part) for part in range(plan.num_parts)]
    assert ranges == [(first, min(first + 10, ROWS)) for first in range(0, ROWS, 10)]


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (lambda text: text.replace(b'"rows": 95', b'"rows": 94'), "damaged"),
        (lambda text: text[: len(text) // 2], "damaged"),
        (lambda text: b"[]", "damaged"),
        (lambda text: b"{}", "damaged"),
        (lambda text: text.replace(b'"format": 1', b'"format": 2'), "version"),
    ],
)
def test_an_edited_plan_is_refused(planned, edit, code) -> None:
    with refused(FormatError, code):
        Plan.from_json(edit(planned().plan.to_json()), "plan.json")


def test_another_version_is_refused(planned) -> None:
    plan = replace(planned().plan, versions={"hopfuse": "0.0.1"})
    with refused(InputError, "version", package="hopfuse", allowed="0.0.1"):
        plan.check_versions()


def test_a_million_rows_make_hundreds_of_parts() -> None:
    assert 100 <= 10**6 / rows_a_part(10**6) <= 999
    assert rows_a_part(0) == rows_a_part(1) == 256


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_is_read_as_it_was_written(kind, planned) -> None:
    folder = planned(kind=kind)
    folder.add(7, ROWS_OF_PART)
    assert folder.seal(7) == (folder.plan.digest, 7, 3, 1, 0)
    assert list(folder.rows_of(7)) == ROWS_OF_PART
    assert folder.encode(7, ROWS_OF_PART) == folder.part(7).read_bytes()


def test_every_changed_byte_of_a_part_is_noticed(planned) -> None:
    folder = planned()
    whole = folder.encode(7, ROWS_OF_PART)
    damaged = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    damaged += [whole[:at] for at in range(len(whole) - 1)]  # a part without its last end of line holds the same rows
    for content in damaged:
        folder.part(7).write_bytes(content)
        with refused(FormatError, "damaged"):
            assert list(folder.rows_of(7)) is None


def test_a_damaged_parquet_part_is_refused(planned) -> None:
    pytest.importorskip("pyarrow")
    folder = planned(kind="parquet")
    whole = folder.encode(7, ROWS_OF_PART)
    page = whole.index(b"q0")
    for content in (whole[:page] + b"q9" + whole[page + 2 :], whole[:-9], b""):
        folder.part(7).write_bytes(content)
        with refused(FormatError, "damaged"):
            list(folder.rows_of(7))


def test_unknown_kinds_are_refused() -> None:
    with refused(InputError, "choice", "kind"):
        Output("csv")  # type: ignore[arg-type]


def test_a_folder_without_a_plan_says_so(tmp_path) -> None:
    with refused(InputError, "missing", "folder"):
        assert Folder(tmp_path).plan


def test_a_folder_of_another_plan_is_not_taken(planned) -> None:
    folder = planned(alpha=0.5)
    folder.create(folder.plan)
    before = (folder.path / "plan.json").read_bytes()
    with refused(InputError, "exists", "folder"):
        folder.create(replace(folder.plan, scoring={"alpha": 0.6}))
    with refused(InputError, "exists", "folder"):
        folder.create(replace(folder.plan, part_rows=11))
    assert json.loads(before) == json.loads((folder.path / "plan.json").read_bytes())
