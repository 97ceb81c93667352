"""One attack, as a program of its own: the task is read from standard input, what it counted is written as JSON."""

from __future__ import annotations

import json
import resource
import sys

from .attacks import ATTACKS, Target, load


def main() -> None:
    """Attack."""
    task = json.load(sys.stdin)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    load()
    counts = ATTACKS[task["name"]].run(Target(task["port"], task["key"], task["seconds"]))
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
