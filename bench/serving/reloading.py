"""Changes of an index while it is searched: the number of failed requests."""

from __future__ import annotations

import re
import shutil
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import hopfuse as hf

from .inputs import Questions
from .processes import Server
from .setting import Setting
from .steady import CALLERS, Side

#: Seconds between changes, and of each part of the closed loop.
REST, PART = 0.25, 10.0


def reload_under_load(setting: Setting) -> dict[str, Any]:
    """Return the numbers of requests refused and not answered while passages are replaced."""
    changed = setting.folder / "changed"
    shutil.copytree(setting.index, changed)
    stop = threading.Event()
    counted: list[dict[str, Any]] = []
    with setting.hopfuse(changed) as server, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(_change, changed, setting.questions, stop)
        try:
            side, done = Side(server, setting.one, CALLERS, 1), 0
            while done < setting.lengths.reloaded:
                counted.append(side.saturated(min(PART, setting.lengths.closed)))
                done += counted[-1]["requests"]
        finally:
            stop.set()
        changes = writing.result()
        reloads = _metric(server, "hopfuse_reload_seconds_count")
    return {
        "requests": done,
        "failed": sum(one["refused"] + one["lost"] for one in counted),
        "changes": changes,
        "reloads": reloads,
        "queries_per_second": [one["queries_per_second"] for one in counted],
        "p99": max(one["p99"] for one in counted),
    }


def _change(folder: Path, questions: Questions, stop: threading.Event) -> int:
    """Replace passages until stopped, by ones with a question's vector and an edge; return the number of changes."""
    with hf.Index.open(folder, writable=True) as live:
        ids, names, at = live.index.passage_ids, live.index.entity_names, 0
        while not stop.wait(REST):
            id, vector = ids[at % len(ids)], questions.vectors[at % len(questions)][None]
            with live.change() as change:
                change.replace_passages([{"id": id, "text": f"This is new, number {at}."}], vectors=vector)
                change.add_edges([{"src": ("passage", id), "dst": ("entity", names[at % len(names)])}])
            at += 1
    return at


def _metric(server: Server, name: str) -> float:
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=60) as answer:
        found = re.findall(rf"^{name}(?:{{.*}})? (.*)$", answer.read().decode(), flags=re.MULTILINE)
    return sum(map(float, found))
