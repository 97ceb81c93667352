"""The error tree. Every error of the library derives from :class:`HopfuseError`."""

__all__ = [
    "BackendError",
    "EndpointError",
    "FormatError",
    "HopfuseError",
    "InputError",
    "MissingExtraError",
    "StoreError",
]


class HopfuseError(Exception):
    """Base of every error that hopfuse raises on purpose."""


class InputError(HopfuseError, ValueError):
    """An argument is outside what the operation allows.

    The message says what was given, what is allowed, and the fix; nothing was changed.
    """


class FormatError(HopfuseError, ValueError):
    """A file is not what its format's specification says (torn, hostile, or of another version)."""


class BackendError(HopfuseError, RuntimeError):
    """A backend or kernel variant was asked for that this machine cannot run, or a kernel failed."""


class EndpointError(HopfuseError, RuntimeError):
    """A service that was asked gave no answer, or none that can be used; the message says which, and the fix."""


class StoreError(HopfuseError, RuntimeError):
    """A database cannot be reached, broke off, or no longer has what it must have; the message says which, and the fix.

    The index is as it was.
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
