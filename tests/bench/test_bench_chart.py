"""Charts show their values at the right places, and are valid SVG in both colour schemes."""

from __future__ import annotations

import re
from math import log10
from xml.etree import ElementTree

import pytest

from bench import chart

SVG = "{http://www.w3.org/2000/svg}"


def numbers(root: ElementTree.Element, tag: str, *names: str) -> list[tuple[float, ...]]:
    """Return attributes of the elements of a tag that have a colour."""
    found = [of for of in root.iter(f"{SVG}{tag}") if re.match(r"c\d", of.get("class", ""))]
    return [tuple(float(of.get(name, "nan")) for name in names) for of in found]


def test_a_bar_reaches_from_one_to_its_value() -> None:
    values = {"ten": 10.0, "a tenth": 0.1, "<three & more>": 3.0}
    root = ElementTree.fromstring(chart.bars("Ratios", values))
    ten, tenth, three = numbers(root, "rect", "x", "width")
    one = ten[0]
    assert (tenth[0] + tenth[1], three[0]) == (pytest.approx(one), pytest.approx(one))
    assert ten[1] == pytest.approx(tenth[1], abs=0.2)
    assert three[1] == pytest.approx(ten[1] * log10(3.0), abs=0.2)
    texts = [of.text for of in root.iter(f"{SVG}text")]
    assert {"Ratios", "ten", "<three & more>", "10.0×", "0.10×", "3.00×"} <= set(texts)


def test_lines_are_logarithmic_both_ways() -> None:
    root = ElementTree.fromstring(
        chart.lines("Times", "queries", "ms", {"a": [(1, 1.0), (10, 10.0)], "b": [(100, 1.0)]})
    )
    (x1, y1), (x2, y2), (x3, y3) = numbers(root, "circle", "cx", "cy")
    assert (x2 - x1, y3) == (pytest.approx(x3 - x2), y1)
    assert y2 < y1
    assert [of.text for of in root.iter(f"{SVG}text") if of.text in ("a", "b")] == ["a", "b"]


def test_each_colour_has_a_value_for_light_and_for_dark() -> None:
    light, dark = chart.STYLE.split("@media (prefers-color-scheme: dark)")
    named = [set(re.findall(r"\.(\w+) \{ (?:fill|stroke): #", part)) for part in (light, dark)]
    assert named[0] == named[1] >= {"paper", "ink", "pale", "grid", "c0", "c1", "c2", "c3", "one"}
