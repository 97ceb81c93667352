"""Files as other programs and people write them: blank lines, fields in quotes, half a character."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hopfuse import Index
from hopfuse.errors import FormatError, InputError
from hopfuse.extract import read_triples
from hopfuse.io import QueryRows, count_queries, json_objects, query_file, read_queries
from refusals import refused

TEXTS = ['She said "no".', '"Heroes"', "two\nlines", "a\ttab", '"', 'ends with "quotes"', "", 'one"', '"two\n"three"']


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_of_jsonl_are_skipped_and_lines_keep_their_numbers(tmp_path: Path, end: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(end.join(['{"text": "a"}', "", '{"text": "b"}', "  ", ""]), encoding="utf-8", newline="")
    assert list(Index.build(passages=path).texts) == ["a", "b"]
    path.write_text(end.join(['{"text": "a"}', "", '{"text": 5}', ""]), encoding="utf-8", newline="")
    with refused(InputError, "type", "text", given=5, place="p.jsonl, line 3"):
        Index.build(passages=path)


def test_blank_lines_between_queries_are_skipped_from_any_row(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('\n{"text": "a"}\n\n{"text": "b"}\n{"text": "c"}\n \n{"text": "d"}\n\n')
    assert [(one.id, one.text) for one in read_queries(path)] == [("0", "a"), ("1", "b"), ("2", "c"), ("3", "d")]
    assert count_queries(path) == 4
    offsets = query_file(path).offsets(2)
    assert offsets is not None
    for part, offset in enumerate(offsets):
        assert [one.text for one in QueryRows(path).read(2 * part, 2, offset)] == [["a", "b"], ["c", "d"]][part]
    path.write_text('{"text": "a"}\n\n{"text": 5}\n')
    with refused(InputError, "type", "text", given=5, place="q.jsonl, line 3"):
        list(read_queries(path))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_fields_that_a_program_put_in_quotes_are_without_them(tmp_path: Path, end: str, quoting: int) -> None:
    path = tmp_path / "p.tsv"
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, dialect="excel-tab", lineterminator=end, quoting=quoting)  # type: ignore[arg-type]
        table.writerow(["id", "text", "title"])
        table.writerows([f"p{at}", text, f"T{at}"] for at, text in enumerate(TEXTS))
    index = Index.build(passages=path)
    assert list(index.texts) == TEXTS
    assert list(index.titles) == [f"T{at}" for at in range(len(TEXTS))]


def test_other_quotes_are_characters(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    texts = ['"Heroes" is a song', 'the song "Heroes"', '5" disk', '"open', 'and "closed"', 'x "', '"']
    path.write_text("".join(f"{at}\t{text}\tT\n" for at, text in enumerate(texts)), encoding="utf-8")
    assert list(Index.build(passages=path).texts) == texts
    path.write_text("".join(f"{at}\t{text}\n" for at, text in enumerate(texts)), encoding="utf-8")
    assert list(Index.build(passages=path).texts) == texts


def test_errors_after_a_field_of_several_lines_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    path.write_text('id\ttext\na\t"one\ntwo"\n\nb\tthree\tfour\n', encoding="utf-8")
    with refused(InputError, "syntax", None, given=3, place="p.tsv, line 5"):
        Index.build(passages=path)


@pytest.mark.parametrize("head", [[], [("head", "relation", "tail")]])
def test_a_quote_that_is_not_closed_takes_no_other_record(tmp_path: Path, head: list[tuple[str, ...]]) -> None:
    rows = [("Sony", "makes", '"Bravia'), ("Dell", "makes", 'a screen of 12"'), ("LG", "makes", "TVs")]
    path = tmp_path / "triples.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in head + rows), encoding="utf-8")
    assert list(read_triples(path)) == rows


def test_triples_in_quotes(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text('Ada\twrote\t"the ""Notes"""\n\nAda\tborn in\tLondon\n', encoding="utf-8")
    assert read_triples(path) == [("Ada", "wrote", 'the "Notes"'), ("Ada", "born in", "London")]


def test_a_blank_line_is_a_field_of_a_table_of_one_column(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    path.write_text("text\na\n\nb\n", encoding="utf-8")
    assert list(Index.build(passages=path).texts) == ["a", "", "b"]


@pytest.mark.parametrize("where", ['{"text": "\\ud83d"}', '{"text": "b", "title": "\\ude00 x"}', '{"te\\ud800": 1}'])
def test_half_a_character_is_named_by_its_line(tmp_path: Path, where: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('\n{"text": "\\ud83d\\ude00"}\n' + where + "\n")
    half = f"\\u{where.partition(chr(92) + 'u')[2][:4]}"
    with refused(InputError, "syntax", None, given=half, place="p.jsonl, line 3"):
        Index.build(passages=path)
    with refused(InputError, "syntax", None, given=half, place="p.jsonl, line 3"):
        list(read_queries(path))
    with refused(FormatError, "syntax", None, given=half, place="p.jsonl, line 3"):
        list(json_objects(path, ()))
    path.write_text(json.dumps({"text": "😀"}))
    assert list(Index.build(passages=path).texts) == ["😀"]
