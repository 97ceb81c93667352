"""Questions of users in the forum and the tracker of Propellor, over all replies.

A page of the forum is a conversation: an opening post and comments. A question is taken out of the memory with the post
that asks it, and so are the titles; the maintainer's answer has to be found, or the first reply where he gave none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .asking import key, once
from .sets import Question, Section, Set
from .sources import SourcePackage

WIKI = SourcePackage(
    "debian",
    "propellor",
    "5.13-3",
    "1f7c1e4d735c6e3f292d3bae339ab15a4b47201d6c7b87fd4cd8d0318b0b2099",
    "BSD-2-Clause",
)
MAINTAINER = "joey"
#: A shorter reply ("merged, thanks") says too little to be an answer, and a shorter question too little to be found.
SHORTEST_REPLY, SHORTEST_TITLE, SHORTEST_QUESTION, LONGEST_QUESTION = 15, 4, 6, 45
#: Replies of one speaker in a row that count as one answer, and questions of one thread after its first.
MOST_REPLIES, MOST_FOLLOW_UPS = 3, 2
_COMMENT = re.compile(r'content="""\s*(.*?)\s*"""\s*\]\]\s*$', re.S)
_SIGNED = re.compile(r"\s*(?:--|—)\s*\[\[([^\]|]+)(?:\|[^\]]*)?\]\]\.?", re.I)
_OPENS = re.compile(r"(?:how|why|what|when|where|which|who|can|could|does|do|is|are|should)\b(?!'| not\b)", re.I)


@dataclass(frozen=True)
class Turn:
    """A post or a comment, with its author."""

    speaker: str
    text: str
    asks: str = ""  #: the longest question in it


@dataclass(frozen=True)
class Thread:
    """A page of the wiki: its opening post first."""

    name: str
    title: str
    turns: tuple[Turn, ...]


def make(cache: Path) -> Set:
    """Return the questions of the forum and the tracker."""
    doc = next(WIKI.unpack(cache).glob("*/doc"))
    pages = {
        path.relative_to(doc).as_posix(): path.read_text(encoding="utf-8", errors="replace")
        for room in ("forum", "todo")
        for path in sorted((doc / room).rglob("*"))
        if path.is_file() and (path.suffix == ".mdwn" or path.name.endswith("._comment"))
    }
    return read(pages)


def read(pages: Mapping[str, str]) -> Set:
    """Return the set of pages and comments, by their paths in the wiki."""
    sections: list[Section] = []
    questions: list[Question] = []
    for thread in threads(pages):
        asked = list(_asked(thread))
        out = {turn for turn, _, _ in asked}
        at = {}
        for i, said in enumerate(thread.turns):
            if i not in out and said.text:
                at[i] = len(sections)
                sections.append(Section("", f"{said.speaker}: {said.text}", thread.name))
        for turn, question, replies in asked:
            kind = "follow-up" if turn else "opening"
            row = f"propellor-{key(question)}"
            questions.append(Question(row, kind, question, "", tuple(at[reply] for reply in replies)))
    return Set(
        "propellor",
        "Questions of users in Propellor's forum and tracker, over the replies; a page is a conversation",
        (WIKI,),
        tuple(sections),
        tuple(once(questions)),
        longest=None,
    )


def threads(pages: Mapping[str, str]) -> Iterator[Thread]:
    """Yield the threads: an opening post, comments by date, and replies in the page itself, which close it."""
    comments: dict[str, list[tuple[str, Turn]]] = {}
    for path, page in pages.items():
        if path.endswith("._comment") and (found := _COMMENT.search(page)):
            head = page[: found.start()]
            text = _plain(_unquoted(found[1].replace('\\"', '"').replace("\\\\", "\\")))
            date = _field(head, "date")
            comments.setdefault(path.rpartition("/")[0], []).append((date, Turn(_speaker(head), text, _question(text))))
    for path, page in pages.items():
        if path.endswith(".mdwn"):
            name = path.removesuffix(".mdwn")
            opening, closing = _parts(page)
            said = [turn for _, turn in sorted(comments.get(name, []), key=lambda pair: pair[0])]
            yield Thread(name, _title(name), (opening, *said, *closing))


def _asked(thread: Thread) -> Iterator[tuple[int, str, list[int]]]:
    """Yield the turns that ask, their questions, and the turns that answer: the opening post's, then follow-ups."""
    turns, title = thread.turns, thread.title.rstrip("?").strip()
    used: set[int] = set()
    opening = f"{title}?" if thread.title.endswith("?") or _OPENS.match(title) else ""
    if len(opening.split()) < SHORTEST_QUESTION and turns[0].asks:
        opening = f"{title}: {turns[0].asks}"
    opening = opening or title
    if len(opening.split()) >= SHORTEST_TITLE:
        full = [i for i in range(1, len(turns)) if _answers(turns[i])]
        first = next((i for i in full if turns[i].speaker == MAINTAINER), full[0] if full else 0)
        if first:
            replies = _answer(turns, first)
            used = {0, *replies}
            yield 0, opening, replies
    follow_ups = 0
    for i in range(1, len(turns) - 1):
        turn, reply = turns[i], turns[i + 1]
        if turn.asks and turn.speaker not in (MAINTAINER, reply.speaker) and _answers(reply) and i not in used:
            replies = [row for row in _answer(turns, i + 1) if row not in used]
            if replies and follow_ups < MOST_FOLLOW_UPS:
                follow_ups += 1
                used |= {i, *replies}
                yield i, f"{title}: {turn.asks}", replies


