"""Errors that leave a measurement without a timing."""


class GateError(AssertionError):
    """An answer is wrong, so the case stops without timing it."""


class UnavailableError(Exception):
    """Data or a peer is not available on this machine, so the case is skipped."""
