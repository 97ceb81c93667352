"""GuidedWalk: its composition over the oracle, its batches, its filters, its fallbacks, its traces, its refusals."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise, assert_hits_equal, assert_rows_equal
from hopfuse import reference
from hopfuse.errors import InputError
from hopfuse.recipes import AllowScope, GuidedWalk, GuidedWalkConfig
from numpy.typing import NDArray
from recipes.worlds import Encoder, Words, World, assert_same_ranking, lists_of, random_questions, random_world
from refusals import check_error, refused

QUESTIONS = [f"question {q}" for q in range(5)]
WORDS = ("river", "bridge", "engine", "notes", "harbour", "count")
SCOPES: tuple[AllowScope, ...] = ("isolated", "results")
OPTIONS: list[dict[str, Any]] = [
    {},
    {"dense_weight": 0.001},
    {"first": "dense", "second_top": 1, "dense_weight": 0.5},
    {"second_top": 5, "second_mass": 0.25, "tau": 1.5, "floor": 0.01, "damping": 0.7, "graph_k": 9, "dense_k": 7},
    {"depth": 2, "rank_constant": 60, "edge_weights": {"synonym": 0.0, "relation": 0.5}},
    {"second_mass": 0.0},
    {"second_mass": 1.0},
]


def words_of(world: World) -> hf.lexical.BM25:
    """BM25 over texts of a few words each, some of which several passages have."""
    texts = []
    for p in range(world.passages):
        rng = np.random.default_rng(p)
        texts.append(" ".join([*rng.choice(WORDS, 4), f"entity {p % 16}"]))
    return hf.lexical.BM25.build(texts)


def questions_of(ask: dict[str, Any]) -> list[str]:
    """Questions with the names that they mention, in capitals, and other words."""
    texts = []
    for b, names in enumerate(ask["entities"]):
        words = np.random.default_rng(b).choice(WORDS, 3)
        texts.append(" ".join(["Which", *words[:2], "of", *(str(name).upper() for name in names), words[2]]) + "?")
    return texts


def rows_of(seeds: hf.Seeds) -> list[dict[int, float]]:
    rows = zip(seeds.nodes.tolist(), seeds.weights.tolist(), strict=True)
    return [{node: weight for node, weight in zip(*row, strict=True) if node >= 0 and weight > 0} for row in rows]


def walked(index: hf.Index, restarts: list[dict[int, float]], config: GuidedWalkConfig, **options: Any) -> hf.Hits:
    """The oracle's walk, a query at a time; a query without a restart has no hits."""
    weights, rows = options.pop("node_weights", None), []
    for b, restart in enumerate(restarts):
        scores = np.zeros(index.num_passages)
        if restart:
            z = {} if weights is None else {"node_weights": weights[b : b + 1]}
            eta = [(config.edge_weights or {}).get(name, 1.0) for name in index.graph.edge_type_names]
            found = reference.ppr(index.graph, [restart], damping=config.damping, edge_type_weights=eta, **z, **options)
            scores = found[0, : index.num_passages]
        order = np.lexsort((np.arange(scores.size), -scores))[: config.graph_k]
        rows.append([(int(p), float(scores[p])) for p in order if scores[p] > 0])
    return hf.Hits.from_lists(rows)


def shares_of(index: hf.Index) -> hf.Incidence:
    """Weights of entities as second seeds: over the passages that have each, a passage's sum to 1."""
    held = hf.Incidence.from_graph(index.graph, index.num_passages)
    often = np.bincount(held.indices, minlength=held.num_columns)
    weights = np.zeros(held.indices.size)
    for p in range(held.num_rows):
        row = slice(held.indptr[p], held.indptr[p + 1])
        nodes = held.indices[row]
        worth = np.ones(nodes.size) if held.weights is None else held.weights[row].astype(float)
        kept = worth * (often[nodes] > 1) if (often[nodes] > 1).any() else worth
        weights[row] = kept / (kept / often[nodes]).sum()
    return hf.Incidence(held.indptr, held.indices, weights.astype(np.float32), num_columns=held.num_columns)


