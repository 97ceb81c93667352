"""Describe attacks, and open the sockets that they share."""

from __future__ import annotations

import contextlib
import math
import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

#: The modules with attacks.
FAMILIES = ("heads", "upgrades", "many", "bounds", "different_filters", "encoders")
#: The index of the server that is attacked, the dimension of its vectors, and the fewest passages (``p0``, ``p1``) and
#: entities (``entity 0``) that it has.
INDEX, DIM, PASSAGES, ENTITIES = "small", 32, 300, 60
#: Another index of that server, its number of passages, and the characters of each of them.
LONG, LONG_PASSAGES, LONG_CHARS = "long", 20, 500_000
#: Most seconds without an answer, after which the server counts as frozen.
FROZEN = 30.0


@dataclass(frozen=True)
class Target:
    """The server that is attacked.

    Attributes
    ----------
    port : int
    key : str
        The attacker's key. It may read; the key of the client beside it is another.
    seconds : float
        How long the attack lasts.
    begun : float
        When it began, by :func:`time.monotonic`.
    """

    port: int
    key: str
    seconds: float
    begun: float = field(default_factory=time.monotonic)

    @property
    def url(self) -> str:
        """The address."""
        return f"http://127.0.0.1:{self.port}"

    def goes_on(self, *, is_answered: bool = True) -> bool:
        """Return whether the time is not over; an attack that nothing has answered has ``FROZEN`` seconds more."""
        return time.monotonic() < self.begun + self.seconds + (0 if is_answered else FROZEN)

    def connect(self) -> socket.socket:
        """Open a connection; what it waits for must come within ``FROZEN`` seconds."""
        return socket.create_connection(("127.0.0.1", self.port), FROZEN)

    def head(self, start: str, *lines: str, keyed: bool = False) -> bytes:
        """Return the beginning of a head, such as ``GET /``, with further headers, and without its end."""
        given = [f"Authorization: Bearer {self.key}"] if keyed else []
        return "".join(f"{line}\r\n" for line in (f"{start} HTTP/1.1", "Host: localhost", *given, *lines)).encode()


#: The count of the milliseconds of the slowest answer.
SLOWEST = "slowest, ms"
#: What an attacker counted: answers by status ("200"), and what else it did.
Counts = Mapping[str, int]


@dataclass(frozen=True)
class Attack:
    """An attack with its bounds.

    Attributes
    ----------
    name, says : str
    run : callable
        Attacks until the time is over, and returns what it counted. It runs in a process of its own.
    wrong : callable
        What is wrong with the counts, if anything.
    health_seconds : float
        Bound of the 99th percentile of ``/health/live`` beside it.
    memory_mib : float
        Bound of the growth of the server's memory.
    searched : float
        Least share of the searches of another client that are answered 200.
    search_ratio : float
        Bound of the 95th percentile of these searches, as a multiple of that before the attack.
    slowest_seconds : float
        Bound of the attacker's slowest answer, which it counts as ``SLOWEST``.
    triggered : float, optional
        ``limits.encoder_seconds`` of a server of its own, whose encoder does what texts say
        (:mod:`bench.hostile.triggered`).
    by_text : bool
        Whether the other client searches by text, too.
    """

    name: str
    says: str
    run: Callable[[Target], Counts]
    wrong: Callable[[Counts], str | None]
    health_seconds: float = 0.02
    memory_mib: float = 64.0
    searched: float = 1.0
    search_ratio: float = 20.0
    slowest_seconds: float = math.inf
    triggered: float | None = None
    by_text: bool = False


#: All attacks by name, in the order of their definition.
ATTACKS: dict[str, Attack] = {}


def attack(
    name: str,
    wrong: Callable[[Counts], str | None],
    **bounds: Any,
) -> Callable[[Callable[[Target], Counts]], Callable[[Target], Counts]]:
    """Make a function an attack with bounds of :class:`Attack`; the first line of its docstring says what it does."""

    def added(run: Callable[[Target], Counts]) -> Callable[[Target], Counts]:
        says = (run.__doc__ or "").strip().partition("\n")[0]
        ATTACKS[name] = Attack(name, says, run, wrong, **bounds)
        return run

    return added


