"""Models of sentence-transformers, from a folder on this machine or loaded already."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import InputError, MissingExtraError


def local_model(model: Any, device: str | None, *, kind: str, method: str, user: str) -> Any:
    """The model itself, or the one that a folder holds. Nothing is downloaded.

    ``kind`` is the class of sentence-transformers, ``method`` with its article what a model must have, and ``user``
    what needs the package.
    """
    if isinstance(model, str | PathLike):
        return _load(model, device, kind, user)
    name = method.split()[-1]
    if not callable(getattr(model, name, None)):
        raise InputError(
            f"model is a {type(model).__name__} without {method} method; pass the folder of a model or a {kind}"
        )
    if device is not None:
        raise InputError(f"device is {device!r}, but the model is loaded already; move it: model.to({device!r})")
    return model


def _load(model: str | PathLike[str], device: str | None, kind: str, user: str) -> Any:
    folder = Path(model).expanduser()
    if not folder.is_dir():
        raise InputError(
            f"{str(model)!r} is not a folder on this machine, and models are never downloaded; fetch the model "
            f"beforehand and pass its folder, or pass a loaded {kind}"
        )
    try:
        package = import_module("sentence_transformers")
    except ModuleNotFoundError as error:
        raise MissingExtraError("sentence-transformers", "encode", user) from error
    return getattr(package, kind)(str(folder), device=device, local_files_only=True)