def ranked(
    index: hf.Index, lists: dict[str, hf.Hits], seeds: list[list[int]], words: Any, constant: float, k: int
) -> hf.Hits:
    """The hits by each question's rarest seed: the terms of every list, and the best direct hit in the first five."""
    rows = []
    for b, named in enumerate(seeds):
        fewest = min((int(index.passage_frequency[node - index.num_passages]) for node in named), default=None)
        w = 1.0 if fewest is None else fewest / (fewest + max(12.0, 0.006 * index.num_passages))
        score = {} if words is None else dict(words.row(b))
        best, sums = max(score.values(), default=0.0), dict[int, float]()
        for name, hits in lists.items():
            for rank, (p, _) in enumerate(hits.row(b), 1):
                lacks = 0.0 if best <= 0 else 1.0 - score.get(p, 0.0) / best
                weight = 1.0 - 0.7 * w if name == "guided" else w * w / (w + (1.0 - w) * lacks)
                weight = {"guided": weight, "dense": max(weight, 0.001), "lexical": 0.5 * weight}[name]
                sums[p] = sums.get(p, 0.0) + weight / (constant + rank)
        found = sorted(sums, key=lambda p: (-sums[p], p))
        direct = dict[int, float]()
        for name in ("dense", "lexical"):
            for rank, (p, _) in enumerate(lists[name].row(b) if name in lists else (), 1):
                direct[p] = direct.get(p, 0.0) + 1 / (constant + rank)
        first = min(direct, key=lambda p: (-direct[p], p))
        if first not in found[:5]:
            sums[first] = sums[found[4]] * (1 + 1e-7)
            found = sorted(sums, key=lambda p: (-sums[p], p))
        rows.append([(p, sums[p]) for p in found[:k]])
    return hf.Hits.from_lists(rows)


def covering(row: list[int], seeds: dict[int, float], mentions: hf.Incidence, k: int) -> list[tuple[int, float]]:
    hits = hf.Hits.from_lists([[(p, -float(at)) for at, p in enumerate(row)]])
    return reference.cover_seeds([hits.row(0)], [seeds], mentions, k=k)[0]


def composed(
    index: hf.Index,
    config: GuidedWalkConfig,
    vectors: Any,
    seeds: hf.Seeds,
    k: int,
    words: Any = None,
    boosted: hf.Hits | None = None,
    all_words: hf.Hits | None = None,
) -> Any:
    """The recipe in float64, over the oracle: hits, lists, restarts."""
    dense = reference.dense_topk(vectors, index.corpus, min(config.dense_k, index.num_passages))
    rank = {"method": "rrf", "rank_constant": config.rank_constant}
    named = rows_of(seeds)
    lists = [dense] if config.first == "dense" else [dense, walked(index, named, config)]
    answer = reference.fuse(lists, k=10, **rank)
    z = np.ones((len(named), index.graph.num_nodes))
    tau = config.tau or (1.4 if boosted is None else 2.0)
    near = reference.similarity_weights(vectors, index.corpus, tau=tau, floor=config.floor)
    rows = [] if boosted is None else [boosted.row(b) for b in range(len(named))]
    z[:, : index.num_passages] = reference.boost_weights(near, rows, config.boost) if rows else near
    mentions = hf.Incidence.from_graph(index.graph, index.num_passages)
    for _ in range(config.depth):
        ten = [[int(p) for p in row[:10] if p >= 0] for row in answer.ids]
        first = [covering(row, own, mentions, config.second_top) for row, own in zip(ten, named, strict=True)]
        starts = reference.add_entity_seeds(named, first, shares_of(index), config.second_mass)
        answer = walked(index, starts, config, node_weights=z)
    fused = {"guided": answer, "dense": dense} | ({} if words is None else {"lexical": words})
    if config.by_question:
        own = [list(row) for row in named]
        return ranked(index, fused, own, all_words, config.rank_constant, k), answer, starts
    weights = tuple(config.weights(tuple(fused)).values())
    return reference.fuse(list(fused.values()), weights=weights, k=k, **rank), answer, starts


