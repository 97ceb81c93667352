"""A folder in the format of MetaQA."""

from __future__ import annotations

from pathlib import Path

import pytest

METAQA = {
    "kb.tsv": ["Alien\tdirected by\tRidley Scott", "Alien\thas genre\tHorror", "Jaws\tdirected by\tSteven Spielberg"],
    "entity2text.txt": ["0\tAlien", "1\tRidley Scott", "2\tHorror", "3\tJaws"],
    "qa_1hop_dev.txt": ["who directed [Alien]\tRidley Scott", "what genre is [Alien]\tHorror"],
    "qa_2hop_dev.txt": ["films of the director of [Alien]\tAlien|Jaws"],
    "qa_3hop_dev.txt": [],
}


@pytest.fixture
def metaqa_folder(tmp_path: Path) -> Path:
    """Return a folder in the format of MetaQA: three films and their questions."""
    for name, lines in METAQA.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path
