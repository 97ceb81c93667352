"""How often a question mentions a name only by the rules for scripts and cases, where no such name is meant.

    apt-get download firefox-esr-l10n-{zh-cn,ja,ko,th,ar,he,hi-in,ru,fi,fr,de}
    pip install faker
    python -m experiments.false_names firefox-esr-l10n-*.deb [--list] [--out FILE]

The names are the first and last names that Faker has for the language. The texts are those of Firefox, which name few
persons, so that nearly every mention is false. Every second passage is in the index, beside one passage for each name;
the lines of the others are the questions. A row counts the mentions that are whole words, spelled as the name, and the
others, which only a rule finds: inside a word or a run of characters, in a case, with other accents or signs. The last
column counts the latter if nothing is counted in passages. ``--list`` prints them: the name, the word, how often.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import hopfuse as hf
from hopfuse.extract import EntityLinker
from hopfuse.text import fold, splits_word

from bench.result_file import ResultFile, add_out_option

from .phrases import passages_of

LOCALES = {
    "ar": ("ar_AA", "ar_SA", "ar_PS"),
    "de": ("de_DE",),
    "fi": ("fi_FI",),
    "fr": ("fr_FR",),
    "he": ("he_IL",),
    "hi-in": ("hi_IN",),
    "ja": ("ja_JP",),
    "ko": ("ko_KR",),
    "ru": ("ru_RU",),
    "th": ("th_TH",),
    "zh-cn": ("zh_CN",),
}
_WORD = re.compile(r"\S+")


def names_of(language: str) -> list[str]:
    """Return the first and last names of a language that Faker has."""
    found = set[str]()
    for locale in LOCALES[language]:
        provider = import_module(f"faker.providers.person.{locale}").Provider
        lists = [one for one in dir(provider) if one.startswith(("first_names", "last_names"))]
        for row in (row for one in lists for row in getattr(provider, one)):
            found.update([row] if isinstance(row, str) else row[:2])  # or as written, in kana, in Latin letters
    return sorted(name.strip() for name in found if name.strip())


def mentions(linker: EntityLinker, names: Sequence[str], texts: Sequence[str]) -> tuple[int, Counter[tuple[str, str]]]:
    """Return how many mentions are whole words spelled as their name, and the others, each with its word."""
    whole, others = 0, Counter[tuple[str, str]]()
    for text, matches in zip(texts, linker.match(texts), strict=True):
        for start, end in {(match.start, match.end) for match in matches}:
            spelled = {names[match.entity] for match in matches if match.start == start}
            cut = splits_word(text, start) or splits_word(text, end)
            if not cut and fold(text[start:end]) in map(fold, spelled):
                whole += 1
                continue
            word = next(one[0] for one in _WORD.finditer(text) if one.end() > start)
            others[min(spelled), word] += 1
    return whole, others


def main() -> None:
    """Print a row of a table for each package, and write the rows."""
    parser = argparse.ArgumentParser(prog="python -m experiments.false_names", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="PACKAGE.deb")
    parser.add_argument("--list", action="store_true", help="print the mentions by a rule")
    add_out_option(parser)
    given, result = parser.parse_args(), ResultFile("python -m experiments.false_names firefox-esr-l10n-*.deb")
    print("| package | names | questions | characters | as whole words | by a rule | without counts |")
    print("|---|---|---|---|---|---|---|")
    for file in given.files:
        package, version = file.name.split("_")[:2]
        names, passages = names_of(package.removeprefix("firefox-esr-l10n-")), passages_of(file)
        held, texts = passages[::2], [line for passage in passages[1::2] for line in passage.split("\n")]
        index = hf.Index.build(
            [{"text": text} for text in (*held, *names)],
            entities=names,
            graph=[{"src": len(held) + at, "dst": len(held) + len(names) + at} for at in range(len(names))],
        )
        whole, others = mentions(EntityLinker(index), names, texts)
        alone = EntityLinker(hf.Index.build([{"text": "-"}], entities=names))
        _, uncounted = mentions(alone, names, texts)
        numbers = (len(names), len(texts), sum(map(len, texts)), whole, others.total(), uncounted.total())
        print(f"| {package} | {' | '.join(f'{number:,}' for number in numbers)} |", flush=True)
        columns = ("names", "questions", "characters", "as whole words", "by a rule", "without counts")
        result.add(package=package, version=version.replace("%3a", ":"), **dict(zip(columns, numbers, strict=True)))
        if given.list:
            for (name, word), count in others.most_common():
                print(f"    {name}\t{word}\t{count}")

    result.write(given.out)


if __name__ == "__main__":
    main()
