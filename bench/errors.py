"""Why a measurement has no timing."""


class GateError(AssertionError):
    """An answer is wrong: the case stops, and nothing of it is timed."""


class UnavailableError(Exception):
    """Data or a peer is not on this machine: the case is reported as skipped."""
