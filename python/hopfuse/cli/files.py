"""Files that the commands write: checked before any work, written after all of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from operator import methodcaller
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..io.files import write_whole


def check_outputs(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None], *, overwrite: bool) -> None:
    """Refuse, before any work, what cannot be written, or would overwrite what is read or a file unasked.

    Both mappings are by the option that names the file, which is None where it is not given.
    """
    written: dict[Path, str] = {}
    read = {path.resolve(): option for option, path in inputs.items() if path is not None}
    for option, out in outputs.items():
        if out is None:
            continue
        if not out.parent.is_dir():
            raise InputError(f"{option}: {out.parent} is no folder, so {out} cannot be written; make it first")
        place = out.resolve()
        if place in read:
            raise InputError(f"{option}: {out} is what {read[place]} reads; choose another name")
        if place in written:
            raise InputError(f"{option}: {out} is what {written[place]} writes; choose another name")
        if out.exists() and not overwrite:
            raise InputError(f"{option}: {out} exists; choose another name, or replace it with --overwrite")
        written[place] = option


def write_all(texts: Mapping[Path, str]) -> None:
    """Write files, each whole or not at all, and none where one of the texts cannot be."""
    for path, content in {path: text.encode() for path, text in texts.items()}.items():
        write_whole(path, methodcaller("write", content))


def strict_json(record: Mapping[str, Any]) -> str:
    """Return a record as strict JSON."""
    return json.dumps(record, indent=1, allow_nan=False) + "\n"