@pytest.mark.parametrize(
    "words",
    [
        None,
        {},
        {"lexical_k": 3},
        {"word_boost": 0.5, "word_k": 3, "lexical_weight": 0.3},
        {"word_boost": 0, "lexical_weight": 1},
    ],
)
@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_search_is_its_composition_over_the_oracle(options: dict[str, Any], words: dict[str, Any] | None) -> None:
    ask, leg = random_questions(5), Words()
    fixed = options.get("dense_weight") is not None
    options = options if words is None else options | (words if not fixed else {"lexical_weight": 0.3} | words)
    recipe = GuidedWalk(random_world(4).index(), lexical=None if words is None else leg, **options)
    found = recipe.search(QUESTIONS, **ask, k=10)
    lists = {"words": found.lists.get("lexical"), "all_words": None if words is None else leg.search(QUESTIONS, 1000)}
    if words is not None and recipe.config.boost:
        lists["boosted"] = leg.search(QUESTIONS, recipe.config.word_k or 1000)  # they name no entity
    hits, guided, starts = composed(recipe.index, recipe.config, ask["vectors"], found.seeds, 10, **lists)
    for mine, theirs in zip(rows_of(found.starts), starts, strict=True):
        assert mine == pytest.approx({node: mass for node, mass in theirs.items() if mass > 0}, rel=1e-9)
    assert_same_ranking(found.lists["guided"], guided, tie=1e-6)
    assert_same_ranking(found.hits, hits, tie=1e-9)
    assert ("graph" in found.lists) == (recipe.config.first == "fused")
    has_list = recipe.config.by_question or recipe.config.weights(("lexical",))["lexical"] > 0
    assert ("lexical" in found.lists) == (words is not None and has_list)


def test_words_besides_the_names_of_a_question_raise_weights() -> None:
    """By the words of the question without its names, whatever their case; names that nothing has are words."""
    world, ask = random_world(4), random_questions(5)
    ask["entities"] = [["Entity 5", "nobody"], ["Other"], [], [7], ["Entity 1"]]
    queries = [
        "entity 5 of nobody, count",
        "OTHER bridge",
        "entity 5 notes",
        "The river at entity 7",
        "Entity 12 notes",
    ]
    others = [" of nobody, count", " bridge", "entity 5 notes", "The river at  ", "Entity 12 notes"]
    leg, recipe = words_of(world), GuidedWalk(world.index(), lexical=words_of(world))
    found = recipe.search(queries, **ask, k=24, trace=True)
    boosted = leg.search(others, 1000)
    _, guided, _ = composed(recipe.index, recipe.config, ask["vectors"], found.seeds, 24, boosted=boosted)
    assert_same_ranking(found.lists["guided"], guided, tie=1e-6)
    tau = recipe.config.decay(has_words=True)
    plain = GuidedWalk(world.index(), tau=tau).search(queries, **ask, k=24, trace=True)
    for b, (mine, without) in enumerate(zip(found.traces, plain.traces, strict=True)):
        assert mine["other_words"].split() == others[b].split()
        raised, most = dict(boosted.row(b)), boosted.scores[b, 0]
        before = {hit["passage"]: hit["weight"] for hit in without["hits"]}
        for hit in mine["hits"]:
            assert hit["boost"] == pytest.approx(1 + recipe.config.boost * raised.get(hit["passage"], 0) / most)
            assert hit["weight"] == pytest.approx(before[hit["passage"]] * hit["boost"], rel=1e-6)
        assert "other_words" not in without
        assert all("boost" not in hit for hit in without["hits"])


def test_a_leg_without_a_part_is_not_asked() -> None:
    ask, index = random_questions(6), random_world(5).index()
    plain = GuidedWalk(index, dense_weight=0.001).search(**ask)
    recipe = GuidedWalk(index, lexical=Words(), word_boost=0, lexical_weight=0)
    assert not recipe.needs.words
    assert_hits_equal(recipe.search(**ask).hits, plain.hits)


