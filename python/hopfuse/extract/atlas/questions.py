"""Choosing which chains to ask, and by which name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from .chains import Chain, stable_hash
from .draft import Draft
from .names import fold, with_article
from .records import World
from .topics import question_types

PER_TYPE = 150
ALIAS_SHARE = 3  # one question in so many is asked by an alternate name, where there is one


@dataclass(frozen=True, slots=True)
class Asked:
    """A question in words; its chain's hops are passage ids."""

    id: str
    text: str
    type: str
    chain: Chain
    name: str
    by_alias: bool


def ask(draft: Draft, world: World) -> list[Asked]:
    """At most ``PER_TYPE`` questions of every type, spread over as many last passages as there are."""
    shared = draft.shared_names()
    known = {key for key, plain in draft.plain.items() if fold(plain) not in shared}
    asked = []
    for type, text, chains in question_types(world, known):
        fit = (chain for chain in _in_turns(type, chains) if _is_fit(chain, draft))
        asked += [_in_words(type, text, chain, draft) for chain in islice(fit, PER_TYPE)]
    return sorted(asked, key=lambda q: q.id)


def _in_turns(type: str, chains: Iterable[Chain]) -> Iterator[Chain]:
    """In turns over the last passages, each time the next chain by a hash of its start."""
    by_last: dict[str, list[Chain]] = defaultdict(list)
    salt = stable_hash(type)
    for chain in sorted(chains, key=lambda c: stable_hash(c.start) ^ salt):
        by_last[chain.hops[-1]].append(chain)
    turns = [(turn, at, chain) for at, last in enumerate(by_last.values()) for turn, chain in enumerate(last)]
    return (chain for _, _, chain in sorted(turns, key=lambda t: t[:2]))


def _is_fit(chain: Chain, draft: Draft) -> bool:
    """Whether each hop is a passage of its own and the last one alone holds the answer."""
    if len(set(chain.hops)) != len(chain.hops) or not all(hop in draft.passages for hop in chain.hops):
        return False
    *before, last = (draft.passages[hop] for hop in chain.hops)
    early = (draft.plain[chain.start], *(text for p in before for text in (p.title, p.text)))
    return chain.answer in last.text and not any(_says(text, chain.answer) for text in early)


def _says(text: str, answer: str) -> bool:
    """Whether a text holds the answer: as whole words, or, if it is no word (``.pe``, ``+51``), as it stands."""
    return f" {fold(answer)} " in f" {fold(text)} " if answer[0].isalnum() else answer in text


def _in_words(type: str, text: str, chain: Chain, draft: Draft) -> Asked:
    others = [name for name in draft.alternates.get(chain.start, ()) if not _says(name, chain.answer)]
    by_alias = bool(others) and stable_hash(f"alias {type} {chain.start}") % ALIAS_SHARE == 0
    name = others[stable_hash(f"which {chain.start}") % len(others)] if by_alias else draft.plain[chain.start]
    said = with_article(name) if chain.start.startswith("country/") else name
    return Asked(f"{type}/{chain.start}", text.format(said), type, chain, name, by_alias)
