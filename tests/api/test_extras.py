"""The packages that import_extra knows: each is what its extra installs."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest
from hopfuse._validation import EXTRAS, import_extra
from hopfuse.errors import MissingExtraError

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_package_is_of_its_extra() -> None:
    declared = {
        extra: {re.match(r"[\w.-]+", text)[0] for text in texts}  # type: ignore[index]
        for extra, texts in PROJECT["optional-dependencies"].items()
    }
    assert {package: extra for package, extra in EXTRAS.values() if package not in declared[extra]} == {}


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(MissingExtraError) as caught:
        import_extra("qdrant_client.models", "reading")
    assert (caught.value.package, caught.value.extra) == ("qdrant-client", "qdrant")


def test_a_module_that_is_installed() -> None:
    assert import_extra("scipy.stats", "testing").__name__ == "scipy.stats"
