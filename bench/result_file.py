"""Result files of tables on pages: CSV, whose comments say what wrote it, where, and beside which other load."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import hopfuse as hf

from .machine import OtherLoad, commit, machine


def add_out_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--out``, the file of the rows."""
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the rows as CSV, with the machine and commit")


class ResultFile:
    """Rows that a command measured, with its machine, commit and the load of other programs meanwhile.

    Parameters
    ----------
    command : str
        What to run to write the rows, without ``--out FILE``.
    """

    def __init__(self, command: str) -> None:
        self.command, self._load = command, OtherLoad()
        self._commit = commit()  # of the code that is imported now
        self.rows: list[dict[str, Any]] = []

    def add(self, **row: Any) -> None:
        """Add a row; floats are kept to four digits."""
        self.rows.append({name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()})

    def write(self, path: Path | None, children: float = 0.0) -> None:
        """Write the rows, if there is a path; ``children`` are the CPU seconds of child processes."""
        if path is None:
            return
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            file.writelines(f"# {name}: {value}\n" for name, value in self._about(path, children).items())
            table = csv.DictWriter(file, names, lineterminator="\n")
            table.writeheader()
            table.writerows(self.rows)

    def _about(self, path: Path, children: float) -> dict[str, str]:
        here, at, other = machine(), self._commit, self._load.stop(children)
        return {
            "command": f"{self.command} --out {_inside(path)}",
            "machine": f"{here['cpu']}, {here['cores']} cores, {hf.backend_info()['backends']['cpu']['variant']}",
            "commit": f"{at['commit']}{', modified' if at['modified'] else ''}",
            "cores that other programs used": "not known" if other is None else str(other),
        }


def _inside(path: Path) -> str:
    """Return a path as it is written from the checkout."""
    root = Path(__file__).resolve().parents[1]
    return path.resolve().relative_to(root).as_posix() if path.resolve().is_relative_to(root) else path.name
