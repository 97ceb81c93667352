"""The examples of docs/filters.md run, and it names every type and operator."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopfuse as hf
import pytest
from hopfuse.errors import InputError

PAGE = (Path(__file__).parents[2] / "docs" / "filters.md").read_text(encoding="utf-8")


def test_the_examples_run() -> None:
    known: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    for number, block in enumerate(blocks):
        exec(compile(block, f"filters.md, block {number}", "exec"), known)
    assert known["found"].hits.counts.tolist() == [2, 2]
    assert len(known["each"].hits) == 2


def allowed_by(call: Callable[[], object]) -> list[str]:
    """Return what an error says is allowed."""
    with pytest.raises(InputError) as caught:
        call()
    return str(caught.value.allowed).split(", ")


def test_it_names_every_type_and_operator() -> None:
    row = {"text": "", "metadata": {"n": 1, "t": ["a"]}}
    index = hf.Index.build(passages=[row])
    names = allowed_by(lambda: hf.Index.build(passages=[row], metadata_types={"n": "date"}))
    for condition in ("n__any", "t__lt"):
        allowed = allowed_by(lambda condition=condition: index.mask(hf.where(**{condition: ["a"]})))
        names += [one.partition("__")[2] for one in allowed]
    assert len(set(names)) > 14
    assert [name for name in names if f"`{name}`" not in PAGE] == []
