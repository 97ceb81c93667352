"""Refuse what a decoder of JSON would silently pass over: the first of two equal keys, and bytes that are not UTF-8."""

from __future__ import annotations

import codecs
import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .errors import not_json

#: Bytes up to which a body is parsed; in a larger one, only strings and braces are looked at, so that numbers take no
#: time.
SMALL = 4096
#: Bytes up to which the strings of a body are listed first.
FEW = 32768
#: Bytes that are looked at together, so that a string of braces takes little memory.
BLOCK = 2**18
#: A string, and the colon behind a key.
_STRING = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?', re.DOTALL)
_QUOTE, _COLON, _OPENS, _CLOSES = b'":{}'

Places = NDArray[np.int64]


class _RepeatedError(Exception):
    """The key that its argument names is there twice."""


def check_keys(body: bytes) -> None:
    """Refuse a body with an object that has a key twice.

    Parameters
    ----------
    body : bytes
        JSON, which was decoded before.

    Raises
    ------
    InputError
        An object has a key twice, which is the field. Or the body is not UTF-8: a decoder passes over values that are
        not read.
    """
    try:
        _check_text(body)
    except UnicodeDecodeError as error:
        raise not_json(error) from None
    if len(body) <= FEW:  # mostly one query, whose keys all differ
        keys = [key for key, colon in _STRING.findall(body) if colon]
        if len(keys) == len(set(keys)) and b"\\" not in b"".join(keys):
            return
    key = _of_small(body) if len(body) <= SMALL else _of_large(body)
    if key is not None:
        raise InputError("duplicate", key, "{field} is there twice in an object; give it once")


def _check_text(body: bytes) -> None:
    """Decode a body in parts, and keep none."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for first in range(0, len(body), BLOCK):
        decoder.decode(body[first : first + BLOCK], final=first + BLOCK >= len(body))


def _of_small(body: bytes) -> str | None:
    """Return a key that is repeated, or None."""
    try:
        _DECODER.decode(body.decode())
    except _RepeatedError as error:
        return str(error)
    except ValueError:  # a number of more digits than Python reads
        return _of_large(body)
    return None


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    seen = set[str]()
    for key, _ in pairs:
        if key in seen:
            raise _RepeatedError(key)
        seen.add(key)


_DECODER = json.JSONDecoder(object_pairs_hook=_distinct)


def _of_large(body: bytes) -> str | None:
    """Return a key that is repeated, or None, from the places of quotes, colons and braces."""
    # An escaped backslash escapes nothing: pairs go first, from the left, and then what is left before a quote.
    text = np.frombuffer(body.replace(b"\\\\", b"  ").replace(b'\\"', b"  "), np.uint8)
    quotes = np.flatnonzero(text == _QUOTE)
    begins, ends = quotes[::2], quotes[1::2]
    signs = _signs(text, quotes)
    are_colons = text[signs] == _COLON
    keys = np.searchsorted(ends, signs[are_colons]) - 1  # the last string before a colon
    begins, ends = begins[keys], ends[keys]
    braces = signs[~are_colons]
    objects = _objects(text[braces] == _OPENS)[np.searchsorted(braces, begins) - 1]
    shared = np.bincount(objects)[objects] > 1  # with another key
    seen = set[tuple[int, str]]()
    rows = zip(objects[shared].tolist(), begins[shared].tolist(), ends[shared].tolist(), strict=True)
    for number, begin, end in rows:
        key = body[begin : end + 1].decode()
        one = number, json.loads(key) if "\\" in key else key[1:-1]
        if one in seen:
            return one[1]
        seen.add(one)
    return None


def _signs(text: NDArray[np.uint8], quotes: Places) -> Places:
    """Return the places of colons and braces outside strings."""
    found = [np.zeros(0, np.int64)]
    for first in range(0, len(text), BLOCK):
        part = text[first : first + BLOCK]
        places = first + np.flatnonzero((part == _COLON) | (part == _OPENS) | (part == _CLOSES))
        found.append(places[np.searchsorted(quotes, places) % 2 == 0])
    return np.concatenate(found)


def _objects(opens: NDArray[np.bool_]) -> Places:
    """Return the number of the brace that opened the object around the text after each brace, 0 for none."""
    depth = np.cumsum(np.where(opens, 1, -1))
    order = np.argsort(depth, kind="stable")
    opener = np.where(opens[order], order, 0)
    same = np.concatenate([[True], depth[order][1:] != depth[order][:-1]])
    first = np.flatnonzero(same)
    base = np.repeat(np.arange(len(first)) * len(opens), np.diff([*first, len(opens)]))  # keeps depths apart
    found = np.zeros(len(opens), np.int64)
    found[order] = np.maximum.accumulate(opener + base) - base
    return found
