"""Sets of ordinary questions: what is read, cut, asked and written, on small texts, and of one real package."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections import Counter
from pathlib import Path

import hopfuse as hf
import pytest

from experiments.corpora import anarchism, asking, books, cut, folder, markup, perl, recorded, words
from experiments.corpora.packages import Package, UnavailableError
from experiments.corpora.sets import Question, Section, Set

POD = """=head1 NAME

perlfaq9 - Small Matters

=head1 DESCRIPTION

See L<perlre/"Matching"> and C<< print $x->{y} >> for E<lt>this>.

=head2 How do I count the lines of a file?

Read them one at a time and add one to a counter whenever the operator returns
another B<line> of the handle.

    $count++ while <$fh>;

=over 4

=item * Never read all

=back

=begin html

<b>left out</b>

=end html

=head2 How do I count words?

=for comment nothing

See L<perlfunc>.

=head2 Where are more answers?

Ask again after you have read "How do I count the lines of a file?" and the other pages of the manual in this package.
"""

HTML = """<html lang="en"><head><title>3. Files &#8212; Guide</title></head><body>
<div class="toc"><p>Mounting a File System</p></div>
<h1>3. Files<a class="headerlink">¶</a></h1><p>About files.</p>
<h2>3.1. Mounting a Remote File System</h2>
<p>A folder of a remote machine becomes a folder of yours. Name the machine and the folder, choose where it shall appear
in the tree, and give the kind of file system, so that the kernel knows which of its modules has to answer for the
requests.</p><pre>
mount a:/b  /c
</pre>
<h2>3.2. What is a link?</h2><p>It is another name of the same file, and the file is there until the last of its names
is gone. See “Mounting a Remote File System”.</p>
<h2>Notes</h2><p>None of them.</p></body></html>"""


def test_pod_is_read_without_codes_and_with_its_headings():
    parts = markup.pod_parts(POD)
    assert [(part.level, part.heading) for part in parts][1:3] == [
        (1, "DESCRIPTION"),
        (2, "How do I count the lines of a file?"),
    ]
    assert parts[1].text == 'See perlre/"Matching" and print $x->{y} for <this>.'
    assert parts[2].text.split("\n\n")[1:] == ["    $count++ while <$fh>;", "Never read all"]
    entries = markup.pod_parts(
        "=head1 F\n\n=over\n\n=item a\n\n=item b\n\nText.\n\n=item c\n\nMore.\n\n=back", entries=True
    )
    assert [part.text.split("\n\n") for part in entries] == [["a", "b", "Text."], ["c", "More."]]


def test_html_is_read_without_navigation():
    parts = markup.html_parts(HTML, books.LEFT_OUT)
    assert [part.heading for part in parts] == [
        "3. Files",
        "3.1. Mounting a Remote File System",
        "3.2. What is a link?",
        "Notes",
    ]
    assert parts[1].text.endswith("requests.\n\nmount a:/b  /c")
    assert "Mounting a File System" not in "".join(part.text for part in parts)


def test_a_dictionary_is_read_in_the_order_of_its_file(tmp_path):
    entries = ["Cat\n  A pet.\n", "Dog\n  Another pet.\n"]
    (tmp_path / "d.index").write_text("dog\tN\tT\nhound\tN\tT\ncat\tA\tN\n00-database-info\tA\tB\n", encoding="utf-8")
    with gzip.open(tmp_path / "d.dz", "wb") as file:
        file.write("".join(entries).encode())
    found = list(markup.dictionary(tmp_path / "d.index", tmp_path / "d.dz"))
    assert found == [(["cat"], entries[0]), (["dog", "hound"], entries[1])]


def test_the_equal_cut_keeps_every_word_and_joins_short_neighbours():
    long = " ".join(f"w{i}{'.' if i % 9 == 0 else ''}" for i in range(1000))
    sections = [
        Section("T", "one two", "d"),
        Section("T", "three", "d"),
        Section("U", "four", "d"),
        Section("T", long, "e"),
    ]
    passages = cut.equal(sections, 100)
    assert passages[0] == cut.Passage("T", "one two\n\nthree", "d", 0, (0, 1))
    assert passages[1] == cut.Passage("U", "four", "d", 1, (2,))
    lengths = [cut.words(passage.text) for passage in passages[2:]]
    assert sum(lengths) == 1000
    assert max(lengths) <= 100
    assert min(lengths) >= 60
    assert " ".join(passage.text for passage in passages[2:]).split() == long.split()
    assert [passage.position for passage in passages[2:]] == list(range(len(lengths)))
    whole = cut.whole(sections)
    assert [(passage.text, passage.sections) for passage in whole] == [(s.text, (i,)) for i, s in enumerate(sections)]


@pytest.mark.parametrize(
    ("heading", "asked"),
    [
        ("3.1. Mounting and Unmounting a File System", "How do I mount and unmount a file system?"),
        ("A.2 The Linux File System", "Linux file system"),
        ("Running on Debian", "How do I run on Debian?"),
        ("A Better Example of Use", "better example of use"),
    ],
)
def test_a_heading_is_asked_as_people_type(heading, asked):
    counts = Counter({"Linux": 5, "Debian": 5, "file": 3, "File": 1, "system": 2})
    assert asking.ask(asking.bare(heading), counts) == asked


def test_headings_that_depend_on_others_are_not_asked():
    assert asking.is_meaningful("Mounting a remote file system", 3)
    for heading in (
        "Further details",
        "Example: a file system",
        "Tips to avoid these problems",
        "Phase 2: name matching",
    ):
        assert not asking.is_meaningful(heading, 3)
    assert not asking.answers("See the next section.")
    assert not asking.answers("In this chapter " + "we say so " * 6)


def test_a_repeated_heading_is_taken_out():
    sections = [
        Section("", 'See "What is "x" good for?" first.'),
        Section("", "One reads of the package name, and of “The package name”.\n\nThe package name\n\nEnd."),
    ]
    first, second = asking.without(sections, ['What is "x" good for?', "The package name"])
    assert first.text == "See  first."
    assert " ".join(second.text.split()) == "One reads of the package name, and of End."


def test_questions_are_drawn_by_their_ids_and_asked_once():
    rows = [Question(f"q{i}", "faq", f"What is {i}?", "", (i,)) for i in range(30)]
    drawn = asking.sample(rows, 10)
    assert len(drawn) == 10
    assert asking.sample(rows[::-1], 10)[::-1] == drawn
    assert set(asking.sample(rows[:15], 10)) >= set(drawn) & set(rows[:15])  # others do not change what is drawn
    twice = Question("q30", "faq", "what is 3", "", (3,))
    assert asking.once([*rows, twice]) == [row for row in rows if row.id != "q3"]


def test_perls_faq_is_asked_over_texts_without_its_headings():
    made = perl.read({"perlfaq9": POD, "perlfunc": "=head1 NAME\n\nperlfunc - functions\n\n=head1 Eof\n\nThe end."})
    assert [row.question for row in made.questions] == [
        "How do I count the lines of a file?",
        "Where are more answers?",
    ]
    for row in made.questions:
        assert all(row.question not in section.text for section in made.sections)
    assert "counter" in made.sections[made.questions[0].gold[0]].text
    assert [section.title for section in made.sections][::4] == ["perlfaq9 - Small Matters", "perlfunc - functions"]


def test_the_faq_of_politics_is_asked_without_numbers():
    text = "People have asked so for a long time, and the answer is that it depends on whom one asks, and when."
    page = (
        f"<h1>A.1 What is it? A.1.1 Why? A.1.2 How?</h1><p>{text}</p><h2>A.1.1 Why is it so?</h2><p>{text} Again.</p>"
    )
    made = anarchism.read({"secA1": page})
    assert [row.question for row in made.questions] == ["What is it?", "Why is it so?"]
    assert made.sections[made.questions[1].gold[0]].text == f"{text} Again."


def test_books_are_asked_by_questions_and_other_headings():
    book = books.Book("Guide", Package("debian", "guide", "1", "", "MIT"), "*.html")
    sections, questions = books.read("guide", [book], {"Guide": {"ch3.html": HTML, "copy.html": HTML}}, most=10)
    assert [section.title for section in sections] == ["Guide: Files"] * 4
    assert [(row.type, row.question, row.gold) for row in questions] == [
        ("heading", "How do I mount a remote file system?", (1,)),
    ]
    assert "Mounting" not in "".join(section.text for section in sections)


def test_words_are_asked_by_the_other_dictionarys_definition():
    webster = [
        (
            ["Saucepan"],
            'Saucepan \\Sauce"pan`\\, n.\n   A small pan with a handle, in which {sauce} is made.\n   [1913 Webster]\n',
        ),
        (["Kettle"], 'Kettle \\Ket"tle\\, n.\n   A metal vessel in which water is heated.\n   [1913 Webster]\n'),
        (["Radio"], 'Radio \\Ra"di*o\\, n.\n   A device that receives waves.\n   [WordNet 1.5]\n'),
    ]
    wordnet = [
        (["saucepan"], "saucepan\n    n 1: a deep metal vessel with a handle; used (on fire) for cooking\n"),
        (["kettle"], "kettle\n    n 1: a metal pot for boiling\n    2: a drum of copper or brass with skin\n"),
        (["radio"], "radio\n    n 1: an electronic receiver that detects and demodulates waves\n"),
    ]
    made = words.read(webster, wordnet)
    assert [(row.question, row.answer) for row in made.questions] == [
        ("What do you call a deep metal vessel with a handle?", "Saucepan")
    ]
    assert made.sections[made.questions[0].gold[0]].text == "n. A small pan with a handle, in which sauce is made."
    assert not words.is_asked(
        "teller", "someone who tells a story to other people", "A person with tales for everybody here."
    )
    assert not words.is_asked("teller", "a clerk in a bank who pays", "A clerk in a bank who pays and receives.")


@pytest.fixture
def made() -> Set:
    """Return a set of three sections and two questions."""
    sections = [Section("T", "alpha " * 40, "d"), Section("T", "beta " * 700, "d"), Section("Word", "A meaning.")]
    questions = [Question("s-a", "faq", "What is alpha?", "", (0,)), Question("s-b", "faq", "What is beta?", "", (1,))]
    return Set("s", "small", (Package("debian", "p", "1", "0", "MIT"),), tuple(sections), tuple(questions), longest=100)


def test_a_folder_has_the_same_bytes_each_time_and_builds_an_index(made, tmp_path):
    for name, passages in folder.cuts(made).items():
        for at in (tmp_path / f"{name}-1", tmp_path / f"{name}-2"):
            folder.write(made, name, passages, at)
        first, second = (
            {path.name: path.read_bytes() for path in (tmp_path / f"{name}-{i}").iterdir()} for i in (1, 2)
        )
        assert first == second
        assert set(first) == {"about.json", "passages.jsonl", "queries.jsonl"}
        assert hf.Index.build(passages=tmp_path / f"{name}-1" / "passages.jsonl").num_passages == len(passages)
    rows = [
        json.loads(line) for line in (tmp_path / "whole-1" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [(row["gold"], row["hops"], row["last_hop"]) for row in rows] == [([0], [[0]], [0]), ([1], [[1]], [1])]
    asked = (tmp_path / "equal-1" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["id"] for line in asked] == ["s-a"]  # the other section is in eight passages
    last = json.loads((tmp_path / "whole-1" / "passages.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert last == {"id": 2, "title": "Word", "text": "A meaning."}
    assert folder.recall_at_5(tmp_path / "whole-1") == {"bm25": 100.0}


def test_figures_are_added_to_the_recorded_ones(made, tmp_path):
    results = tmp_path / "corpora.json"
    about = {
        name: folder.write(made, name, passages, tmp_path / name) | {"recall@5": {"bm25": 100.0}}
        for name, passages in folder.cuts(made).items()
    }
    recorded.record({"s-whole": about["whole"]}, results)
    recorded.record({"s-equal": about["equal"]}, results)
    kept = json.loads(results.read_text(encoding="utf-8"))
    assert list(kept) == ["s-equal", "s-whole"]
    lengths = kept["s-equal"]["words of a passage"]
    assert (lengths["10 %"], lengths["median"], lengths["90 %"]) == (2, 75, 100)
    assert kept["s-whole"]["packages"] == [{"package": "debian:p=1", "licence": "MIT"}]


def client(folder: Path, name: str, does: str) -> None:
    """Write a program of a package client."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def test_a_package_is_fetched_once_and_refused_with_the_reason(tmp_path, monkeypatch):
    content = tmp_path / "made" / "package" / "a.txt"
    content.parent.mkdir(parents=True)
    content.write_text("text", encoding="utf-8")
    os.system(f"tar -C {tmp_path / 'made'} -czf {tmp_path / 'a.tgz'} package")
    checksum = hashlib.sha256((tmp_path / "a.tgz").read_bytes()).hexdigest()
    client(tmp_path / "bin", "npm", f"cp {tmp_path / 'a.tgz'} .")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    unpacked = Package("npm", "a", "1", checksum, "MIT").unpack(tmp_path / "cache")
    assert (unpacked / "package" / "a.txt").read_text(encoding="utf-8") == "text"
    with pytest.raises(UnavailableError, match="pinned"):
        Package("npm", "a", "1", "0" * 64, "MIT").unpack(tmp_path / "cache")
    client(tmp_path / "bin", "npm", "echo 'no such version' >&2; exit 1")
    with pytest.raises(UnavailableError, match="no such version"):
        Package("npm", "a", "2", "0" * 64, "MIT").unpack(tmp_path / "cache")
    assert Package("npm", "a", "1", checksum, "MIT").unpack(tmp_path / "cache") == unpacked  # without the client
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == [unpacked.name]


@pytest.mark.full
def test_the_real_package_makes_the_set(tmp_path):
    try:
        made = anarchism.make(tmp_path)
    except UnavailableError as error:
        pytest.skip(str(error))
    assert len({row.id for row in made.questions}) == len(made.questions) == 400
    passages = folder.cuts(made)
    assert all(passage.text for cut_passages in passages.values() for passage in cut_passages)
    folder.write(made, "whole", passages["whole"], tmp_path / "whole")
    assert 50 < folder.recall_at_5(tmp_path / "whole")["bm25"] < 97
