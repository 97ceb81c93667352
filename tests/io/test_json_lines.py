"""Ambiguous JSON is refused with its file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hopfuse import Index
from hopfuse.errors import FormatError, InputError
from hopfuse.io import json_objects, numbered_lines, parse_json, text_lines
from refusals import refused

TWICE = '{"id": "a", "text": "one"}\n{"id": "b", "text": "one", "id": "c"}\n'


def test_a_repeated_key_is_refused_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(TWICE)
    with refused(InputError, "syntax", place="rows.jsonl, line 2"):
        Index.build(passages=path)
    with refused(FormatError, "syntax", place="rows.jsonl, line 2"):
        list(json_objects(path, ("id",)))


@pytest.mark.parametrize("text", ['{"a": {"b": 1, "c": 2, "b": 1}}', '[{"a": 1}, {"a": 1, "a": 1}]'])
def test_a_repeated_key_is_found_at_any_depth(text: str) -> None:
    with pytest.raises(ValueError, match="is there twice"):
        parse_json(text)
    assert parse_json('[{"a": {"b": 1}}, {"a": 2, "b": 3}]') == [{"a": {"b": 1}}, {"a": 2, "b": 3}]


def test_deep_nesting_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "deep.jsonl").write_text("[" * 100_000)
    with refused(FormatError, "syntax", place="deep.jsonl, line 1"):
        list(json_objects(tmp_path / "deep.jsonl", ()))


def test_only_line_feeds_end_a_line(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes("\ufeffa\u2028b\r\n\r\n c\x0cd".encode())
    assert list(text_lines(path)) == [(1, "a\u2028b"), (3, " c\x0cd")]
    assert [line for _, line in numbered_lines(path, InputError)] == ["a\u2028b", "", " c\x0cd"]
    path.write_bytes(b"a\n\xff\n")
    with refused(FormatError, "syntax", place="lines.txt, line 2"):
        list(text_lines(path))
