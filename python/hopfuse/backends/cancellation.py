"""Let another thread stop the calls of a request that was given up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .. import _native
from ..errors import CancelledError

_scope: ContextVar[_native.Scope | None] = ContextVar("hopfuse_cancellation", default=None)


class CancelToken:
    """A request to stop, which any thread may make, and which calls within :func:`cancellation` obey.

    A token is cancelled once and for all; use a new one for each request.

    Examples
    --------
    >>> import hopfuse as hf
    >>> token = hf.CancelToken()
    >>> token.cancelled
    False
    >>> token.cancel()  # from any thread, or a signal handler
    >>> token.cancelled
    True
    """

    __slots__ = ("_token",)

    def __init__(self) -> None:
        self._token = _native.Token()

    def __repr__(self) -> str:
        return f"CancelToken(cancelled={self.cancelled})"

    @property
    def cancelled(self) -> bool:
        """Return whether :meth:`cancel` was called."""
        return self._token.is_cancelled()

    def cancel(self) -> None:
        """Stop the calls that run within this token's :func:`cancellation`, and those that begin there later.

        Returns at once; a running call ends some milliseconds later.
        """
        self._token.cancel()


@contextmanager
def cancellation(token: CancelToken) -> Iterator[None]:
    """Make the calls of this block end early, with :class:`~hopfuse.errors.CancelledError`, once a token is cancelled.

    The block belongs to the current context (:mod:`contextvars`): it holds in this thread or asyncio task and in what
    :func:`asyncio.to_thread` runs for it. It does not hold in threads that are started within the block, unless Python
    lets them inherit the context (``sys.flags.thread_inherit_context``, which free-threaded Python sets by default).
    Blocks may be nested; each token then stops the calls of the innermost block.

    A call on the CPU looks at the token every few milliseconds while its kernel runs; on a device, before each launch
    of a kernel. No result is returned, and an array given as ``out=`` holds undefined numbers. Everything else is as
    it was before the call.

    Parameters
    ----------
    token : CancelToken
        What stops the calls.

    Raises
    ------
    CancelledError
        In the block, from a call that was stopped, or that began after the token was cancelled.

    Examples
    --------
    >>> import hopfuse as hf
    >>> corpus, token = hf.Corpus.from_array([[1.0, 0.0], [0.0, 1.0]]), hf.CancelToken()
    >>> with hf.cancellation(token):
    ...     hf.dense_topk([[1.0, 0.5]], corpus, 1).ids.tolist()
    [[0]]
    >>> token.cancel()
    >>> try:
    ...     with hf.cancellation(token):
    ...         hf.dense_topk([[1.0, 0.5]], corpus, 1)
    ... except hf.errors.CancelledError as error:
    ...     print(error)
    the call was cancelled by its token
    """
    before = _scope.set(_native.Scope(token._token, _scope.get()))
    try:
        yield
    finally:
        _scope.reset(before)


def check_cancelled() -> None:
    """Raise if a token of the current context is cancelled, or for a signal; for work outside the CPU's kernels."""
    _native.check_cancelled()


def _raise_cancelled() -> None:
    raise CancelledError("cancelled", None, "the call was cancelled by its token")


_native.use_scopes(_scope.get, _raise_cancelled)
