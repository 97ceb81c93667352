"""The page of a question: a real trace, complete, escaped and reproducible; and the errors."""

from __future__ import annotations

import json
import re
from html import escape
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import hopfuse as hf
import markupsafe
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.extract import Extraction, build_memory
from hopfuse.report import arrow, policy_page, seed_shares, subgraph, subgraph_plot
from refusals import refused

SCRIPT = "<script>alert('x')</script>"
VOID = {"meta", "link", "br"}


@pytest.fixture(scope="module")
def trace() -> dict[str, Any]:
    """Of a search over five passages, an entity of which is a script, with a synonym and a fact that is dropped."""
    memory = build_memory(
        [
            Extraction("a", "Alien", "Ridley Scott directed Alien.", (), (("Ridley Scott", "directed", "Alien"),)),
            Extraction("b", SCRIPT, "Born.", ("Ridley Scott",), (("Ridley Scott", "born in", SCRIPT),)),
            Extraction("c", "", "By the sea.", (SCRIPT,), ((SCRIPT, "by", "North Sea"),)),
            Extraction("d", "Sir Ridley", "A knight.", ("Sir Ridley Scott",), ()),
            Extraction("e", "Aliens", "Directed, too.", (), (("Ridley Scott", "directed by", "Alien"),)),
        ]
    )
    number = {name: e for e, name in enumerate(memory.entities)}
    graph = memory.graph([(number["Ridley Scott"], number["Sir Ridley Scott"])])
    index = memory.index(graph, vectors=np.eye(5, dtype=np.float32))
    recipe = hf.recipes.PolicyRAG(index)
    ask = {"vectors": np.eye(5, dtype=np.float32)[:1], "entities": [["Alien"]]}
    (found,) = recipe.search([f"Who directed Alien {SCRIPT}?"], **ask, k=5, trace=True).traces or []
    return found


