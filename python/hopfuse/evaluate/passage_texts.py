"""What the passages of runs say."""

from __future__ import annotations

from os import PathLike

from ..errors import FormatError
from .json_lines import json_objects
from .passage_names import PassageNames


def read_texts(path: str | PathLike[str], names: PassageNames) -> dict[int, str]:
    """Title and text of each passage that has a number already, from a .jsonl file of passages.

    Read it after the runs: what no run has found is not kept.

    Parameters
    ----------
    path : path
        Objects of "id", "text" and, optionally, "title".
    names : PassageNames
        The names that judgements and runs were read with.

    Returns
    -------
    dict of int to str
        By number: the title, where there is one, on a line above the text.

    Raises
    ------
    FormatError
        A line that is not an object with an id and a text, a title or text that is not a string, a lone surrogate;
        the message names file and line.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from hopfuse.evaluate import PassageNames, read_texts
    >>> names = PassageNames()
    >>> names.number("a")
    0
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "passages.jsonl")
    ...     _ = path.write_text('{"id": "b", "text": "."}\\n{"id": "a", "title": "Ada", "text": "She wrote."}\\n')
    ...     read_texts(path, names)
    {0: 'Ada\\nShe wrote.'}
    """
    texts = {}
    for at, row in json_objects(path, ("id", "text")):
        title, text = row.get("title") or "", row["text"]
        if not (isinstance(title, str) and isinstance(text, str)):
            raise FormatError(f"{path}, line {at} has the title {title!r} and the text {text!r}; both are strings")
        if str(row["id"]) in names:
            texts[names.number(str(row["id"]))] = f"{title}\n{text}" if title else text
    return texts
