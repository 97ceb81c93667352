"""The cases of scores by node and by label: both sides give correct results, and a wrong score stops them."""

from __future__ import annotations

import numpy as np
import pytest
from hopfuse import reference

from bench.cases import CASES
from bench.cases.dice import CANDIDATES, Dice
from bench.cases.projection import Projection
from bench.cases.similarity import Similarity
from bench.errors import GateError
from bench.peers.numpy_dice import NumpyDice
from bench.peers.numpy_weights import NumpyWeights
from bench.peers.python_dice import PythonDice, bigrams
from bench.peers.scipy_product import ScipyProduct
from bench.settings import Settings

QUICK = Settings(quick=True, repeats=1, threads=1)


@pytest.fixture(scope="module")
def dice() -> Dice:
    return Dice(QUICK)


@pytest.fixture(scope="module")
def projection() -> Projection:
    return Projection(QUICK)


def test_dice_has_its_sizes_and_is_the_same_again(dice: Dice) -> None:
    again = Dice(QUICK)
    assert (dice.names, dice.texts) == (again.names, again.texts)
    np.testing.assert_array_equal(dice.candidates, again.candidates)
    assert dice.candidates.shape == (4, CANDIDATES, 3)
    assert {len(name.split()) for name in dice.names} == {1, 2, 3}
    assert {len(text.split()) for text in dice.texts} == {8}
    relations = dice.candidates[:, :, 1]
    assert relations.min() >= 300
    assert relations.max() < len(dice.names) == dice.sizes["labels"]
    assert (dice.run(4, 0) > 0).mean() > 0.5  # questions share bigrams with most triples


@pytest.mark.parametrize("peer", [PythonDice, NumpyDice])
@pytest.mark.parametrize("batch", [1, 4])
def test_dice_and_its_peers_are_the_oracles(dice: Dice, peer: type[PythonDice] | type[NumpyDice], batch: int) -> None:
    ours, theirs = dice.run(batch, 0), peer(dice, 1).run(batch)
    assert dice.check(batch, ours)["queries"] == min(batch, 2)
    assert dice.compare(batch, ours, theirs)["queries"] == batch
    bounds = (CANDIDATES * np.arange(batch + 1)).tolist()
    rows = dice.candidates[:batch].reshape(-1, 3).tolist()
    exact = reference.dice_scores(dice.texts[:batch], dice.names, rows, bounds)
    np.testing.assert_allclose(theirs, exact, rtol=0, atol=1e-15)


def test_a_peers_bigrams_are_the_operations() -> None:
    for text in ("Ada  ADA é\u00a0ß", "", "x", "New York, New York"):
        assert bigrams(text) == set(reference.elements(text))


@pytest.mark.parametrize("at", [0, -1])
def test_a_wrong_coefficient_stops_the_case(dice: Dice, at: int) -> None:
    ours = dice.run(4, 0)
    theirs = PythonDice(dice, 1).run(4)
    theirs[at] += 1e-6
    with pytest.raises(GateError, match="the peer against hopfuse: row"):
        dice.compare(4, ours, theirs)
    ours[at] = np.nextafter(ours[at], np.float32(2)) + np.float32(1e-7)
    with pytest.raises(GateError, match="hopfuse against the oracle: row"):
        dice.check(4, ours)


def test_projection_and_its_peer_agree_and_a_wrong_score_stops_them(projection: Projection) -> None:
    ours, theirs = projection.run(4, 0), ScipyProduct(projection, 1).run(4)
    assert ours.shape == (4, projection.sizes["passages"])
    assert projection.check(4, ours)["queries"] == 2
    assert projection.compare(4, ours, theirs)["queries"] == 4
    theirs[2, 0] += 1e-5
    with pytest.raises(GateError, match="row 2 is off"):
        projection.compare(4, ours, theirs)
    ours[0, 0] += np.float32(1e-5)
    with pytest.raises(GateError, match="row 0 is off"):
        projection.check(4, ours)


def test_weights_and_their_peer_agree_and_a_wrong_weight_stops_them() -> None:
    case = Similarity(QUICK)
    ours, theirs = case.run(4, 0), NumpyWeights(case, 1).run(4)
    assert ours.shape == (4, case.sizes["passages"])
    assert case.check(4, ours)["queries"] == 2
    assert case.compare(4, ours, theirs)["queries"] == 4
    theirs[2, 0] += 1e-2
    with pytest.raises(GateError, match="row 2 is off"):
        case.compare(4, ours, theirs)
    ours[0, 0] += np.float32(1e-2)
    with pytest.raises(GateError, match="row 0 is off"):
        case.check(4, ours)


def test_they_are_measured_by_default_with_their_peers() -> None:
    assert CASES["dice"].peers == ("python-dice", "numpy-dice")
    assert CASES["project"].peers == ("scipy-product",)
    assert not CASES["dice"].by_name
    assert CASES["similarity"].peers == ("numpy-weights",)
    assert not CASES["project"].by_name
    assert not CASES["similarity"].by_name
