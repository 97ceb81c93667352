"""How often an exact phrase of a text finds the text, in languages of other scripts than English.

    apt-get download firefox-esr-l10n-{zh-cn,ja,ko,th,ar,hi-in,ru,fr,de}
    python -m experiments.phrases firefox-esr-l10n-*.deb [--out FILE]

Each package has the texts of Firefox in one language. Consecutive strings of a file are a passage of at least 300
characters. A phrase is five words, or eight characters in a script without spaces, that at most three passages have;
100 are drawn from passages in a fixed order. A line says of how many a passage with the phrase is among the first ten.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import hopfuse as hf
from hopfuse.lexical import FTS5
from hopfuse.text import UNSPACED, runs_in, script_of

from bench.result_file import ResultFile, add_out_option

LEAST, PHRASES, FIRST, MOST = 300, 100, 10, 3
_PLACE, _ESCAPE = re.compile(r"\{[^{}]*\}"), re.compile(r"\\u[0-9a-fA-F]{4}|<[^>]*>|&[\w.]+;|%[\d$]*\w")


def strings_of(package: Path) -> Iterator[list[str]]:
    """Yield the texts of each file of a language pack, in order."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
        for pack in sorted(Path(folder).rglob("*.xpi")):
            with zipfile.ZipFile(pack) as files:
                for name in sorted(files.namelist()):
                    if name.endswith((".ftl", ".properties")):
                        yield [text for line in files.read(name).decode().splitlines() if (text := text_of(line))]


def text_of(line: str) -> str:
    """Return the text in a line of a file of messages, without names, places and markup."""
    if line.startswith(("#", "[")):
        return ""
    text = line.partition("=")[2] if re.match(r"\s*[\w.-]+\s*=", line) else line if line[:1] == " " else ""
    text = _ESCAPE.sub(" ", _PLACE.sub(" ", text)).strip()
    return "" if text.startswith(("[", "*[", "}", "{", ".")) else " ".join(text.split())


def passages_of(package: Path) -> list[str]:
    """Return the passages of a language pack."""
    passages = []
    for strings in strings_of(package):
        held: list[str] = []
        for text in strings:
            held.append(text)
            if sum(map(len, held)) >= LEAST:
                passages.append("\n".join(held))
                held = []
    return list(dict.fromkeys(passages))


def phrases_of(passages: Sequence[str]) -> list[str]:
    """Return phrases of passages, each of one that is drawn."""
    draw, found = random.Random(46), list[str]()
    unspaced = script_of("".join(passages)) in UNSPACED
    for passage in draw.sample(passages, len(passages)):
        places = _runs(passage) if unspaced else _words(passage)
        draw.shuffle(places)
        for phrase in places:
            if phrase not in found and sum(phrase in one for one in passages) <= MOST:
                found.append(phrase)
                break
        if len(found) == PHRASES:
            break
    return found


def _words(passage: str) -> list[str]:
    """Return every five words of a passage with nothing but a space between them."""
    found = []
    for line in passage.split("\n"):
        words = line.split(" ")
        for at in range(len(words) - 4):
            five = words[at : at + 5]
            if all(runs_in(word) == [word] for word in five):
                found.append(" ".join(five))
    return found


def _runs(passage: str) -> list[str]:
    letter = r"(?:[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff])"
    mark = r"[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]"
    return re.findall(rf"(?!{mark}){letter}{{8}}(?!{mark})", passage)


def recall(passages: Sequence[str], phrases: Sequence[str], rows: Sequence[Sequence[int]]) -> int:
    """Return how many phrases are in a passage of their row."""
    return sum(any(phrase in passages[at] for at in row) for phrase, row in zip(phrases, rows, strict=True))


def main() -> None:
    """Print a row of a table for each package, and write the rows."""
    parser = argparse.ArgumentParser(prog="python -m experiments.phrases", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="PACKAGE.deb")
    add_out_option(parser)
    given, result = parser.parse_args(), ResultFile("python -m experiments.phrases firefox-esr-l10n-*.deb")
    print("| package | passages | phrases | default over words | BM25 | FTS5 | FTS5 with trigrams | read as |")
    print("|---|---|---|---|---|---|---|---|")
    for file in given.files:
        passages = passages_of(file)
        phrases = phrases_of(passages)
        index = hf.Index.build([{"text": text} for text in passages], reader="words", lexical=True)
        legs = (hf.lexical.BM25(index.lexical), FTS5.build(passages), FTS5.build(passages, tokenizer="trigram"))
        hits = [hf.Retriever(index).search(phrases, k=FIRST).hits, *(leg.search(phrases, FIRST) for leg in legs)]
        found = [[[passage for passage, _ in one.row(b)] for b in range(len(phrases))] for one in hits]
        counted = [recall(passages, phrases, rows) for rows in found]
        counts = " | ".join(map(str, counted))
        words = index.words
        stemmer = "" if words is None else words.stemmer or "without stems"
        package, version = file.name.split("_")[:2]
        print(f"| {package} | {len(passages)} | {len(phrases)} | {counts} | {stemmer} |", flush=True)
        result.add(
            package=package,
            version=version.replace("%3a", ":"),
            passages=len(passages),
            phrases=len(phrases),
            **dict(zip(("default", "BM25", "FTS5", "FTS5 with trigrams"), counted, strict=True)),
            stems=stemmer,
        )
    result.write(given.out)


if __name__ == "__main__":
    main()
