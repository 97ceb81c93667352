"""An index that takes changes, as a list of rows in plain Python: what a live index must equal when it is rebuilt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import hopfuse as hf
import numpy as np
from hopfuse.index import EncoderInfo, WordInfo
from hopfuse.lexical import BM25

DIM = 4
WORDS = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay"]


def vector(seed: int) -> np.ndarray:
    """A vector of small integers, no two alike for seeds that differ."""
    return np.array([seed % 7 - 3, seed // 7 % 5 + 1, seed % 3, 1 + seed % 11], np.float32)


@dataclass
class Model:
    """Rows in the order of their insertion: passages by id, entities by name, edges, facts and aliases as stated."""

    passages: dict[str, dict[str, Any]] = field(default_factory=dict)
    entities: dict[str, bool] = field(default_factory=dict)  # name: is it a word
    read: set[str] = field(default_factory=set)  # names of entities that no user stated
    aliases: list[tuple[str, str]] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)
    types: list[str] = field(default_factory=lambda: ["context"])
    facts: list[tuple[str, str, str, str]] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)  # of the metadata: types by name

    def delete_passages(self, ids: list[str]) -> None:
        for id in ids:
            del self.passages[id]
        self.edges = [e for e in self.edges if not _names(e, "passage") & set(ids) and e.get("stated_by") not in ids]
        self.facts = [fact for fact in self.facts if fact[3] not in ids]

    def delete_entities(self, names: list[str]) -> None:
        for name in names:
            del self.entities[name]
        self.read.difference_update(names)
        self.edges = [e for e in self.edges if not _names(e, "entity") & set(names)]
        self.facts = [fact for fact in self.facts if not {fact[0], fact[2]} & set(names)]
        self.aliases = [(name, alias) for name, alias in self.aliases if name not in names]

    def supported(self) -> set[str]:
        """Return the names of the entities with which a passage has an edge, or about which one states something."""
        by_passage = [e for e in self.edges if _names(e, "passage") or e.get("stated_by") is not None]
        found = {name for edge in by_passage for name in _names(edge, "entity")}
        return found.union(end for fact in self.facts for end in (fact[0], fact[2]))

    def forget(self, supported: set[str]) -> None:
        """Delete the entities that no user stated and that no passage supports any more, as some did before."""
        self.delete_entities(sorted(supported & self.read - self.supported()))

    def delete_edges(self, edges: list[dict[str, Any]]) -> None:
        gone = {(frozenset((e["src"], e["dst"])), e["type"]) for e in edges}
        self.edges = [e for e in self.edges if (frozenset((e["src"], e["dst"])), e["type"]) not in gone]

    def add_edges(self, edges: list[dict[str, Any]]) -> None:
        self.edges += edges
        for edge in edges:
            self.read -= _names(edge, "entity")
        self.types += [kind for kind in dict.fromkeys(e["type"] for e in edges) if kind not in self.types]

    def names(self) -> list[str]:
        return [name for name, word in self.entities.items() if not word] + [
            n for n, word in self.entities.items() if word
        ]

    def merge(self, kept: str, other: str) -> dict[str, list[Any]]:
        """Delete an entity, and return its aliases, edges and facts as those of another."""
        ends = {("entity", other): ("entity", kept)}
        touching = [e for e in self.edges if {("entity", kept), ("entity", other)} & {e["src"], e["dst"]}]
        moved = [e | {end: ends.get(e[end], e[end]) for end in ("src", "dst")} for e in touching]
        known = {_key(e) for e, new in zip(touching, moved, strict=True) if e == new}
        edges = []
        for old, new in zip(touching, moved, strict=True):
            is_new_loop = new["src"] == new["dst"] and old["src"] != old["dst"]
            if new == old or is_new_loop or (_names(new, "passage") and _key(new) in known):
                continue
            known.add(_key(new))
            edges.append(new)
        facts: list[tuple[str, str, str, str]] = []
        for head, relation, tail, passage in self.facts:
            if other in (head, tail):
                fact = (kept if head == other else head, relation, kept if tail == other else tail, passage)
                if fact not in self.facts and fact not in facts and (fact[0] != fact[2] or head == tail):
                    facts.append(fact)
        own = {kept, *(alias for name, alias in self.aliases if name == kept)}
        aliases = [(kept, alias) for alias in [other, *(a for name, a in self.aliases if name == other)]]
        self.read.discard(kept)
        self.delete_entities([other])
        return {"edges": edges, "facts": facts, "aliases": [pair for pair in aliases if pair[1] not in own]}

    def rebuilt(self) -> hf.Index:
        """Build the index of the rows anew."""
        names, ids = self.names(), list(self.passages)
        place = {("passage", id): at for at, id in enumerate(ids)}
        place |= {("entity", name): len(ids) + at for at, name in enumerate(names)}
        graph = hf.Graph.from_edges(
            [place[e["src"]] for e in self.edges],
            [place[e["dst"]] for e in self.edges],
            np.array([e["weight"] for e in self.edges], np.float64),
            num_nodes=len(ids) + len(names),
            edge_type=[self.types.index(e["type"]) for e in self.edges] if len(self.types) > 1 else None,
            edge_type_names=self.types,
        )
        kept = ("id", "title", "text", "document", "language", "metadata")
        rows = [{key: row[key] for key in kept} for row in self.passages.values()]
        vectors = np.array([vector(row["seed"]) for row in self.passages.values()], np.float32).reshape(-1, DIM)
        aliases: dict[int, list[str]] = {}
        for name, alias in self.aliases:
            aliases.setdefault(names.index(name), []).append(alias)
        index = hf.Index.build(
            passages=rows,
            metadata_types=self.columns,
            vectors=vectors,
            entities=[{"name": name, "stated": name not in self.read} for name in names],
            entity_vectors=np.array([name_vector(name) for name in names], np.float32).reshape(-1, DIM),
            aliases=aliases,
            graph=graph,
            facts=[
                dict(zip(("head", "relation", "tail", "passage"), (h, r, t, ids.index(p)), strict=True))
                for h, r, t, p in self.facts
            ],
            words=WordInfo(sum(not word for word in self.entities.values()), None, None, ("a", "the")),
            encoder=EncoderInfo("model", DIM, False),
            metric="cosine",
        )
        return index.with_lexical(BM25.build(index.texts_to_index(), stemmer=None).matrix)


class ReadFact(NamedTuple):
    """A fact of :class:`Read`."""

    head: int
    relation: str
    tail: int
    passages: tuple[int, ...]


@dataclass(frozen=True)
class Read:
    """What a reader found in passages: edges by ids and names, and facts with the id of a passage."""

    ids: tuple[str, ...]
    names: tuple[str, ...]
    read_words: tuple[str, ...]
    edges: list[dict[str, Any]]
    triples: list[tuple[str, str, str, str]]
    words = WordInfo(0, None, None, ("a", "the"))

    @property
    def entities(self) -> tuple[str, ...]:
        return self.names + self.read_words

    @property
    def num_names(self) -> int:
        return len(self.names)

    @property
    def aliases(self) -> tuple[tuple[str, ...], ...]:
        return tuple(() for _ in self.entities)

    @property
    def facts(self) -> list[ReadFact]:
        at, ids = self.entities.index, self.ids.index
        return [ReadFact(at(head), relation, at(tail), (ids(id),)) for head, relation, tail, id in self.triples]

    def keys(self, words: list[str]) -> list[str]:
        return list(words)

    def stated_edges(self) -> Iterator[tuple[int, int, str, int]]:
        place = {("passage", id): at for at, id in enumerate(self.ids)}
        place |= {("entity", name): len(self.ids) + at for at, name in enumerate(self.entities)}
        for edge in self.edges:
            by = edge.get("stated_by")
            yield place[edge["src"]], place[edge["dst"]], edge["type"], -1 if by is None else self.ids.index(by)


def random_read(model: Model, rng: np.random.Generator, ids: list[str]) -> Read:
    """What a reader found in some new passages: entities of the index, joined to them and to each other."""
    found = [name for name in model.entities if rng.random() < 0.4][:6]
    edges: list[dict[str, Any]] = [
        {"src": ("passage", id), "dst": ("entity", name), "type": "context", "weight": 1.0}
        for id in ids
        for name in found
        if rng.random() < 0.5
    ]
    triples = []
    for id in ids if len(found) > 1 else ():
        one, two = (found[at] for at in rng.permutation(len(found))[:2])
        by = {"stated_by": id} if rng.random() < 0.7 else {}
        edges.append({"src": ("entity", one), "dst": ("entity", two), "type": "relation", "weight": 1.0} | by)
        if rng.random() < 0.5:
            triples.append((two, "r", one, id))
    names, words = ([name for name in found if model.entities[name] == is_word] for is_word in (False, True))
    return Read(tuple(ids), tuple(names), tuple(words), edges, triples)


def name_vector(name: str) -> np.ndarray:
    seed = sum(map(ord, name))
    return np.array([seed % 5 + 1, seed % 7 - 3, seed % 3, 2], np.float32)


def _key(edge: dict[str, Any]) -> tuple[Any, ...]:
    return frozenset((edge["src"], edge["dst"])), edge["type"]


def _names(edge: dict[str, Any], kind: str) -> set[str]:
    return {end[1] for end in (edge["src"], edge["dst"]) if end[0] == kind}


#: Sections that no search reads: they keep the order of statements, which a table of rows has anyway.
STATEMENTS = ("edge.", "fact.statement")


def differences(a: hf.Index, b: hf.Index, *, statements: bool = False) -> list[str]:
    """Return the names of the sections that are not the same bytes, without those of statements unless asked for."""
    ours, theirs = (
        {name: array for name, array in index.arrays().items() if statements or not name.startswith(STATEMENTS)}
        for index in (a, b)
    )
    names = [*ours, *(name for name in theirs if name not in ours)]
    return [name for name in names if not _same(ours.get(name), theirs.get(name))] + (
        [] if list(ours) == list(theirs) else ["order"]
    )


def _same(a: Any, b: Any) -> bool:
    return a is not None and b is not None and (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def parts_that_differ(a: hf.Index, b: hf.Index) -> list[str]:
    """Return what is not the same in what searches read: columns of terms, of metadata and labels, and vectors."""
    found = []
    ours, theirs = a.lexical, b.lexical
    assert ours is not None
    assert theirs is not None
    places = [ours.places([term]) for term in theirs.terms]
    if places != [[at] for at in range(theirs.num_terms)] or ours.num_terms != theirs.num_terms:
        return ["terms"]
    for term in range(theirs.num_terms):
        if not all(map(_same, ours.column(term), theirs.column(term))):
            found.append(f"the column of {theirs.terms[term]}")
    if ours.places(["no term", *theirs.terms[:1]]) != theirs.places(["no term", *theirs.terms[:1]]):
        found.append("places of terms")
    for name, column in b.metadata.items():
        own = a.metadata[name]
        same = list(own) == list(column) and list(own.strings) == list(column.strings)
        if not (same and all(_same(getattr(own, of), getattr(column, of)) for of in ("present", "data", "items"))):
            found.append(f"the metadata {name}")
    for name in ("documents", "languages", "stated", "entity_names", "entity_aliases", "passage_ids", "words"):
        one, other = getattr(a, name), getattr(b, name)
        if not (one == other if name == "words" else list(one) == list(other)):
            found.append(name)
    if b.num_passages:
        asked = np.stack([vector(seed) for seed in (3, 8, 12)])
        hits = [hf.dense_topk(asked, index.corpus, 5) for index in (a, b)]
        if not all(_same(getattr(hits[0], of), getattr(hits[1], of)) for of in ("ids", "scores")):
            found.append("a dense search")
    return found


def random_change(
    model: Model, rng: np.random.Generator, change: Any, serial: list[int], *, joined: bool = True
) -> None:
    """Make one change to the model and to the index: deletions first, then what comes; passages may be joined."""

    def some(values: list[Any], most: int) -> list[Any]:
        count = int(rng.integers(0, min(most, len(values)) + 1))
        return [values[i] for i in rng.permutation(len(values))[:count]]

    def fresh() -> int:
        serial[0] += 1
        return serial[0]

    supported = model.supported()
    gone_edges = [{k: e[k] for k in ("src", "dst", "type")} for e in some(model.edges, 1)] if rng.random() < 0.3 else []
    gone_facts = [fact[:3] for fact in some(model.facts, 1)] if rng.random() < 0.3 else []
    gone_aliases = some(model.aliases, 1) if rng.random() < 0.3 else []
    change.delete_edges(gone_edges)
    change.delete_facts(gone_facts)
    for name, alias in gone_aliases:
        change.delete_aliases({name: [alias]})
    model.delete_edges(gone_edges)
    model.facts = [fact for fact in model.facts if fact[:3] not in gone_facts]
    model.aliases = [pair for pair in model.aliases if pair not in gone_aliases]
    gone = some(list(model.passages), 2)
    replaced, deleted = gone[:1], gone[1:]
    entities = some(list(model.entities), 1)
    change.delete_passages(deleted)
    way, matching = rng.choice(["where", "document", ""], p=[0.1, 0.1, 0.8]), []
    if way == "where" and "year" in model.columns:
        change.delete_passages(where=hf.where(year__le=2000))
        matching = [id for id, row in model.passages.items() if (row["metadata"] or {}).get("year", 2001) <= 2000]
    if way == "document":
        change.delete_passages(document="log")
        matching = [id for id, row in model.passages.items() if row["document"] == "log"]
    change.delete_entities(entities)
    model.delete_passages(list(dict.fromkeys(gone + matching)))
    model.delete_entities(entities)
    pair = some([name for name, is_word in model.entities.items() if not is_word], 2) if rng.random() < 0.3 else []
    merged: dict[str, list[Any]] = {"edges": [], "facts": [], "aliases": []}
    if len(pair) == 2:
        change.merge_entities({pair[0]: [pair[1]]})
        merged = model.merge(*pair)
    rows = []
    for id in [*replaced, *(f"p{fresh()}" for _ in range(rng.integers(0, 3)))]:
        text = " ".join(rng.choice(WORDS, int(rng.integers(0, 6))))
        row = {"id": id, "title": str(rng.choice(["", "Zoo"])), "text": text, "seed": fresh(), "metadata": None}
        row["document"] = str(rng.choice(["report", "log", "手紙", f"d{id}"])) if rng.random() < 0.6 else None
        row["language"] = str(rng.choice(["en", "zh-Hant", "de"])) if rng.random() < 0.5 else None
        if rng.random() < 0.7:
            years, tags = rng.integers(2000, 2004), [str(tag) for tag in rng.choice(WORDS, int(rng.integers(0, 3)))]
            row["metadata"] = {
                "tags": tags,
                "year": int(years),
                str(rng.choice(["tenant", "owner"])): f"t{fresh() % 4}",
            }
        rows.append(row)
    for row, add in zip(
        rows, [change.replace_passages] * len(replaced) + [change.add_passages] * len(rows), strict=False
    ):
        add([{name: value for name, value in row.items() if name != "seed"}], vectors=vector(row["seed"])[None])
        model.passages[row["id"]] = row
        for name in row["metadata"] or {}:
            model.columns[name] = {"tags": "strings", "year": "int64"}.get(name, "string")
    for word in (False, True):
        names = [f"{'w' if word else 'E'}{fresh()}" for _ in range(rng.integers(0, 3))]
        vectors = np.array([name_vector(n) for n in names]).reshape(-1, DIM)
        stated = bool(rng.random() < 0.5)
        change.add_entities(names, vectors=vectors, words=word, stated=stated)
        model.entities |= dict.fromkeys(names, word)
        model.read.update([] if stated else names)
    again = some(sorted(model.read - set(entities)), 1) if rng.random() < 0.3 else []
    for name in again:
        change.add_entities([name], vectors=name_vector(name)[None], missing=True, words=model.entities[name])
    model.read.difference_update(again)
    named = [name for name in model.entities if name not in model.read or rng.random() < 0.05]  # a user states these
    ends = [("passage", id) for id in model.passages] + [("entity", name) for name in named]
    edges = []
    for _ in range(rng.integers(0, 5) if ends else 0):
        edge: dict[str, Any] = {
            "src": ends[rng.integers(len(ends))],
            "dst": ends[rng.integers(len(ends))],
            "type": str(rng.choice(["context", "context", "relation", "synonym"])),
            "weight": float(rng.choice([1.0, 0.1, 0.7, 3.3])),
        }
        if model.passages and {edge["src"][0], edge["dst"][0]} == {"entity"} and rng.random() < 0.7:
            edge["stated_by"] = list(model.passages)[rng.integers(len(model.passages))]
        if joined or {edge["src"][0], edge["dst"][0]} != {"passage"}:
            edges.append(edge)
    change.add_edges(edges)
    model.add_edges(edges)
    read = random_read(model, rng, [row["id"] for row in rows if rng.random() < 0.7])
    change.add_memory(read)
    model.types += [kind for kind in dict.fromkeys(e["type"] for e in read.edges) if kind not in model.types]
    model.edges += read.edges + merged["edges"]
    names, ids = named, list(model.passages)
    facts = [
        (str(rng.choice(names)), str(rng.choice(["r", "s", "t"])), str(rng.choice(names)), str(rng.choice(ids)))
        for _ in range(rng.integers(0, 4) if names and ids else 0)
    ]
    change.add_facts(facts)
    model.facts += facts + read.triples + merged["facts"]
    model.read.difference_update(end for fact in facts for end in (fact[0], fact[2]))
    aliases = [(str(rng.choice(names)), f"alias {fresh()}") for _ in range(rng.integers(0, 2) if names else 0)]
    for name, alias in aliases:
        change.add_aliases({name: [alias]})
    model.aliases += aliases + merged["aliases"]
    model.read.difference_update(name for name, _ in aliases)
    model.forget(supported)
