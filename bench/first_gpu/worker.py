"""The process of a part, which writes its notes and its outcome."""

from __future__ import annotations

import json
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import UnavailableError
from .journal import FailedError, Journal
from .parts import Part
from .sizes import FULL, QUICK


def main(task: dict[str, Any]) -> None:
    """Run the part of a task; any error becomes its outcome."""
    part, folder = Part(**task["part"]), Path(task["folder"])
    journal = Journal(folder / f"{part.name}.json")
    try:
        run = import_module(part.module).run
        about = run(journal, QUICK if task["quick"] else FULL, folder, *part.arguments)
    except UnavailableError as reason:
        journal.end("skipped", str(reason))
    except FailedError as wrong:
        journal.end("failed", str(wrong))
    except Exception as error:
        traceback.print_exc()
        journal.end("failed", f"{type(error).__name__}: {error}")
    else:
        journal.end("passed", about)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
