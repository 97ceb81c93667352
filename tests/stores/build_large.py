"""Build and save an index of a large table, and print what it took.

    python build_large.py URL FOLDER

It prints, as JSON, seconds of CPU time of this process, and MiB of memory that are not pages of files: before the
build, and at most.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from importlib import import_module
from pathlib import Path

from hopfuse import Index
from hopfuse.stores.postgres import PostgresSource


def anonymous() -> float:
    """MiB of this process's memory that are not pages of files."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


def main(url: str, folder: Path) -> None:
    for name in ("psycopg", "adbc_driver_postgresql.dbapi", "pyarrow", "pyarrow.compute"):
        import_module(name)
    before, most, done = anonymous(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            most[0] = max(most[0], anonymous())

    thread = threading.Thread(target=watch)
    thread.start()
    begin = time.process_time()
    index = Index.build(PostgresSource(url, passages="SELECT id, text, v FROM large"), scratch=folder)
    built = time.process_time()
    index.save(folder / "index")
    saved = time.process_time()
    done.set()
    thread.join()
    print(json.dumps({"build": built - begin, "save": saved - built, "before": before, "most": most[0]}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