@pytest.mark.parametrize("allow", [None, list(range(3, 20))])
@pytest.mark.parametrize("scope", SCOPES)
def test_questions_without_text_are_answered_without_words(allow: Any, scope: AllowScope) -> None:
    """Whether all of a batch lack it or some; the trace says so."""
    ask, world = random_questions(6) | {"allow": allow, "allow_scope": scope}, random_world(5)
    recipe = GuidedWalk(world.index(), lexical=words_of(world))
    assert recipe.needs == hf.recipes.Needs(vectors=True, entities=True, words=True)
    tau = recipe.config.decay(has_words=True)
    plain = GuidedWalk(world.index(), tau=tau).search(**ask, trace=True)
    found = recipe.search(**ask, trace=True)
    assert (found.lists["lexical"].counts == 0).all()
    assert_hits_equal(found.hits, plain.hits)
    texts = questions_of(ask)
    some = recipe.search([texts[0], "", texts[2], "", ""], **ask, trace=True)
    whole = recipe.search(texts, **ask, trace=True)
    for b, (mine, without) in enumerate(zip(found.traces, plain.traces, strict=True)):
        assert mine["other_words"] is None
        assert {hit["boost"] for hit in mine["hits"]} <= {1.0}
        assert mine["ranked_by"] == without["ranked_by"]
        assert some.hits.row(b) == (whole.hits.row(b) if b in (0, 2) else plain.hits.row(b))
        assert (some.traces[b]["other_words"] is None) == (b not in (0, 2))


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_a_question_alone_gets_the_answer_it_gets_in_a_batch(options: dict[str, Any]) -> None:
    ask, world = random_questions(6), random_world(5)
    ask["queries"] = questions_of(ask)
    recipe = GuidedWalk(world.index(), lexical=words_of(world), **options)
    together = recipe.search(**ask, k=7)
    for b in range(5):
        alone = recipe.search(**{name: values[b : b + 1] for name, values in ask.items()}, k=7)
        for name, hits in lists_of(alone).items():
            whole = lists_of(together)[name]
            assert hits.row(0) == whole.row(b), name
        assert rows_of(alone.starts)[0] == rows_of(together.starts)[b]


def test_no_threads_change_an_answer() -> None:
    ask, index = random_questions(6), random_world(5).index()
    one, two = (GuidedWalk(index, threads=threads).search(**ask) for threads in (1, 2))
    for name, hits in lists_of(one).items():
        assert_hits_equal(lists_of(two)[name], hits)


# ---- Without seeds ---------------------------------------------------------------------------------------------------


def test_a_question_without_seeds_starts_at_those_of_the_dense_list() -> None:
    ask = random_questions(7) | {"entities": [[]] * 5}
    for first in ("fused", "dense"):
        found = GuidedWalk(random_world(6).index(), first=first, second_top=2).search(**ask, k=5, trace=True)
        assert (found.first.ids[:, 0] == found.lists["dense"].ids[:, 0]).all()
        assert (found.first.counts == 1).all()
        assert (found.lists["guided"].counts > 0).all()
        for trace, restart in zip(found.traces, rows_of(found.starts), strict=True):
            assert trace["ranked_by"] == "guided walk"
            assert trace["seeds"] == []
            assert sum(restart.values()) == pytest.approx(1.0)
            assert sum(seed["share"] for seed in trace["second_seeds"]) == pytest.approx(1.0)


@pytest.mark.parametrize("lexical", [None, Words()])
def test_without_any_seeds_the_dense_list_answers_and_the_trace_says_so(lexical: Any) -> None:
    world = random_world(6)
    bare = World(world.vectors, world.names, world.entity_vectors, [(40 - 1, 40 - 2, "relation", 1.0)])
    ask = random_questions(7) | {"entities": [[]] * 5}
    options = {} if lexical is None else {"lexical_weight": 0.3}
    found = GuidedWalk(bare.index(), lexical=lexical, **options).search(QUESTIONS, **ask, k=5, trace=True)
    assert (found.lists["guided"].counts == 0).all()
    assert {trace["ranked_by"] for trace in found.traces} == {"dense" if lexical is None else "dense and words"}
    if lexical is None:
        assert (found.hits.ids == found.lists["dense"].ids[:, :5]).all()
    assert all("attribution" not in hit for trace in found.traces for hit in trace["hits"])


