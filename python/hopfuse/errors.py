"""Exception classes. Every error of the library derives from :class:`HopfuseError`; this module imports nothing of it.

An error is data: a class, a code of :data:`CODES`, the argument or field that it is about, what was given and what is
allowed. Its sentence is made from them where it is shown, so that each interface names an argument in its own way:
``encoder=`` in Python, ``--encoder`` on the command line, the field's path over HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from math import isfinite
from string import Formatter
from typing import Any

__all__ = [
    "CODES",
    "BackendError",
    "CancelledError",
    "DeviceMemoryError",
    "EndpointError",
    "FormatError",
    "HopfuseError",
    "InputError",
    "MissingExtraError",
    "StoreError",
    "error_of",
]

#: What the code of an error means.
CODES: Mapping[str, str] = {
    "busy": "something else holds what the call needs, such as the lock of an index",
    "cancelled": "a token of hopfuse.CancelToken stopped the call",
    "changed": "what was read before has changed in the meantime",
    "choice": "the value is not one of the allowed ones",
    "conflict": "two arguments exclude each other",
    "connection": "a service or database cannot be reached, or closed the connection",
    "damaged": "bytes of a file are missing, left over, or do not match their checksum",
    "denied": "what a filter, a mode or a lock does not allow, such as changing an index that is open for reading",
    "dtype": "an array has a dtype that is not allowed",
    "disk": "the disk accepts no change",
    "duplicate": "something that must be given once is given twice",
    "empty": "a text is blank, or a collection has no entries",
    "encoder": "an encoder of texts failed, or returned what are no vectors",
    "exists": "the output exists already",
    "expired": "a key was valid until a time that has passed",
    "failed": "an operation began and failed",
    "finite": "a number is NaN or infinite, or too large for the arithmetic",
    "forbidden": "a key or a service does not allow the call",
    "gone": "the caller has left",
    "head_too_large": "the URL and headers of a request are larger than allowed",
    "length": "two arguments must have the same number of entries",
    "limit": "a stated limit is exceeded",
    "memory": "there is too little free memory",
    "method": "the route has no such method",
    "missing": "an argument, a part or a file that is needed is absent",
    "missing_extra": "an optional dependency is not installed",
    "order": "entries are not in the order that is needed",
    "overloaded": "too much is waiting; the call may be repeated later",
    "range": "a number is outside the allowed range, or what is given is no such number",
    "read_only": "changes are not accepted here",
    "reply": "a service gave an unusable answer",
    "shape": "an array has a shape or a memory layout that is not allowed",
    "slow": "a request did not arrive in time",
    "syntax": "a text or a file cannot be parsed",
    "timeout": "the time of a call has passed",
    "too_large": "a request has more bytes than are allowed",
    "type": "a value has a type that is not allowed",
    "unauthorized": "a key is missing or unknown",
    "unavailable": "a backend, a device, a kernel variant or a server cannot run here, or not yet",
    "unknown": "a name or an id that does not exist",
    "unsupported": "the combination is valid, but not supported",
    "unused": "an argument is given that would not be used",
    "version": "a file or a service of another version",
    "zero": "a vector or a row of weights is all zero",
}
#: The longest representation of a value in a sentence, in characters.
_LONGEST = 300
#: Bits of a decimal digit, about.
_DIGIT_BITS = 3
#: The most entries of a list that is a value of an error's data.
_MOST = 30


class _Sentence(Formatter):
    """Fill in a sentence; ``{@name}`` and ``{value:@}`` are other arguments, as the interface names them."""

    def __init__(self, name: Callable[[str], str], other: Callable[[str], str]) -> None:
        self._name, self._other = name, other

    def get_value(self, key: int | str, args: Any, kwargs: Any) -> Any:
        if isinstance(key, str) and key.startswith("@"):
            return self._other(key[1:])
        return _short(kwargs[key]) if key == "given" else kwargs[key]

    def convert_field(self, value: Any, conversion: Any) -> Any:
        if conversion == "r" and isinstance(value, str) and len(value) > 2 * _LONGEST:  # its repr would be long, too
            return f"{value[:_LONGEST]!r:.{_LONGEST}}… ({len(value) + 2:,} characters)"
        shown = super().convert_field(value, conversion)
        if conversion == "r" and len(shown) > _LONGEST:
            return f"{shown[:_LONGEST]}… ({len(shown):,} characters)"
        return shown

    def format_field(self, value: Any, format_spec: str) -> Any:
        if format_spec == "@":
            *first, last = map(self._other, (value,) if isinstance(value, str) else value)
            return f"{', '.join(first)} or {last}" if first else last
        if isinstance(value, _Long):
            return f"{value[:_LONGEST]}… ({len(value):,} characters)"
        return super().format_field(value, format_spec)


class _Long(str):
    """A text that is given, and is cut where it is shown."""

    __slots__ = ()


class _Shown:
    """Stand in for a value that is not kept, such as one that cannot be pickled, by the texts that it shows."""

    __slots__ = ("_repr", "_str")

    def __init__(self, value: object) -> None:
        self._str, self._repr = str(value), repr(value)

    def __str__(self) -> str:
        return self._str

    def __repr__(self) -> str:
        return self._repr


class HopfuseError(Exception):
    """Base class of the errors that hopfuse raises.

    Parameters
    ----------
    code : str
        A key of :data:`CODES`.
    field : str or None
        The argument, option or field that the error is about, with the place in it: ``"k"``, ``"restart[3]"``.
    sentence : str
        What was given, what is allowed, and the fix, as a template of :meth:`str.format`. ``{field}`` is the field and
        ``{@reader}`` another argument, both as the interface names them; ``{other:@}`` names the argument that a value
        names, or one of several: ``a, b or c``. Other names are in ``values``.
    **values : object
        What the sentence shows. ``given`` and ``allowed``, if present, are the value given and the values allowed.

    Attributes
    ----------
    code, field : str
    values : dict
    places : tuple of str
        Where it happened, outermost first, such as a file and a line.

    Examples
    --------
    >>> error = InputError("range", "k", "{field} is {given!r}; it must be at least {allowed}", given=-1, allowed=0)
    >>> error.code, error.field, error.given, str(error)
    ('range', 'k', -1, 'k is -1; it must be at least 0')
    >>> error.sentence("--{}".format)
    '--k is -1; it must be at least 0'
    >>> str(error.at("queries.jsonl, line 3"))
    'queries.jsonl, line 3: k is -1; it must be at least 0'
    """

    def __init__(self, code: str, field: str | None, sentence: str, /, **values: Any) -> None:
        super().__init__(code, field, sentence)
        self.code, self.field, self.template, self.values = code, field, sentence, values
        self.places: tuple[str, ...] = ()

    @property
    def given(self) -> Any:
        """The value given, or None if the error is not about one."""
        return self.values.get("given")

    @property
    def allowed(self) -> Any:
        """What is allowed, or None if the error has no such statement."""
        return self.values.get("allowed")

    def sentence(self, name: Callable[[str], str] | None = None) -> str:
        """Return the error in words.

        Parameters
        ----------
        name : callable, optional
            Returns the name of an argument in an interface. By default, an argument is named as in Python: ``k`` as
            the subject of a sentence, ``k=`` elsewhere.
        """
        subject, other = (name, name) if name is not None else (str, "{}=".format)
        text = _Sentence(subject, other).vformat(
            self.template, (), {**self.values, "field": None if self.field is None else subject(self.field)}
        )
        return ": ".join((*self.places, text))

    def __str__(self) -> str:
        return self.sentence()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code!r}, {self.field!r}, {str(self)!r})"

    def data(self, name: Callable[[str], str] | None = None) -> dict[str, Any]:
        """Return the error as plain values, as the command line prints it for programs and the server sends it.

        Parameters
        ----------
        name : callable, optional
            As for :meth:`sentence`, which the message is.

        Returns
        -------
        dict
            ``class``, ``code``, ``field``, ``message``, ``values`` and ``places``.
        """
        return {
            "class": type(self).__name__,
            "code": self.code,
            "field": self.field,
            "message": self.sentence(name),
            "values": {key: _plain(value) for key, value in self.values.items()},
            "places": list(self.places),
        }

    def at(self, place: object = None, field: str | None = None) -> HopfuseError:
        """Return this error with the place where it happened before its sentence, or with another field, or both."""
        moved = self.about(field)
        moved.places = self.places if place is None else (str(place), *self.places)
        return moved

    def about(self, field: str | None = None, *, kind: type[HopfuseError] | None = None) -> HopfuseError:
        """Return this error with another field or class, such as a FormatError for what a file holds.

        Examples
        --------
        >>> error = InputError("shape", "X", "{field} has no columns")
        >>> error.about("vectors"), error.about(kind=FormatError)
        (InputError('shape', 'vectors', 'vectors has no columns'), FormatError('shape', 'X', 'X has no columns'))
        """
        made = _restored(kind or type(self), self.code, field or self.field, self.template, self.values, self.places)
        made.__dict__.update(self._more())
        if self.__cause__ is not None:
            made.__cause__ = self.__cause__
        return made

    def _more(self) -> dict[str, Any]:
        """Return the other attributes, such as the notes of :meth:`BaseException.add_note`."""
        own = ("code", "field", "template", "values", "places")
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def __reduce__(self) -> tuple[Any, ...]:
        kept = {name: _kept(value) for name, value in self.values.items()}
        return _restored, (type(self), self.code, self.field, self.template, kept, self.places), self._more()


def _kept(value: Any) -> Any:
    """Return a value as a pickled error has it: plain values, NumPy's scalars and collections of these as they are."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_kept, value)) if type(value) in (list, tuple) else _Shown(value)
    return value if isinstance(value, _PLAIN) or _is_scalar(value) else _Shown(value)


