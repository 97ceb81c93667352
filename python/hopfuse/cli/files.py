"""Output files of commands: checked before any work, and written when it is done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError


def check_outputs(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None], *, overwrite: bool) -> None:
    """Refuse an output that cannot be written, is also an input, or exists without ``overwrite``.

    Both mappings are from option to file, None if the option is not given.
    """
    used = {path.resolve(): option for option, path in inputs.items() if path is not None}
    for option, out in outputs.items():
        if out is None:
            continue
        if not out.parent.is_dir():
            raise InputError(
                "missing",
                option,
                "{field}: {folder} is not a folder, so {file} cannot be written; create it first",
                folder=out.parent,
                file=out,
            )
        other = used.setdefault(out.resolve(), option)
        if other != option:
            raise InputError(
                "conflict",
                option,
                "{field}: {file} is also the file of {other:@}; choose another name",
                file=out,
                other=other,
            )
        if out.exists() and not overwrite:
            raise InputError(
                "exists",
                option,
                "{field}: {file} exists; choose another name, or replace it with {@overwrite}",
                file=out,
            )


def strict_json(record: Mapping[str, Any]) -> str:
    """Return a record as strict JSON."""
    return json.dumps(record, indent=1, allow_nan=False) + "\n"