def test_the_dense_list_adds_what_the_walk_did_not_find_after_what_it_found() -> None:
    world = random_world(8)
    recipe = GuidedWalk(world.index(), graph_k=4, dense_weight=0.001)
    found = recipe.search(**random_questions(9), k=24)
    guided, dense = found.lists["guided"], found.lists["dense"]
    for b in range(5):
        walk = [p for p, _ in guided.row(b)]
        rest = [p for p, _ in dense.row(b) if p not in walk]
        assert [p for p, _ in found.hits.row(b)] == walk + rest


# ---- Filters ---------------------------------------------------------------------------------------------------------


def mapped(hits: hf.Hits, ids: NDArray[np.int64]) -> hf.Hits:
    """The same hits by other numbers, in the same order."""
    return hf.Hits(np.where(hits.ids >= 0, ids[hits.ids], -1), hits.scores, hits.counts)


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("seed", range(4))
def test_an_isolated_answer_is_that_of_an_index_of_the_passages_alone(seed: int, options: dict[str, Any]) -> None:
    world, mask = random_world(seed), np.random.default_rng(seed).random(24) < 0.2 * (seed + 1)
    mask[seed] = True
    alone, passages, _ = world.alone(mask)
    ask, encoder, leg = random_questions(seed), Encoder(world), words_of(world)
    ask["queries"] = questions_of(ask)
    options = options | {"encoder": encoder, "entity_threshold": -1}
    recipe = GuidedWalk(world.index(), lexical=leg, **options)
    expected = GuidedWalk(alone.index(), lexical=leg.part(passages), **options).search(**ask, k=6)
    for allow in (mask, passages.tolist(), [passages.tolist()] * 5):
        found = recipe.search(**ask, k=6, allow=allow)
        for name, hits in lists_of(expected).items():
            assert_rows_equal(lists_of(found)[name], mapped(hits, passages))
        assert_bitwise(np.sort(found.starts.weights), np.sort(expected.starts.weights), "restart")


@pytest.mark.parametrize("scope", SCOPES)
def test_a_batch_of_several_owners_is_each_question_alone(scope: AllowScope) -> None:
    ask, rng = random_questions(6), np.random.default_rng(7)
    ask["queries"] = questions_of(ask)
    masks = rng.random((5, 24)) < 0.4
    masks[3], masks[4] = masks[1], False
    recipe = GuidedWalk(random_world(5).index(), lexical=words_of(random_world(5)), second_top=2)
    found = recipe.search(**ask, allow=masks, allow_scope=scope, trace=True)
    for b, mask in enumerate(masks):
        one = {name: values[b : b + 1] for name, values in ask.items()}
        alone = recipe.search(**one, allow=mask, allow_scope=scope, trace=True)
        for name, hits in lists_of(alone).items():
            assert hits.row(0) == lists_of(found)[name].row(b), name
            assert {p for p, _ in hits.row(0)} <= set(np.flatnonzero(mask).tolist())
        assert alone.traces[0] == found.traces[b] | {"query": 0}
    assert found.hits.counts[4] == 0
    assert [trace["allowed"] for trace in found.traces] == masks.sum(axis=1).tolist()


def test_results_alone_are_restricted_where_the_graph_is_shared() -> None:
    ask, index = random_questions(6), random_world(5).index()
    ask["queries"] = questions_of(ask)
    recipe = GuidedWalk(index, lexical=words_of(random_world(5)), first="dense", second_top=2)
    everything = recipe.search(**ask, k=24)
    whole = recipe.search(**ask, k=24, allow=np.ones(24, bool), allow_scope="results")
    for name, hits in lists_of(everything).items():
        assert_hits_equal(lists_of(whole)[name], hits)


def test_words_raise_weights_of_what_is_not_listed_too() -> None:
    ask, world = random_questions(6), random_world(5)
    ask["queries"] = questions_of(ask)
    recipe = GuidedWalk(world.index(), lexical=words_of(world), second_mass=0)
    whole, few = recipe.search(**ask), recipe.search(**ask, allow=[3, 4, 9], allow_scope="results")
    named = np.flatnonzero(whole.seeds.weights.sum(axis=1) > 0)  # others start at what is listed
    assert named.size
    for b in named.tolist():
        listed = [hit for hit in whole.lists["guided"].row(b) if hit[0] in (3, 4, 9)]
        found = few.lists["guided"].row(b)
        assert [passage for passage, _ in found] == [passage for passage, _ in listed]
        assert [score for _, score in found] == pytest.approx([score for _, score in listed], abs=1e-6)


