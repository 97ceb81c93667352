"""The shipped stub is what nanobind generates from the module."""

from __future__ import annotations

from pathlib import Path

import hopfuse
import pytest
from hopfuse import _native


def test_the_stub_is_up_to_date() -> None:
    stubgen = pytest.importorskip("nanobind.stubgen")
    generator = stubgen.StubGen(_native)
    generator.put(_native)
    shipped = Path(hopfuse.__file__).with_name("_native.pyi").read_text()
    assert generator.get() == shipped, (
        "run: python -m nanobind.stubgen -m hopfuse._native -o python/hopfuse/_native.pyi"
    )


def test_the_package_is_marked_as_typed() -> None:
    assert Path(hopfuse.__file__).with_name("py.typed").is_file()
