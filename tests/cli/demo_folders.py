"""Small folders of the forms that the demo reads, and a small atlas."""

from __future__ import annotations

import numpy as np
from cli.cli_files import write_jsonl
from hopfuse.extract.atlas import Atlas, Question

FILMS = ["Alien", "Blade Runner", "Gladiator", "Solaris", "Stalker", "Mirror"]
MAKERS = ["Ridley Scott", "Andrei Tarkovsky"]
TOWNS = ["South Shields", "Zavrazhye"]
FACTS = [(film, "directed by", MAKERS[at // 3]) for at, film in enumerate(FILMS)]
FACTS += [(maker, "born in", town) for maker, town in zip(MAKERS, TOWNS, strict=True)]
ENTITIES = [*FILMS, *MAKERS, *TOWNS]
DIM = 8


def write_passages(folder):
    """A passage for each fact, and a question for each film: in which town was its director born?"""
    folder.mkdir()
    rows = [
        {"id": str(at), "title": head, "text": f"{head} {relation} {tail}."}
        for at, (head, relation, tail) in enumerate(FACTS)
    ]
    write_jsonl(folder / "passages.jsonl", rows)
    asked = []
    for at, film in enumerate(FILMS):
        hops = [at, len(FILMS) + at // 3]
        text = f"In which town was the director of {film} born?"
        judged = {"gold": hops, "hops": [[hop] for hop in hops], "last_hop": hops[1:]}
        asked.append({"id": f"q{at}", "question": text, "answer": TOWNS[at // 3], **judged})
    write_jsonl(folder / "queries.jsonl", asked)
    return folder


def write_openie(folder):
    write_passages(folder)
    rows = [{"id": str(at), "entities": [fact[0], fact[2]], "triples": [fact]} for at, fact in enumerate(FACTS)]
    write_jsonl(folder / "openie.jsonl", rows)
    return folder


def write_graph(folder):
    """With vectors: a question's is its film's passage's, so that the last hop is found by the graph alone."""
    write_passages(folder)
    (folder / "graph").mkdir()
    names = [("passage", fact[0]) for fact in FACTS] + [("entity", name) for name in ENTITIES]
    lines = [f"{at}\t{kind}\t{name}\n" for at, (kind, name) in enumerate(names)]
    (folder / "graph" / "nodes.tsv").write_text("".join(lines), encoding="utf-8")
    node = {name: len(FACTS) + at for at, name in enumerate(ENTITIES)}
    edges = [f"{at}\t{node[end]}\tcontext\t1.0\n" for at, fact in enumerate(FACTS) for end in (fact[0], fact[2])]
    edges += [f"{node[head]}\t{node[tail]}\trelation\t1\n" for head, _, tail in FACTS]
    (folder / "graph" / "edges.tsv").write_text("".join(edges), encoding="utf-8")
    facts = [f"{node[head]}\t{relation}\t{node[tail]}\t{at}\n" for at, (head, relation, tail) in enumerate(FACTS)]
    (folder / "graph" / "facts.tsv").write_text("".join(facts), encoding="utf-8")
    vectors = np.random.default_rng(1).standard_normal((len(FACTS), DIM))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    np.save(folder / "passage_emb.f16.npy", vectors)
    np.save(folder / "query_emb.f16.npy", vectors[: len(FILMS)])
    write_jsonl(folder / "query_entities.jsonl", [{"id": f"q{q}", "entities": [[f, "W"]]} for q, f in enumerate(FILMS)])
    return folder


def write_metaqa(folder):
    folder.mkdir()
    (folder / "kb.tsv").write_text("".join("\t".join(fact) + "\n" for fact in FACTS), encoding="utf-8")
    names = "".join(f"{at}\t{name}\n" for at, name in enumerate(ENTITIES))
    (folder / "entity2text.txt").write_text(names, encoding="utf-8")
    one = [f"[{film}] was directed by whom\t{maker}\n" for film, _, maker in FACTS[: len(FILMS)]]
    two = [f"where was the director of [{f}] born\t{TOWNS[at // 3]}\n" for at, f in enumerate(FILMS)]
    three = ["which films have directors born where the director of [Alien] was\tAlien|Blade Runner|Gladiator\n"]
    for hops, lines in enumerate((one, two, three), 1):
        (folder / f"qa_{hops}hop_dev.txt").write_text("".join(lines), encoding="utf-8")
    return folder


def write_all(work):
    """A folder of each kind, by its kind."""
    made = {"graph": write_graph, "openie": write_openie, "metaqa": write_metaqa}
    return {kind: write(work / kind) for kind, write in made.items()}


def write_types(folder):
    """A typed graph without questions."""
    folder.mkdir()
    (folder / "train.txt").write_text("".join("\t".join(fact) + "\n" for fact in FACTS), encoding="utf-8")
    (folder / "entity2types.json").write_text("{}", encoding="utf-8")
    return folder


def small_atlas() -> Atlas:
    """The same facts; Alien is also asked for by an alternate name, an entity of its own, as in the world's atlas."""
    entities, first = (*ENTITIES, "Xenomorph"), len(FACTS)
    node = {name: first + at for at, name in enumerate(entities)}
    context = [(at, node[end]) for at, fact in enumerate(FACTS) for end in (fact[0], fact[2])]
    relations = [(node[head], node[tail]) for head, _, tail in FACTS]
    pairs = np.array([*context, *relations, (node["Xenomorph"], node["Alien"])], np.int32)
    kinds = np.repeat(np.array([0, 1, 2], np.uint8), [len(context), len(relations), 1])
    said = tuple(dict.fromkeys(relation for _, relation, _ in FACTS))
    rows = [(node[a] - first, said.index(r), node[b] - first, at) for at, (a, r, b) in enumerate(FACTS)]
    return Atlas(
        ids=tuple(f"p{at}" for at in range(first)),
        titles=tuple(head for head, _, _ in FACTS),
        texts=tuple(f"{head} {relation} {tail}." for head, relation, tail in FACTS),
        entities=entities,
        aliases=((),) * len(entities),
        src=pairs[:, 0].copy(),
        dst=pairs[:, 1].copy(),
        edge_type=kinds,
        weight=np.ones(len(pairs), np.float32),
        relations=said,
        fact_rows=np.array(rows, np.int32),
        questions=tuple(_question(at) for at in range(len(FILMS) + 1)),
    )


def _question(at: int) -> Question:
    """The last one's answer is no entity."""
    name, other = ("Xenomorph", True) if at == 0 else (FILMS[at % len(FILMS)], False)
    answer = "8." if at == len(FILMS) else TOWNS[at // 3]
    hops = (at % len(FILMS), len(FILMS) + at % len(FILMS) // 3)
    return Question(f"q{at}", f"Where was the director of {name} born?", "film-town", answer, hops, (name,), other)
