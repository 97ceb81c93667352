"""The server, the client beside an attack, and what both show."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.serve import new_key

from ..errors import UnavailableError
from ..serving.processes import Server, serving
from ..serving.setting import program
from . import attacker
from . import triggered as triggered_server
from .attacks import DIM, FROZEN, INDEX, LONG, LONG_CHARS, LONG_PASSAGES, PASSAGES, SLOWEST, Attack, Counts

#: Requests a second of the client beside the attack, of each kind.
RATE = 20.0
#: Its address, which is not the attacker's.
ADDRESS = "127.0.0.2"
TENANTS = 10


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """Sizes of a run: passages of the index, and seconds before and during an attack."""

    passages: int = 5000
    before: float = 3.0
    attack: float = 8.0


QUICK = Lengths(passages=PASSAGES, before=0.2, attack=0.5)


@dataclass(frozen=True)
class Seen:
    """What a client saw: latencies of ``/health/live`` and of searches in seconds, and statuses of both."""

    health: tuple[float, ...]
    live: Counts
    searches: Counts
    searching: tuple[float, ...] = ()

    def percentile(self, percent: float) -> float:
        """Return a percentile of the latencies."""
        return float(np.percentile(self.health, percent)) if self.health else FROZEN

    @property
    def search_p95(self) -> float:
        """The 95th percentile of the latencies of searches."""
        return float(np.percentile(self.searching, 95)) if self.searching else FROZEN


@dataclass(frozen=True)
class Outcome:
    """An attack and its effects."""

    attack: Attack
    before: Seen
    under: Seen
    counts: Counts
    growth: float
    alive: bool

    @property
    def ratio(self) -> float:
        """Return how many times as long another client's searches take under attack, by their 95th percentiles."""
        return self.under.search_p95 / self.before.search_p95

    def faults(self, timed: bool) -> list[str]:
        """Return the bounds that are exceeded; those of time only if ``timed``."""
        one, found = self.attack, []
        if not self.alive:
            found.append("the server ended")
        if set(self.under.live) != {"200"}:
            found.append(f"/health/live: {_counted(self.under.live)}")
        if share(self.under.searches) < one.searched:
            found.append(f"searches: {_counted(self.under.searches)}")
        if self.growth > one.memory_mib:
            found.append(f"memory: +{self.growth:.0f} MiB")
        if timed and self.under.percentile(99) > one.health_seconds:
            found.append(f"/health/live p99: {1000 * self.under.percentile(99):.1f} ms")
        if timed and self.ratio > one.search_ratio:
            found.append(f"searches p95: {self.ratio:.1f} times as long")
        slowest = self.counts.get(SLOWEST, 0) / 1000
        if timed and slowest > one.slowest_seconds:
            found.append(f"the slowest answer: {slowest:.1f} s")
        wrong = one.wrong(self.counts)
        return [*found, wrong] if wrong else found

    def row(self, timed: bool) -> dict[str, Any]:
        """Return the outcome as plain values."""
        return {
            "case": "hostile",
            "attack": self.attack.name,
            "before": asdict(self.before),
            "under": asdict(self.under),
            "counts": dict(self.counts),
            "growth_mib": self.growth,
            "faults": self.faults(timed),
        }


def share(searches: Counts) -> float:
    """Return the share of searches that were answered 200; 0 if there were none."""
    return searches.get("200", 0) / max(1, sum(searches.values()))


def _counted(statuses: Counts) -> str:
    return ", ".join(f"{count} times {status}" for status, count in statuses.items()) or "none"