def load() -> None:
    """Load the attacks of all families."""
    for family in FAMILIES:
        import_module(f"{__package__}.{family}")


def only(*statuses: int, least: int = 1, each: Collection[int] = ()) -> Callable[[Counts], str | None]:
    """Return a judge of counts: at least so many answers, each has one of the statuses, and ``each`` of these occurs.

    Examples
    --------
    >>> only(431)({"431": 3, "sent": 7}), only(431)({"200": 1, "431": 1}), only(431)({})
    (None, 'answers: 1 times 200, 1 times 431', 'answers: none')
    >>> only(200, 400, each=[400])({"200": 1})
    'answers: 1 times 200'
    """

    def wrong(counts: Counts) -> str | None:
        answers = {status: count for status, count in counts.items() if status.isdecimal()}
        is_right = sum(answers.values()) >= least and set(answers) <= {str(status) for status in statuses}
        if is_right and all(str(status) in answers for status in each):
            return None
        return "answers: " + (", ".join(f"{count} times {status}" for status, count in answers.items()) or "none")

    return wrong


def anything(counts: Counts) -> str | None:
    """Judge nothing: what the attacker gets does not matter."""
    return None


def status_of(answer: bytes) -> str:
    """Return the status of an answer, or ``"lost"`` if it is none."""
    return answer[9:12].decode() if answer.startswith(b"HTTP/1.1 ") else "lost"


def exchange(target: Target, *parts: bytes, rest: float = 0.02) -> bytes:
    """Send parts on a connection of their own, each in a packet, and return all that is answered until it closes."""
    answered = b""
    with target.connect() as one, contextlib.suppress(ConnectionError):
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            one.sendall(part)
            time.sleep(rest)
        while data := one.recv(65536):
            answered += data
    return answered


def flood(target: Target, first: bytes, part: bytes, connections: int = 4) -> Counts:
    """Keep connections busy: each sends ``first``, then ``part`` for ever; one that is answered begins anew.

    Nothing that is answered is read but the beginning of the first answer.
    """
    counts: Counter[str] = Counter()
    waiting = selectors.DefaultSelector()

    def begin() -> None:
        one = target.connect()
        one.sendall(first)
        one.setblocking(False)
        waiting.register(one, selectors.EVENT_READ | selectors.EVENT_WRITE)

    with waiting:
        for _ in range(connections):
            begin()
        while target.goes_on(is_answered=bool(counts.keys() - {"sent"})):
            for key, events in waiting.select(0.1):
                one = key.fileobj
                assert isinstance(one, socket.socket)
                found = None
                try:
                    if events & selectors.EVENT_READ:
                        found = status_of(one.recv(65536))
                    elif events & selectors.EVENT_WRITE:
                        counts["sent"] += one.send(part)
                except BlockingIOError:
                    pass
                except ConnectionError:
                    found = "lost"
                if found is not None:
                    counts[found] += 1
                    waiting.unregister(one)
                    one.close()
                    begin()
        for key in list(waiting.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
    return counts


@contextlib.contextmanager
def held(target: Target, count: int, sent: bytes = b"") -> Iterator[list[socket.socket]]:
    """Open connections that send the same and stay open, as far as the server lets them."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            if not target.goes_on():
                break
            with contextlib.suppress(ConnectionError):
                one = stack.enter_context(target.connect())
                one.sendall(sent)
                found.append(one)
        yield found


def answers_of(connections: list[socket.socket]) -> Counts:
    """Count the first answers of connections that have arrived; one without is ``"silent"``."""
    counts: Counter[str] = Counter()
    for one in connections:
        one.setblocking(False)
        try:
            data = one.recv(65536)
            counts[status_of(data) if data else "closed"] += 1
        except BlockingIOError:
            counts["silent"] += 1
        except ConnectionError:
            counts["closed"] += 1
    return counts