# ---- Traces ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", OPTIONS[:4], ids=repr)
@pytest.mark.parametrize("allow", [None, list(range(3, 20))])
def test_traces_add_up(options: dict[str, Any], allow: Any) -> None:
    recipe = GuidedWalk(random_world(4).index(), lexical=Words(), lexical_weight=0.3, **options)
    found = recipe.search(QUESTIONS, **random_questions(5), k=6, allow=allow, trace=True)
    names = recipe.index.entity_names
    for b, trace in enumerate(found.traces):
        guided, restart = dict(found.lists["guided"].row(b)), rows_of(found.starts)[b]
        second = {24 + one["entity"]: one["share"] for one in trace["second_seeds"]}
        assert second.keys() <= restart.keys()
        assert all(share <= restart[node] * (1 + 1e-12) for node, share in second.items())
        assert {p["passage"] for one in trace["second_seeds"] for p in one["passages"]} <= set(found.first.ids[b])
        for hit in trace["hits"]:
            assert sum(hit["contributions"].values()) == pytest.approx(hit["score"], rel=1e-6)
            given = [one.get("named", 0.0) + one.get("second", 0.0) for one in hit["attribution"]]
            assert given == sorted(given, reverse=True)
            if hit["passage"] in guided:
                assert sum(given) == pytest.approx(guided[hit["passage"]], abs=2e-6)
            for path in hit["paths"]:
                assert (path[-1]["kind"], path[-1]["number"]) == ("passage", hit["passage"])
                assert path[-1]["weight"] == hit["weight"]
                assert path[0]["name"] in names
            assert 1 <= hit["boost"] <= 1 + recipe.config.boost
        assert all(1e-4 <= row["weight"] <= 1 + recipe.config.boost for row in trace["guided"])
        assert [(row["passage"], row["score"]) for row in trace["guided"]] == found.lists["guided"].row(b)


# ---- Options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "refusal"),
    [
        ({"first": "words"}, ("choice", "first")),
        ({"second_top": 0}, ("range", "second_top")),
        ({"second_mass": 1.5}, ("range", "second_mass")),
        ({"depth": 0}, ("range", "depth")),
        ({"tau": 0}, ("range", "tau")),
        ({"floor": 2.0}, ("range", "floor")),
        ({"dense_weight": 0}, ("range", "dense_weight")),
        ({"damping": 1}, ("range", "damping")),
        ({"edge_weights": {"synonym": -1}}, ("range", "edge_weights.synonym")),
        ({"edge_weights": {"kin": 1}}, ("unknown", "edge_weights")),
        ({"lexical_k": 5}, ("unused", "lexical_k")),
        ({"word_boost": 0, "word_k": 5}, ("unused", "word_k")),
        ({"word_boost": -1}, ("range", "word_boost")),
        ({"word_k": 0}, ("range", "word_k")),
        ({"alpha": 0.5}, ("unknown", "alpha")),
    ],
    ids=repr,
)
def test_bad_options_are_refused(option: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        GuidedWalk(random_world(4).index(), **option)


@pytest.mark.parametrize(
    ("option", "refusal"),
    [
        ({"lexical_weight": 0, "lexical_k": 5}, ("unused", "lexical_k")),
        ({"dense_weight": 0.5, "lexical_k": 5}, ("unused", "lexical_k")),
        ({"word_boost": 0, "word_k": 5}, ("unused", "word_k")),
    ],
    ids=repr,
)
def test_the_length_of_a_list_without_a_part_is_refused(
    option: dict[str, Any], refusal: tuple[str, str | None]
) -> None:
    with refused(InputError, *refusal):
        GuidedWalk(random_world(4).index(), lexical=Words(), **option)


def test_an_index_without_vectors_or_graph_is_refused() -> None:
    index = hf.Index.build(passages=[{"text": "a"}])
    check_error(GuidedWalk.missing(index), InputError, "missing", "index", allowed=("corpus", "graph"))
    with refused(InputError, "missing", "index", recipe="GuidedWalk"):
        GuidedWalk(index)
