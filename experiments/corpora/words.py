"""Words for given meanings: WordNet's definitions as questions over entries of Webster's dictionary of 1913.

The two dictionaries were written independently, so a question does not repeat the entry that answers it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from .asking import key, sample
from .markup import dictionary, one_line
from .packages import Package
from .sets import Question, Section, Set

WEBSTER = Package(
    "debian",
    "dict-gcide",
    "0.48.5+nmu2",
    "7b0af5cfde3cbdef5e9d6e78f92ec335ced7c2790f37a40f49bebc6f7347ac0f",
    "GPL-2+; Webster's of 1913 is in the public domain",
)
WORDNET = Package(
    "debian", "dict-wn", "1:3.0-37", "ed99e0bf162815dc1cc69de3727eedd7112ddf170badf83dbde26209e0724a8c", "WordNet 3.0"
)
ENTRIES = 8000
QUESTIONS = 400
#: Words in a row that a question and its answer may share.
SHARED = 4
_VAGUE = re.compile(
    r"any (?:of|one of)|(?:type )?genus|a genus|one of|a (?:river|city|town|state|country|mountain)\b"
    r"|(?:characteri[sz]ed|concerned|marked) |\w+ing "
)
Entry = tuple[list[str], str]


def make(cache: Path) -> Set:
    """Return questions for entries of one meaning."""
    read_from = []
    for package, name in ((WEBSTER, "gcide"), (WORDNET, "wn")):
        folder = package.unpack(cache) / "usr" / "share" / "dictd"
        read_from.append(list(dictionary(folder / f"{name}.index", folder / f"{name}.dict.dz")))
    return read(*read_from)


def read(webster: Iterable[Entry], wordnet: Iterable[Entry]) -> Set:
    """Return the set of two dictionaries."""
    counts: Counter[str] = Counter()
    entries: dict[str, tuple[str, str]] = {}
    for names, text in webster:
        counts.update({name.casefold() for name in names})
        head = re.match(r"([A-Z][^\\\n]+?) \\", text)
        if head and "[1913 Webster]" in text and not re.search(r"WordNet|PJC", text):
            entries.setdefault(head[1].casefold(), (head[1], plain(text)))
    glosses = [(names[0], gloss(text), synonyms(text)) for names, text in wordnet if is_noun_of_one_meaning(text)]
    asked = Counter(found for _, found, _ in glosses)
    rows = []
    for name, found, others in glosses:
        word = name.casefold()
        alone = counts[word] == 1 and not any(counts[other] for other in others - {word})
        if word in entries and alone and asked[found] == 1 and is_asked(word, found, entries[word][1]):
            rows.append(Question(f"words-{key(name)}", "definition", question(found), entries[word][0], ()))
    rows = sample(rows, QUESTIONS)
    right = {row.answer for row in rows}
    rest = sorted((entry for entry in entries.values() if entry[0] not in right), key=lambda entry: key(entry[0], 64))
    kept = sorted([entry for entry in entries.values() if entry[0] in right] + rest[: ENTRIES - len(right)])
    number = {word: i for i, (word, _) in enumerate(kept)}
    return Set(
        "words",
        "Webster's dictionary of 1913: the word for a meaning, as WordNet defines it",
        (WEBSTER, WORDNET),
        tuple(Section(word, text) for word, text in kept),
        tuple(Question(row.id, row.type, row.question, row.answer, (number[row.answer],)) for row in rows),
        longest=None,
    )


def plain(text: str) -> str:
    """Return an entry without its headword, pronunciation and marks of sources and references."""
    text = re.sub(r"^[^\\\n]+ \\[^\\\n]*\\(?:,? *\([^)]*\))?,?\s*", "", text)
    text = re.sub(r"\[1913 Webster\]", "", text).replace("{", "").replace("}", "")
    return "\n\n".join(filter(None, map(one_line, re.split(r"\n\s*\n", text))))


def is_noun_of_one_meaning(text: str) -> bool:
    """Return whether an entry of WordNet has one meaning, of a noun."""
    return bool(re.search(r"\n\s+n 1: ", text)) and not re.search(
        r"\n\s+(?:(?:n|adj|v|adv) )?2: |\n\s+(?:v|adj|adv) 1: ", text
    )


def gloss(text: str) -> str:
    """Return WordNet's definition up to its first semicolon, without remarks in parentheses."""
    found = one_line(text.partition("\n")[2]).removeprefix("n 1: ")
    return one_line(re.sub(r"\([^)]*\)", "", re.split(r"[;:]| ?\[(?:syn|ant|also)", found)[0])).strip(" ,.")


def synonyms(text: str) -> set[str]:
    """Return the words of WordNet that have this meaning."""
    found = re.search(r"\[syn: ([^\]]*)\]", one_line(text))
    return {one_line(word).casefold() for word in re.findall(r"\{([^}]*)\}", found[1])} if found else set()


def is_asked(word: str, found: str, answer: str) -> bool:
    """Return whether a definition asks for a word: neither short, vague, copied nor with the word in it."""
    given = found.casefold().split()
    if not 6 <= len(given) <= 20 or _VAGUE.match(found) or '"' in found:
        return False
    stems = [part[: max(4, len(part) - 3)] for part in re.findall(r"\w+", word)]
    if any(one.startswith(stem) for one in re.findall(r"\w+", found.casefold()) for stem in stems):
        return False
    squeezed = " ".join(re.findall(r"\w+", answer.casefold()))
    runs = (" ".join(given[at : at + SHARED + 1]) for at in range(len(given) - SHARED))
    return len(squeezed.split()) >= 6 and not any(run in squeezed for run in runs)


def question(found: str) -> str:
    """Return the question that a definition answers."""
    lead = "What do you call" if re.match(r"(?:an?|the|some\w+|anyone|those) ", found) else "What is the word for"
    return f"{lead} {found}?"
