"""What a lexical leg over an index's passages reads."""

from __future__ import annotations

from ..index import Index


def searched_texts(index: Index) -> list[str]:
    """Title and text of each passage, a line each: what a passage is found by where it is searched by words.

    Parameters
    ----------
    index : Index

    Returns
    -------
    list of str, P entries
        In the passages' order; a passage without a title has an empty first line.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.lexical import FTS5, searched_texts
    >>> index = hf.Index.build(passages=[{"title": "Thames", "text": "A river."}, {"text": "The sea."}])
    >>> searched_texts(index)
    ['Thames\\nA river.', '\\nThe sea.']
    >>> FTS5.build(searched_texts(index)).search(["Thames"], 1).ids
    array([[0]])
    """
    return [f"{title}\n{text}" for title, text in zip(index.titles, index.texts, strict=True)]
