"""Exception classes. Every error of the library derives from :class:`HopfuseError`; this module imports nothing."""

__all__ = [
    "BackendError",
    "DeviceMemoryError",
    "EndpointError",
    "FormatError",
    "HopfuseError",
    "InputError",
    "MissingExtraError",
    "StoreError",
]


class HopfuseError(Exception):
    """Base class of the errors that hopfuse raises."""


class InputError(HopfuseError, ValueError):
    """An argument is invalid.

    The message states the value given, the values allowed and the fix. Nothing was changed.
    """


class FormatError(HopfuseError, ValueError):
    """A file does not follow its format's specification: it is damaged, malicious or of another version."""


class BackendError(HopfuseError, RuntimeError):
    """A requested backend or kernel variant cannot run on this machine, or a kernel failed."""


class DeviceMemoryError(BackendError):
    """A device has too little free memory for a call. The message says how to free some; then repeat the call."""


class EndpointError(HopfuseError, RuntimeError):
    """A service gave no answer or an unusable one; the message says which, and the fix."""


class StoreError(HopfuseError, RuntimeError):
    """A database is unreachable, closed the connection or lacks expected data; the message says which, and the fix.

    The index is unchanged.
    """


class MissingExtraError(HopfuseError, ImportError):
    """A feature needs an optional dependency that is not installed; the message names the extra."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed; "
            f"install it with: pip install 'hopfuse[{extra}]'"
        )
        self.package = package
        self.extra = extra