class Fortress:
    """A running server over a small index, with a key for the attacker and one for the client beside it.

    Parameters
    ----------
    server : Server
    keys : mapping of str to str
    """

    def __init__(self, server: Server, keys: dict[str, str]) -> None:
        self.server, self._keys = server, keys
        vector = np.random.default_rng(11).standard_normal(DIM).round(3).tolist()
        self._search = json.dumps({"queries": [{"vector": vector, "entities": ["entity 3"]}], "k": 5}).encode()
        self._by_text = json.dumps({"queries": ["What is far from entity 3?"], "k": 5}).encode()

    def attacked(self, one: Attack, lengths: Lengths) -> Outcome:
        """Attack, and watch from another address."""
        self.watched(lengths.before / 2, one.by_text)
        before, resident = self.watched(lengths.before, one.by_text), self.server.resident()
        task = {"name": one.name, "port": self.server.port, "key": self._keys["attacker"], "seconds": lengths.attack}
        with program(attacker.__name__, json.dumps(task)) as process, _largest(self.server) as largest:
            under = self.watched(lengths.attack, one.by_text, least=process)
            said = process.communicate(timeout=10 * FROZEN)[0]
        if not said:
            raise UnavailableError(f"the attacker of {one.name!r} failed with status {process.returncode}")
        alive = self.server.resident() > 0
        return Outcome(one, before, under, json.loads(said), max(largest) - resident, alive)

    def watched(self, seconds: float, by_text: bool = False, least: Any = None) -> Seen:
        """Request health and searches for some seconds, and until the process ``least`` has ended.

        Of searches by text, which wait for the encoder, only the statuses are kept.
        """
        end, health, live, searches = time.monotonic() + seconds, [], Counter[str](), Counter[str]()
        searching: list[float] = []

        def goes_on() -> bool:
            return time.monotonic() < end or (least is not None and least.poll() is None)

        def search() -> None:
            while goes_on():
                begun = time.monotonic()
                searches[self._asked("POST", "/v1/search", self._search)] += 1
                searching.append(time.monotonic() - begun)
                if by_text:
                    searches[self._asked("POST", "/v1/search", self._by_text)] += 1
                time.sleep(max(0.0, begun + 1 / RATE - time.monotonic()))

        thread = threading.Thread(target=search)
        thread.start()
        while goes_on():
            begun = time.monotonic()
            live[self._asked("GET", "/health/live")] += 1
            health.append(time.monotonic() - begun)
            time.sleep(max(0.0, begun + 1 / RATE - time.monotonic()))
        thread.join()
        return Seen(tuple(health), dict(live), dict(searches), tuple(searching))

    def _asked(self, method: str, path: str, body: bytes | None = None) -> str:
        """Return the status of a request on a connection of its own; ``"lost"`` if there was no answer."""
        one = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=FROZEN, source_address=(ADDRESS, 0))
        with contextlib.closing(one):
            try:
                one.request(method, path, body, {"Authorization": f"Bearer {self._keys['client']}"})
                with one.getresponse() as answer:
                    answer.read()
                    return str(answer.status)
            except (OSError, http.client.HTTPException):
                return "lost"


@contextlib.contextmanager
def fortress(folder: Path, lengths: Lengths, *, triggered: float | None = None) -> Iterator[Fortress]:
    """Build the index, and run ``hopfuse serve`` with the default limits over it, or with an encoder to be attacked.

    ``triggered``: as of :class:`Attack`.
    """
    small_index(lengths.passages).save(folder / "index")
    long_index().save(folder / LONG)
    keys = {name: new_key() for name in ("attacker", "client")}
    lines = [f'mcp = true\n[indexes.{INDEX}]\npath = "{folder / "index"}"\nrecipe = "phase-graph"\n']
    if not triggered:
        lines.append(f'[indexes.{LONG}]\npath = "{folder / LONG}"\n')
    lines += [f'[keys.{name}]\nsha256 = "{digest}"\n' for name, (_, digest) in keys.items()]
    (folder / "serve.toml").write_text("".join(lines))
    served, more = ["hopfuse", "serve", "--config"], list[str]()
    if triggered is not None:
        served, more = [triggered_server.__name__], ["--seconds", str(triggered)]
    arguments = [*served, str(folder / "serve.toml"), "--port", "{port}", *more]
    with serving(arguments, "/health/ready") as server:
        yield Fortress(server, {name: key for name, (key, _) in keys.items()})


def small_index(passages: int) -> hf.Index:
    """Return an index with vectors, a graph, and metadata of tenants and years, drawn by a fixed seed."""
    draw = np.random.default_rng(7)
    entities = max(10, passages // 5)
    rows = [
        {
            "id": f"p{at}",
            "text": f"Passage {at}. " * 20,
            "metadata": {"tenant": f"t{at % TENANTS}", "year": 1500 + at % 500},
        }
        for at in range(passages)
    ]
    edges = [
        {"src": at, "dst": passages + int(to), "type": "context"}
        for at, found in enumerate(draw.integers(0, entities, (passages, 3)))
        for to in set(found.tolist())
    ]
    return hf.Index.build(
        passages=rows,
        vectors=draw.standard_normal((passages, DIM), dtype=np.float32),
        entities=[f"entity {at}" for at in range(entities)],
        graph=edges,
    )


def long_index() -> hf.Index:
    """Return an index of few passages with long texts."""
    rows = [{"id": f"p{at}", "text": f"Passage {at}. " + "a" * LONG_CHARS} for at in range(LONG_PASSAGES)]
    return hf.Index.build(passages=rows, vectors=np.ones((LONG_PASSAGES, DIM), np.float32))


@contextlib.contextmanager
def _largest(server: Server) -> Iterator[list[float]]:
    """Measure a server's memory while the block runs."""
    seen, stop = [server.resident()], threading.Event()

    def look() -> None:
        while not stop.wait(0.1):
            seen.append(server.resident())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()
