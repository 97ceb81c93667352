"""The types of the public API are frozen, and exactly these names are public."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import hopfuse as hf
import pytest
from hopfuse import errors, fusion
from refusals import check_error


def graph() -> hf.Graph:
    return hf.Graph.from_edges([0, 1], [1, 2])


MAKERS: list[Callable[[], Any]] = [
    graph,
    lambda: hf.Corpus.from_array([[1.0]]),
    lambda: hf.Hits([[1]], [[1.0]]),
    lambda: hf.ppr(graph(), [{0: 1.0}]),
    lambda: hf.ppr_topk(graph(), [{0: 1.0}], 2),
    lambda: hf.LabelSets.from_labels(["Ada"]),
    lambda: hf.Incidence.from_pairs([0], [1], [0.5], num_rows=1, num_columns=2),
    lambda: hf.Facts([[0, 0, 1]], ["wrote"], [0, 1], [0], num_entities=2, num_passages=1),
    fusion.Boltzmann,
    fusion.Linear,
    fusion.Max,
    fusion.RRF,
]


@pytest.mark.parametrize("make", MAKERS)
def test_no_field_can_be_set_or_deleted_or_added(make: Callable[[], Any]) -> None:
    made = make()
    for field in dataclasses.fields(made):
        before = getattr(made, field.name)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, field.name, None)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(made, field.name)
        assert getattr(made, field.name) is before
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.something_new = 1


@pytest.mark.parametrize("make", MAKERS)
def test_a_repr_is_one_short_line(make: Callable[[], Any]) -> None:
    made = make()
    text = repr(made)
    assert text.startswith(type(made).__name__ + "(")
    assert "\n" not in text
    assert len(text) < 150


def test_every_public_name_exists_and_the_list_is_sorted() -> None:
    assert list(hf.__all__) == sorted(hf.__all__)
    for name in hf.__all__:
        assert getattr(hf, name) is not None
    assert set(hf.__all__) <= set(dir(hf))
    with pytest.raises(AttributeError, match="pagerank"):
        _ = hf.pagerank  # type: ignore[attr-defined]


def test_every_error_is_of_the_tree_and_of_the_builtin_that_fits() -> None:
    for name in (name for name in errors.__all__ if name.endswith("Error")):
        assert issubclass(getattr(errors, name), errors.HopfuseError)
    assert issubclass(errors.InputError, ValueError)
    assert issubclass(errors.FormatError, ValueError)
    assert issubclass(errors.BackendError, RuntimeError)
    assert issubclass(errors.MissingExtraError, ImportError)


def test_a_missing_extra_names_the_package_and_the_command() -> None:
    error = errors.MissingExtraError("pyarrow", "arrow", "reading Parquet")
    check_error(error, errors.MissingExtraError, "missing_extra", package="pyarrow", extra="arrow")
    assert "pip install" in error.template