class Balanced(HTMLParser):
    """A parser that fails if an element is closed that is not open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_a_trace_is_plain_data(trace) -> None:
    assert json.loads(json.dumps(trace, allow_nan=False)) == trace


def test_the_page_is_whole_and_needs_nothing_else(trace) -> None:
    page = policy_page(trace)
    read = Balanced()
    read.feed(page)
    assert read.open == []
    assert not {"script", "link", "img", "iframe"} & set(read.seen)
    assert "http" not in page
    assert read.seen.count("svg") == 3
    headings = re.findall(r"<h2>([^<]*)</h2>", page)
    assert headings == ["Seeds", "Facts", "Hits", "Attribution", "Paths"]
    assert policy_page(json.loads(json.dumps(trace))) == page


def test_names_are_escaped(trace) -> None:
    page = policy_page(trace)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") > 5
    read = Balanced()
    read.feed(page)
    assert SCRIPT in read.words


def test_seeds_and_facts_that_are_dropped_are_grey(trace) -> None:
    page = policy_page(trace)
    seeds, facts = (
        re.search(rf"<caption>{name}.*?</table>", page, re.DOTALL)[0] for name in ("Entities", "Facts that")
    )  # type: ignore[index]
    for section, rows, dropped in (
        (seeds, trace["seeds"], [one for one in trace["seeds"] if one["share"] == 0]),
        (facts, trace["facts"], [one for one in trace["facts"] if not one["kept"]]),
    ):
        assert section.count("<tr>") == 1 + len(rows) - len(dropped)
        assert section.count('<tr class="dropped">') == len(dropped)
    assert any(not one["kept"] for one in trace["facts"])
    for fact in trace["facts"]:
        assert f">{fact['reason']}</td>" in facts


def test_attributions_sum_to_a_hundred_percent(trace) -> None:
    page = policy_page(trace)
    part = page[page.index("<h2>Attribution") : page.index("<h2>Paths")]
    for at, hit in enumerate(trace["hits"], 1):
        name = re.escape(escape(f"{at}. {hit['title'] or hit['id']}", quote=False))
        shares = re.findall(rf"<title>{name}: .* ([\d.e-]+)</title>", part)
        assert sum(map(float, shares)) == pytest.approx(100, abs=0.1)


def test_the_drawing_has_each_path_once_and_leads_right(trace) -> None:
    laid = subgraph(trace["hits"])
    links = {(link.start, link.end): link for link in laid.links}
    assert len(links) == len(laid.links)
    for hit in trace["hits"]:
        here = ("hit", hit["passage"], laid.columns - 1)
        for path in hit["paths"]:
            steps = [(step["kind"], step["number"], column) for column, step in enumerate(path)]
            for at, (start, end) in enumerate(pairwise(steps), 1):
                link = links.get((start, end)) or links[start, here]
                assert link.strength >= path[at]["strength"]
                assert (link.edge, link.words) == (path[at]["edge"], arrow(path[at]))
            assert any(end == here for _, end in links)
    places = [(node.column, node.row) for node in laid.nodes.values()]
    for link in laid.links:
        between = range(laid.nodes[link.start].column + 1, laid.nodes[link.end].column)
        assert len(link.through) == len(between)
        places += zip(between, link.through, strict=True)
    assert len(set(places)) == len(places), "two things at one place"
    assert {node.column for node in laid.nodes.values() if node.kind == "hit"} == {laid.columns - 1}
    drawn = subgraph_plot(laid)
    assert drawn.count("<title>") == len(laid.links) + len(laid.nodes)
    assert {link.edge for link in laid.links} >= {"relation", "synonym", "in"}
    widths = dict(re.findall(r"<title>([^<]*, strength [^<]*)</title>\s*<path [^>]*stroke-width: ([\d.]+)", drawn))
    assert len(widths) == len({f"{link.start} {link.end}" for link in laid.links})
    by_strength = sorted(widths, key=lambda message: float(message.rpartition(" ")[2]))
    ordered = [float(widths[message]) for message in by_strength]
    assert ordered == sorted(ordered)
    assert ordered[0] < ordered[-1]


def step(kind: str, number: int, edge: str | None, strength: float) -> dict[str, Any]:
    made = {"kind": kind, "number": number, "name": f"{kind}{number}", "edge": edge, "strength": strength}
    return made | ({"families": ["birth"], "walked": True, "facts": []} if edge == "relation" else {})


def test_a_passage_that_others_are_reached_through_is_drawn_by_itself_too() -> None:
    there = [step("entity", 1, None, 1.0), step("passage", 0, "context", 0.5)]
    beyond = [*there, step("entity", 2, "context", 0.2)]
    hits = [{"passage": p, "id": f"p{p}", "title": "", "paths": [path]} for p, path in ((0, there), (7, beyond))]
    laid = subgraph(hits)
    assert laid.nodes["passage", 0, 1].column == 1
    assert laid.nodes["hit", 0, 3].column == laid.nodes["hit", 7, 3].column == 3
    edges = [(link.start, link.end, link.edge) for link in laid.links]
    assert (("passage", 0, 1), ("hit", 0, 3), "in") in edges
    assert (("entity", 2, 2), ("hit", 7, 3), "in") in edges


def test_paths_of_several_seeds_meet_where_they_are_as_far() -> None:
    """Entity 3 is one step from both seeds, and seed 2 one step from seed 1: drawn at both distances."""
    one = [step("entity", 1, None, 0.6), step("entity", 3, "relation", 0.2)]
    two = [step("entity", 2, None, 0.4), step("entity", 3, "relation", 0.1)]
    far = [step("entity", 1, None, 0.6), step("entity", 2, "relation", 0.1), step("entity", 3, "relation", 0.05)]
    hits = [{"passage": p, "id": "p", "title": "", "paths": paths} for p, paths in ((0, [two, one]), (1, [one, far]))]
    laid = subgraph(hits)
    assert sorted(key for key in laid.nodes if key[1] == 2) == [("entity", 2, 0), ("entity", 2, 1)]
    assert sorted(key for key in laid.nodes if key[1] == 3) == [("entity", 3, 1), ("entity", 3, 2)]
    links = {(link.start, link.end): link for link in laid.links}
    assert links[("entity", 3, 1), ("hit", 0, 3)].strength == 0.2, "of the stronger of the two"
    assert laid.rows == 3, "a link that two paths have takes its places between once"
    drawn = subgraph_plot(laid)
    assert drawn.count(">—birth→<") == 4
    labels = re.findall(r'x="([\d.]+)" y="([\d.]+)"[^>]*>—birth→<', drawn)
    assert len(set(labels)) == 4, "the two that lead to one box stand one below the other"


def test_the_paths_say_which_facts_they_are(trace) -> None:
    page = policy_page(trace)
    section = page[page.index("<caption>The strongest paths") :]
    assert section.count("<tr>") == 1 + sum(len(hit["paths"]) for hit in trace["hits"])
    stated = {f"{fact['head']} —{fact['relation']}→ {fact['tail']}, fact {fact['fact']}" for fact in _facts(trace)}
    assert any("directed" in message for message in stated)
    for message in stated:
        assert str(markupsafe.escape(message)) in section
    assert "←directed—" in section or "—directed→" in section
    assert "Alien and Ridley Scott by creation; Ridley Scott —directed→ Alien, fact 0, stated in Alien" in section


def _facts(trace: dict[str, Any]) -> list[dict[str, Any]]:
    steps = (step for hit in trace["hits"] for path in hit["paths"] for step in path)
    return [fact for step in steps for fact in step.get("facts", [])]


def test_a_question_without_a_seed_has_a_note(trace) -> None:
    hits = [{key: hit[key] for key in ("passage", "id", "title", "score")} for hit in trace["hits"]]
    page = policy_page({**trace, "ranked_by": "vectors", "seeds": [], "facts": [], "passage_seeds": [], "hits": hits})
    assert "There is no seed, or none reaches a passage, so passages are ranked by their vectors." in page
    assert "<svg" not in page
    assert "None: the question has no candidate." in page


def test_an_empty_drawing_is_a_note() -> None:
    assert "No walk." in subgraph_plot(subgraph([]))


def test_another_recipes_trace_is_refused() -> None:
    with refused(InputError, "missing", "trace"):
        policy_page({"query": "Who?", "seeds": [], "temperatures": {}})


@pytest.mark.parametrize(
    "hit",
    [{"path": [step("entity", 1, None, 1.0)]}, {"paths": [[{"edge": "relation", "families": ["birth"], "facts": []}]]}],
)
def test_a_trace_of_an_older_version_is_refused(trace, hit) -> None:
    older = {**{key: value for key, value in trace["hits"][0].items() if key != "paths"}, **hit}
    with refused(InputError, "version", "trace"):
        policy_page({**trace, "hits": [older]})


def test_an_entity_that_is_called_as_the_other_seeds_are_keeps_its_share() -> None:
    given = [
        {"kind": "entity", "number": 0, "name": "other seeds", "score": 0.9},
        {"kind": "entity", "number": 1, "name": "Ada", "score": 0.1},
    ]
    assert seed_shares(given, [("entity", 0)]) == {"other seeds (entity 0)": 90.0, "other seeds": 10.0}