def _is_scalar(value: Any) -> bool:
    """Return whether a value is NumPy's scalar or an array of no dimensions; a dtype, which has none either, is not."""
    return getattr(value, "ndim", None) == 0 and hasattr(value, "item")


def _short(value: Any) -> Any:
    """Return a value that is given so that it can be shown: a long collection is cut, a long number is described."""
    if isinstance(value, int) and value.bit_length() > _DIGIT_BITS * _LONGEST:
        return f"a whole number of {value.bit_length():,} bits"
    if isinstance(value, (list, tuple)) and len(value) > 2 * _LONGEST:
        return [*value[:_LONGEST], f"… ({len(value):,} entries)"]
    if isinstance(value, Mapping) and len(value) > 2 * _LONGEST:
        return {**dict(islice(value.items(), _LONGEST)), "…": f"({len(value):,} entries)"}
    return _Long(value) if isinstance(value, str) and len(value) > 2 * _LONGEST else value


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; one that JSON does not know, or that is long, as text."""
    value = _short(value.item() if _is_scalar(value) else value)
    if value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and isfinite(value)):
        return value
    if isinstance(value, (list, tuple)) and len(value) <= _MOST:
        return [_plain(one) for one in value]
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


#: The values that a pickled error keeps as they are.
_PLAIN = (str, int, float, bool, type(None))


def _restored(
    kind: type[HopfuseError],
    code: str,
    field: str | None,
    template: str,
    values: Mapping[str, Any],
    places: tuple[str, ...],
) -> HopfuseError:
    error = kind.__new__(kind)
    HopfuseError.__init__(error, code, field, template, **values)
    error.places = places
    return error


def error_of(data: Mapping[str, Any]) -> HopfuseError:
    """Return the error that :meth:`HopfuseError.data` describes; an unknown class becomes a :class:`HopfuseError`.

    Examples
    --------
    >>> said = InputError("range", "k", "{field} is {given}; it must be at least 0", given=-1).data()
    >>> error = error_of(said)
    >>> type(error).__name__, error.code, error.field, error.given, str(error)
    ('InputError', 'range', 'k', -1, 'k is -1; it must be at least 0')
    """
    kind = globals().get(str(data["class"]))
    known = kind if isinstance(kind, type) and issubclass(kind, HopfuseError) else HopfuseError
    values = {**data.get("values", {}), "message": str(data["message"])}
    return _restored(known, str(data["code"]), data.get("field"), "{message}", values, ())


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


class CancelledError(HopfuseError):
    """A call was stopped by a :class:`hopfuse.CancelToken`. It returned nothing and changed nothing but ``out=``."""


class EndpointError(HopfuseError, RuntimeError):
    """A service gave no answer or an unusable one; the message says which, and the fix."""


class StoreError(HopfuseError, RuntimeError):
    """A database is unreachable, closed the connection or lacks expected data; the message says which, and the fix.

    The index is unchanged.
    """


class MissingExtraError(HopfuseError, ImportError):
    """A feature needs an optional dependency that is not installed; the message names the extra.

    Parameters
    ----------
    package, extra : str
        The package that is missing, and the extra of hopfuse that installs it.
    purpose : str
        What needs the package, as the subject of the sentence.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            "missing_extra",
            None,
            "{purpose} needs the package {package!r}, which is not installed; install it with: pip install "
            "'hopfuse[{extra}]'",
            package=package,
            extra=extra,
            purpose=purpose,
        )

    @property
    def package(self) -> str:
        """The package that is missing."""
        return str(self.values["package"])

    @property
    def extra(self) -> str:
        """The extra of hopfuse that installs it."""
        return str(self.values["extra"])
