"""``hopfuse build --conflicts``: a file of the facts that passages disagree about."""

from __future__ import annotations

import os

import pytest
from cli.cli_files import about, hopfuse, killed, read_jsonl, write_jsonl
from hopfuse import Index
from hopfuse.cli import main


def born(place, **more):
    return {"entities": [], "triples": [["Ada", "place of birth", place], *more.get("others", ())]}


@pytest.fixture
def disagreeing(tmp_path):
    """Passages that disagree about two facts, and agree about a third."""
    stated = [
        born("Paris", others=[["Émile", "father", "Jean"]]),
        born("London"),
        born("london", others=[["Émile", "Father", "Luc"], ["Bob", "father", "Carl"]]),
        born("Rome"),
    ]
    ids = ["p-a", "p-b", "p-c", "p-d"]
    passages = write_jsonl(tmp_path / "passages.jsonl", [{"id": id, "text": f"text {id}"} for id in ids])
    facts = write_jsonl(tmp_path / "facts.jsonl", [{"id": id, **row} for id, row in zip(ids, stated, strict=True)])
    return "build", passages, "--from", facts


@pytest.fixture
def failed(capsys):
    """Return a function that runs a command in this process that fails after its note about the facts."""

    def run(*args):
        with pytest.raises(SystemExit, match="2"):
            main([str(arg) for arg in args])
        err = capsys.readouterr().err
        assert "2 conflicts resolved by majority" in err
        assert "Saved generation" not in err
        return err.splitlines()[-1]

    return run


EXPECTED = [
    {
        "head": "Ada",
        "relation": "place of birth",
        "kept": {"tail": "London", "count": 2, "passages": ["p-b", "p-c"]},
        "dropped": [
            {"tail": "Paris", "count": 1, "passages": ["p-a"]},
            {"tail": "Rome", "count": 1, "passages": ["p-d"]},
        ],
    },
    {
        "head": "Émile",
        "relation": "father",
        "kept": {"tail": "Jean", "count": 1, "passages": ["p-a"]},
        "dropped": [{"tail": "Luc", "count": 1, "passages": ["p-c"]}],
    },
]


def test_conflicts_are_written(disagreeing, tmp_path):
    file = tmp_path / "conflicts.jsonl"
    done = hopfuse(*disagreeing, "--conflicts", file, "--out", tmp_path / "index")
    assert "2 conflicts resolved by majority" in done.stderr
    assert read_jsonl(file) == EXPECTED
    assert "Émile" in file.read_text(encoding="utf-8")
    facts = Index.open(tmp_path / "index").facts
    assert len(facts.rows) == 3  # two unchanged ones, and Bob's
    assert not list(tmp_path.glob("*.unfinished"))


def test_a_file_is_replaced_when_asked(disagreeing, tmp_path, refused_here):
    file = tmp_path / "conflicts.jsonl"
    file.write_text("mine", encoding="utf-8")
    args = (*disagreeing, "--conflicts", file, "--out", tmp_path / "index")
    assert refused_here(*args) == about("exists", "conflicts")
    assert file.read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "index").exists()
    hopfuse(*args, "--overwrite")
    assert read_jsonl(file) == EXPECTED


def test_agreement_is_an_empty_record(tmp_path):
    kb, file = tmp_path / "kb.tsv", tmp_path / "conflicts.jsonl"
    kb.write_text("Alien\tdirected by\tRidley Scott\n", encoding="utf-8")
    hopfuse("build", "--from", kb, "--conflicts", file, "--out", tmp_path / "index")
    assert file.read_bytes() == b""


def test_a_file_that_cannot_be_is_refused_before_any_work(disagreeing, tmp_path, refused_here):
    out = ("--out", tmp_path / "index")
    _, passages, _, facts = disagreeing
    for path, message in (
        (tmp_path / "settled.json", about("choice", "conflicts")),
        (tmp_path / "no" / "conflicts.jsonl", about("missing", "conflicts")),
        (facts, about("conflict", "conflicts", other="from")),
        (passages, about("conflict", "conflicts")),
    ):
        assert refused_here(*disagreeing, "--conflicts", path, *out) == message
    file = tmp_path / "conflicts.jsonl"
    assert refused_here("build", passages, "--conflicts", file, *out) == about("unused", "conflicts")
    assert not (tmp_path / "index").exists()
    assert not file.exists()


@pytest.mark.parametrize(
    ("path", "out"),
    [("same.jsonl", "same.jsonl"), ("index/s.jsonl", "index"), ("s.jsonl", "s.jsonl/index"), ("link/s.jsonl", "index")],
)
def test_a_file_where_the_index_goes_is_refused_before_any_work(disagreeing, tmp_path, refused_here, path, out):
    if not path.startswith("s"):
        (tmp_path / "index").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "index")
    before = sorted(tmp_path.rglob("*"))
    message = refused_here(*disagreeing, "--conflicts", tmp_path / path, "--out", tmp_path / out)
    assert message == about("conflict", "conflicts")
    assert sorted(tmp_path.rglob("*")) == before


def test_no_index_is_saved_where_its_record_cannot_be_written(disagreeing, tmp_path, failed):
    file = tmp_path / "conflicts.jsonl"
    (tmp_path / "conflicts.jsonl.unfinished").mkdir()
    message = failed(*disagreeing, "--conflicts", file, "--out", tmp_path / "index")
    assert "conflicts.jsonl.unfinished cannot be written: Is a directory; nothing is saved" in message
    assert not (tmp_path / "index").exists()


def test_no_record_is_left_where_the_index_cannot_be_saved(disagreeing, tmp_path, failed, monkeypatch):
    file = tmp_path / "conflicts.jsonl"
    file.write_text("mine", encoding="utf-8")

    def full(index, directory):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Index, "save", full)
    message = failed(*disagreeing, "--conflicts", file, "--overwrite", "--out", tmp_path / "index")
    assert "No space left on device" in message
    assert "Errno" not in message
    assert file.read_text(encoding="utf-8") == "mine"
    assert not list(tmp_path.glob("*.unfinished"))


def test_a_file_that_loses_its_name_is_kept(disagreeing, tmp_path, failed, monkeypatch):
    file, save = tmp_path / "conflicts.jsonl", Index.save

    def taken(index, directory):
        file.mkdir()
        return save(index, directory)

    monkeypatch.setattr(Index, "save", taken)
    message = failed(*disagreeing, "--conflicts", file, "--out", tmp_path / "index")
    assert f"the index is saved, its conflicts are in {file}.unfinished" in message
    assert read_jsonl(f"{file}.unfinished") == EXPECTED
    assert len(Index.open(tmp_path / "index").facts.rows) == 3


def test_a_kill_while_it_is_written_leaves_the_old_file(disagreeing, tmp_path):
    file = tmp_path / "conflicts.jsonl"
    file.write_text("mine", encoding="utf-8")
    moment = ("os", "replace", replaces(disagreeing, tmp_path))
    killed(moment, *disagreeing, "--conflicts", file, "--overwrite", "--out", tmp_path / "index")
    assert file.read_text(encoding="utf-8") == "mine"
    assert read_jsonl(tmp_path / "conflicts.jsonl.unfinished") == EXPECTED


def replaces(args, folder):
    """Return the number of the os.replace call that renames the file: the one after those of saving an index."""
    calls, replace = [], os.replace
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", lambda *paths: (calls.append(paths), replace(*paths)))
        with pytest.raises(SystemExit, match="0"):
            main([str(arg) for arg in (*args, "--out", folder / "other")])
    return len(calls) + 1