def _answers(turn: Turn) -> bool:
    """Return whether a turn is long enough to be an answer."""
    return len(turn.text.split()) >= SHORTEST_REPLY


def _answer(turns: Sequence[Turn], first: int) -> list[int]:
    """Return the turns of one speaker in a row from ``first`` that are long enough to answer."""
    found = []
    for i in range(first, min(len(turns), first + MOST_REPLIES)):
        if turns[i].speaker != turns[first].speaker:
            break
        if _answers(turns[i]):
            found.append(i)
    return found


def _parts(page: str) -> tuple[Turn, list[Turn]]:
    """Return the opening post and the replies in the page: ``>`` marks the maintainer's, ``>>`` what follows on it."""
    opening: list[str] = []
    replies: list[tuple[int, list[str]]] = []
    before = 0
    for line in page.splitlines():
        marks = re.match(r"(?:> ?)*", line)[0]  # type: ignore[index]  # It matches the empty string.
        depth = marks.count(">")
        if depth == 0:
            opening.append(line)
        elif depth == before:
            replies[-1][1].append(line[len(marks) :])
        else:
            replies.append((depth, [line[len(marks) :]]))
        before = depth
    said = [_turn("\n".join(lines), MAINTAINER if depth % 2 else "somebody") for depth, lines in replies]
    return _turn("\n".join(opening), "somebody"), [turn for turn in said if turn.text]


def _turn(text: str, speaker: str) -> Turn:
    """Return a turn of a page, by the one who signed it, if anybody did."""
    signed = _SIGNED.search(text)
    said = _plain(_SIGNED.sub("", text))
    return Turn(signed[1].strip().lower() if signed else speaker, said, _question(said))


def _question(text: str) -> str:
    """Return the longest question of a text that is neither too short nor too long to ask alone."""
    text = re.sub(r"```.*?```", "\n", text, flags=re.S)
    prose = "\n".join("" if re.match(r"\t| {4}", line) else line for line in text.splitlines())
    parts = [" ".join(part.split()) for part in re.split(r"\n\s*\n|(?<=[.!?])\s+(?=[\"'(`*A-Z])", prose)]
    found = [part.lstrip("* ") for part in parts if part.endswith("?")]
    fit = [part for part in found if SHORTEST_QUESTION <= len(part.split()) <= LONGEST_QUESTION]
    return max(fit, key=lambda part: len(part.split()), default="")


def _unquoted(text: str) -> str:
    """Return a text without the lines of other posts that it quotes."""
    return "\n".join(line for line in text.splitlines() if not line.startswith(">"))


def _plain(text: str) -> str:
    """Return a text without the wiki's marks."""
    text = re.sub(r'\[\[!format\s+\S+\s+"""(.*?)"""\s*\]\]', r"\1", text, flags=re.S)
    text = re.sub(r"\[\[!commit\s+(\w+)\s*\]\]", r"\1", text)
    text = re.sub(r"\[\[!.*?\]\]", "", text, flags=re.S)
    text = re.sub(r"\[\[([^\]|]+)\|[^\]]*\]\]|\[\[([^\]]+)\]\]", lambda m: m[1] or m[2], text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _speaker(head: str) -> str:
    named = _field(head, "nickname") or _field(head, "claimedauthor") or _field(head, "username") or "somebody"
    return MAINTAINER if "joeyh.name" in named else named.partition("@")[0]


def _field(head: str, name: str) -> str:
    found = re.search(rf'^\s*{name}="+(.*?)"+\s*$', head, re.M)
    return found[1] if found else ""


def _title(name: str) -> str:
    """Return the title of a page: the wiki writes signs as ``__63__`` and spaces as ``_``."""
    stem = re.sub(r"__(\d+)__", lambda m: chr(int(m[1])), name.rpartition("/")[2])
    return " ".join(stem.replace("_", " ").split())
