"""Connect to a Ray cluster, and compute how many actors fit on it."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..._validation import import_extra
from ...errors import InputError


@contextmanager
def connected(address: str | None, *, stay: bool = False) -> Iterator[Any]:
    """Yield the module ``ray``, connected to a cluster or to a new one on this machine.

    Parameters
    ----------
    address : str or None
        As in :func:`run`.
    stay : bool
        Whether the process stays connected afterwards.

    Raises
    ------
    InputError
        The cluster cannot be reached or has another token, or an address is given and the process is connected already.
    MissingExtraError
        Ray is not installed.

    Examples
    --------
    >>> from hopfuse.offline.ray import connected
    >>> with connected("head:6379") as ray:  # doctest: +SKIP
    ...     ray.cluster_resources()["CPU"]
    64.0
    """
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    ray, _ = (import_extra(name, "scoring by Ray") for name in ("ray", "ray.data"))
    if ray.is_initialized():
        if address is not None:
            raise InputError(
                "unused",
                "address",
                "{field} is {given!r}, and this process is already connected to Ray; leave it out",
                given=address,
            )
        yield ray
        return
    where = address or os.environ.get("RAY_ADDRESS") or "local"
    if where != "local":
        _check_answers(where)
    try:
        local = {"include_dashboard": False} if where == "local" else {}
        ray.init(where, log_to_driver=False, logging_level=logging.ERROR, **local)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        reason = first_line(error)
        raise _unconnected(
            where,
            f"{reason}; start it with RAY_AUTH_MODE=token, run `ray start` on this machine too, and give each machine "
            "the token in ~/.ray/auth_token or RAY_AUTH_TOKEN",
        ) from error
    try:
        yield ray
    finally:
        if not stay:
            ray.shutdown()


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its class where Ray says nothing."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def _check_answers(address: str) -> None:
    """Refuse an address where no process listens: Ray would retry it for minutes."""
    host, colon, port = address.rpartition(":")
    if "://" in address or not (host and colon and port.isdecimal()):
        raise InputError(
            "syntax",
            "address",
            "{field} is {given!r}; give HOST:PORT of the cluster's head, on a machine of the cluster that has the "
            "run's folder",
            given=address,
        )
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise _unconnected(address, f"{error}; give the HOST:PORT that `ray start --head` prints") from error


def _unconnected(given: str, reason: str) -> InputError:
    return InputError(
        "connection", "address", "no connection to the Ray cluster {given}: {reason}", given=given, reason=reason
    )


def cpus_of_actor(nodes: Sequence[Mapping[str, float]], actors: int, num_gpus: float) -> float:
    """Return the CPUs to request for each actor: at most 1, such that one CPU stays free in total.

    Parameters
    ----------
    nodes : sequence of mapping
        Resources of each node, by Ray's names: ``"CPU"``, ``"GPU"``.
    actors : int
    num_gpus : float
        GPUs for each actor.

    Raises
    ------
    InputError
        So many actors do not fit on the nodes.

    Examples
    --------
    >>> from hopfuse.offline.ray import cpus_of_actor
    >>> cpus_of_actor([{"CPU": 8.0}], 2, 0), cpus_of_actor([{"CPU": 2.0}], 2, 0)
    (1.0, 0.5)
    """
    total = sum(node.get("CPU", 0.0) for node in nodes)
    share = int(10_000 * min(1.0, (total - 1 if total > 1 else total / 2) / actors)) / 10_000
    fits = fitting(nodes, share, num_gpus)
    if not num_gpus:
        fits = min(fits, int(total))
    if fits < actors:
        gpus = f" and {sum(node.get('GPU', 0.0) for node in nodes):g} GPUs" if num_gpus else ""
        each = f"a kernel thread and {num_gpus:g} GPUs" if num_gpus else "a kernel thread"
        raise InputError(
            "range",
            "actors",
            "{given} actors of {each} each, and the Ray cluster has {total:g} CPUs{gpus} on {nodes} nodes: room for "
            "{allowed}; give fewer workers, or add nodes",
            given=actors,
            each=each,
            total=total,
            gpus=gpus,
            nodes=len(nodes),
            allowed=fits,
        )
    return share


def fitting(nodes: Sequence[Mapping[str, float]], cpus: float, gpus: float) -> int:
    """Return how many actors with these numbers of CPUs and GPUs fit on the nodes."""

    def of(node: Mapping[str, float]) -> int:
        rooms = [int(node.get(name, 0.0) / one + 1e-9) for name, one in (("CPU", cpus), ("GPU", gpus)) if one]
        return min(rooms, default=0)

    return sum(map(of, nodes))


@contextmanager
def quiet(data: Any) -> Iterator[None]:
    """Suppress Ray Data's progress bars, and its reports of dead actors, which are counted here."""
    context, log = data.DataContext.get_current(), logging.getLogger("ray.data")
    before = (context.enable_progress_bars, context.print_on_execution_start, log.level)
    context.enable_progress_bars = context.print_on_execution_start = False
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        context.enable_progress_bars, context.print_on_execution_start, level = before
        log.setLevel(level)
