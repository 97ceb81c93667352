"""Attack a server through its encoder: texts that make it hang, fail, exit, or return what is no vector.

``python -m bench.hostile.encoders INDEX`` serves an index on the port in PORT with :class:`Triggered` in place of its
encoder; further arguments are limits, such as ``encoder_seconds=0.5``. The attacks are functions of the address.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .attacks import Counts, Target, attack, only

#: What a text says to make the encoder behave so.
HANG, FAIL, EXIT, INTERRUPT, NAN, DIM, SLOW = (
    f"please {one}" for one in ("hang", "fail", "exit", "interrupt", "nan", "dim", "take long")
)
#: Seconds of a slow call, and after which one counts as hanging in attacks.
SLOW_SECONDS, HANG_SECONDS = 0.2, 0.3
#: A question that no encoder minds.
HEALTHY = "What is far from here?"


class Triggered:
    """An encoder that counts letters, and does what its texts say.

    Parameters
    ----------
    name, dim, normalize
        Those that the index keeps.

    Attributes
    ----------
    go : threading.Event
        Ends calls that hang.
    hung : int
        Calls that have hung.
    """

    def __init__(self, name: str = "letters", dim: int = 8, normalize: bool = False) -> None:
        self.name, self.dim, self.normalize = name, dim, normalize
        self.go = threading.Event()
        self.hung = 0

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        said = " ".join(texts)
        if HANG in said:
            self.hung += 1
            self.go.wait()
        if SLOW in said:
            time.sleep(SLOW_SECONDS)
        if EXIT in said:
            raise SystemExit("a text said so")
        if INTERRUPT in said:
            raise KeyboardInterrupt
        if FAIL in said:
            raise LookupError("a text said so")
        letters = "aeiounrsbcdfghjklmpqtvwxyz"
        made = np.array(
            [[1 + one.lower().count(letters[d % 26]) for d in range(self.dim)] for one in texts], np.float32
        )
        made[[NAN in one for one in texts]] = np.nan
        return made[:, :-1] if DIM in said else made

    encode_passages = encode_queries


def post(url: str, body: Any, path: str = "/v1/search", key: str = "") -> tuple[int, dict[str, Any]]:
    """Return the status and the JSON of an answer."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(url + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def search(url: str, text: str, **more: Any) -> tuple[int, dict[str, Any]]:
    """Return the status and the JSON of the answer to a question."""
    return post(url, {"queries": [text], "timeout_ms": 60_000, **more})


def beside(url: str, text: str, healthy: int = 15) -> tuple[tuple[int, dict[str, Any]], Counter[int]]:
    """Send a text beside healthy questions; return its answer, and the statuses of the others."""
    with ThreadPoolExecutor(healthy + 1) as pool:
        bad = pool.submit(search, url, text)
        others = [pool.submit(search, url, HEALTHY) for _ in range(healthy)]
        return bad.result(), Counter(one.result()[0] for one in others)


def hang_all(url: str, calls: int) -> list[int]:
    """Make so many calls of the encoder hang, one after another; return the statuses of their requests."""
    return [search(url, f"{HANG} {number}")[0] for number in range(calls)]


def by_vector(url: str, dim: int = 8) -> int:
    """Return the status of a search by a vector, which needs no encoder."""
    return post(url, {"queries": [{"vector": [1.0] * dim, "entities": []}], "timeout_ms": 60_000})[0]


def status(url: str, path: str = "/health/ready") -> tuple[int, dict[str, Any]]:
    """Return the status and the JSON of a path."""
    try:
        with urllib.request.urlopen(url + path, timeout=600) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def _repeated(target: Target, text: str) -> Counts:
    counts: Counter[str] = Counter()
    while target.goes_on():
        counts[str(post(target.url, {"queries": [text], "timeout_ms": 500}, key=target.key)[0])] += 1
    return counts


@attack("texts that hang the encoder", only(503, 504), triggered=HANG_SECONDS)
def texts_that_hang(target: Target) -> Counts:
    """Texts that no thread of the encoder comes back from, until all hang."""
    return _repeated(target, HANG)


@attack("texts that fail the encoder", only(500), triggered=HANG_SECONDS)
def texts_that_fail(target: Target) -> Counts:
    """Texts at which the encoder raises an error of its own."""
    return _repeated(target, FAIL)


@attack("texts that end the encoder's thread", only(500), triggered=HANG_SECONDS)
def texts_that_exit(target: Target) -> Counts:
    """Texts at which the encoder raises SystemExit."""
    return _repeated(target, EXIT)


@attack("texts that keep the encoder at work", only(200, 429, 504), triggered=10.0, by_text=True)
def texts_that_take_long(target: Target) -> Counts:
    """Batches of texts on four connections, whose calls of the encoder take 0.2 s each."""
    body, counts = {"queries": [SLOW] * 32, "timeout_ms": 5000}, Counter[str]()

    def send() -> None:
        while target.goes_on():
            counts[str(post(target.url, body, key=target.key)[0])] += 1

    with ThreadPoolExecutor(4) as pool:
        for sent in [pool.submit(send) for _ in range(4)]:
            sent.result()
    return counts


def main(arguments: Sequence[str], run: Callable[..., None] | None = None) -> None:
    """Serve an index with :class:`Triggered` until a signal, on the port in PORT."""
    import hopfuse as hf
    from hopfuse.serve import ServeConfig
    from hopfuse.serve import run as serve

    path, *limits = arguments
    given = {
        name: float(value) if "." in value else int(value) for name, _, value in (one.partition("=") for one in limits)
    }
    built = hf.Index.open(path).encoder
    assert built is not None
    encoder = Triggered(built.name, built.dim, built.normalize)
    tables = {"port": int(os.environ["PORT"]), "indexes": {"index": {"path": path}}, "limits": given}
    (run or serve)(ServeConfig.read("", tables), {"index": encoder})


if __name__ == "__main__":
    main(sys.argv[1:])
