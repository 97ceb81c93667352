"""Every argument of calibrate, fuse, Hits and the fusion methods."""

from __future__ import annotations

import pickle
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise, assert_hits_equal
from hopfuse import fusion
from hopfuse.errors import InputError
from refusals import refused


def hits() -> hf.Hits:
    return hf.Hits([[3, 1, 4], [1, 5, -1]], [[9.0, 7.0, 1.0], [2.0, 1.0, 0.0]])


BAD_FUSE: list[tuple[dict[str, Any], tuple[str, str | None]]] = [
    ({"method": "vote"}, ("choice", "method")),
    ({"method": None}, ("choice", "method")),
    ({"method": ["rrf"]}, ("choice", "method")),
    ({"method": fusion.RRF}, ("choice", "method")),
    ({"temperature": 0.0}, ("range", "temperature")),
    ({"temperature": -1.0}, ("range", "temperature")),
    ({"temperature": float("nan")}, ("range", "temperature")),
    ({"temperature": float("inf")}, ("range", "temperature")),
    ({"temperature": 1e39}, ("range", "temperature")),
    ({"temperature": 1e-60}, ("range", "temperature")),
    ({"temperature": "hot"}, ("range", "temperature")),
    ({"temperature": None}, ("range", "temperature")),
    ({"temperature": True}, ("range", "temperature")),
    ({"temperature": [1.0]}, ("range", "temperature")),
    ({"rank_constant": 60}, ("unknown", "rank_constant")),
    ({"method": "rrf", "temperature": 1.0}, ("unknown", "temperature")),
    ({"method": "linear", "bias": [0, 0]}, ("unknown", "bias")),
    ({"method": "rrf", "rank_constant": -1}, ("range", "rank_constant")),
    ({"method": "rrf", "rank_constant": 1e39}, ("range", "rank_constant")),
    ({"method": "rrf", "rank_constant": "60"}, ("range", "rank_constant")),
    ({"method": "rrf", "rank_constant": float("nan")}, ("range", "rank_constant")),
    ({"method": "rrf", "calibration": "pit"}, ("unused", "calibration")),
    ({"method": "rrf", "calibration": "none"}, ("unused", "calibration")),
    ({"method": "max", "bias": [0.0]}, ("length", "bias")),
    ({"method": "max", "bias": [0.0, np.inf]}, ("range", "bias[1]")),
    ({"method": "max", "bias": [0.0, 1e39]}, ("range", "bias[1]")),
    ({"method": "max", "weights": [1.0, 1.0]}, ("unused", "weights")),
    ({"method": fusion.RRF(), "rank_constant": 3}, ("conflict", "rank_constant")),
    ({"method": "rrf", "ties": "mean"}, ("unused", "ties")),
    ({"method": "borda", "single": 0.5}, ("unused", "single")),
    ({"method": "comb_mnz", "gamma": 17}, ("range", "gamma")),
    ({"method": "comb_mnz", "gamma": None}, ("range", "gamma")),
    ({"method": "comb_min", "weights": [1.0, 1.0]}, ("unused", "weights")),
    ({"method": "comb_sum", "gamma": 1}, ("unknown", "gamma")),
    ({"method": "log_isr", "sigma": 1.5}, ("range", "sigma")),
    ({"method": "borda", "missing": "half"}, ("choice", "missing")),
    ({"method": "rbc", "phi": 1.0}, ("range", "phi")),
    ({"method": "rbc", "phi": 1e-60}, ("range", "phi")),
    ({"method": "log_linear", "epsilon": 0.0}, ("range", "epsilon")),
    ({"method": "log_linear", "temperature": -1.0}, ("range", "temperature")),
    ({"method": "power_mean", "p": 0.01}, ("range", "p")),
    ({"method": "power_mean", "p": "one"}, ("range", "p")),
    ({"method": "tsallis", "q": -0.5}, ("range", "q")),
    ({"method": "tsallis", "q": (1.0, 1.0, 1.0)}, ("length", "q")),
    ({"method": "tsallis", "q": "two"}, ("range", "q")),
    ({"method": "tsallis", "calibration": "none"}, ("choice", "calibration")),
    ({"method": "quantum", "form": "cube"}, ("choice", "form")),
    ({"method": "quantum", "theta": float("inf")}, ("range", "theta")),
    ({"method": "plackett_luce", "steps": 2.5}, ("range", "steps")),
    ({"method": "plackett_luce", "calibration": "rank"}, ("unused", "calibration")),
    ({"wasserstein": -0.5}, ("range", "wasserstein")),
    ({"wasserstein": "auto"}, ("range", "wasserstein")),
    ({"wasserstein": float("inf")}, ("range", "wasserstein")),
    ({"method": "quantum", "wasserstein": 1.0}, ("unknown", "wasserstein")),
    ({"method": "condorcet", "calibration": "min_max"}, ("unused", "calibration")),
    ({"method": "wmnz", "gamma": 2.0}, ("unknown", "gamma")),
    ({"method": "gumbel", "theta": 0.5}, ("range", "theta")),
    ({"method": "gumbel", "theta": None}, ("range", "theta")),
    ({"method": "gumbel", "calibration": "none"}, ("choice", "calibration")),
    ({"calibration": "logit"}, ("choice", "calibration")),
    ({"calibration": "theoretical_min_max"}, ("missing", "lower")),
    ({"calibration": fusion.Calibration("max"), "ties": "mean"}, ("conflict", "ties")),
    ({"single": float("nan")}, ("range", "single")),
    ({"equal": "half"}, ("range", "equal")),
    ({"single": -0.5}, ("range", "single")),
    ({"pool": -1}, ("range", "pool")),
    ({"pool": 1.5}, ("range", "pool")),
    ({"pool": (1, 2, 3)}, ("length", "pool")),
    ({"prior": [0.5, 1.5]}, ("range", "prior[1]")),
    ({"prior": [[0.5]]}, ("shape", "prior")),
    ({"prior": "high"}, ("shape", "prior")),
    ({"calibration": "z_score"}, ("choice", "calibration")),
    ({"ties": "first"}, ("choice", "ties")),
    ({"calibration": "max", "ties": "mean"}, ("unused", "ties")),
    ({"weights": [1.0]}, ("shape", "weights")),
    ({"weights": [[1.0, 1.0]]}, ("shape", "weights")),
    ({"weights": [1.0, -0.1]}, ("range", "weights[1]")),
    ({"weights": [1.0, np.nan]}, ("range", "weights[1]")),
    ({"weights": [1.0, 1e39]}, ("range", "weights[1]")),
    ({"weights": [3e38, 3e38]}, ("finite", "weights")),
    ({"method": "wmnz", "weights": [[1.0, 1.0], [3e38, 3e38]]}, ("finite", "weights")),
    ({"method": "gumbel", "epsilon": 1e-40}, ("range", "epsilon")),
    ({"method": "gumbel", "epsilon": "least"}, ("range", "epsilon")),
    ({"method": "gumbel", "theta": 10**400}, ("range", "theta")),
    ({"weights": ["a", "b"]}, ("dtype", "weights")),
    ({"consensus": -1.0}, ("range", "consensus")),
    ({"consensus": float("nan")}, ("range", "consensus")),
    ({"consensus": 1e39}, ("range", "consensus")),
    ({"consensus": "some"}, ("range", "consensus")),
    ({"consensus": None}, ("range", "consensus")),
    ({"consensus": True}, ("range", "consensus")),
    ({"consensus": [1.0]}, ("range", "consensus")),
    ({"k": -1}, ("range", "k")),
    ({"k": 1.0}, ("range", "k")),
    ({"backend": "tpu"}, ("choice", "backend")),
    ({"threads": 5000}, ("range", "threads")),
]


@pytest.mark.parametrize(("options", "refusal"), BAD_FUSE)
def test_a_bad_argument_of_fuse_is_refused(options: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        hf.fuse([hits(), hits()], **options)


def test_bad_lists_are_refused() -> None:
    with refused(InputError, "empty", "lists"):
        hf.fuse([])
    with refused(InputError, "type", "lists"):
        hf.fuse(hits())  # type: ignore[arg-type]
    with refused(InputError, "type", "lists[1]", given="list"):
        hf.fuse([hits(), [(1, 2.0)]])  # type: ignore[list-item]
    with refused(InputError, "length", "lists[1]", given=1):
        hf.fuse([hits(), hf.Hits([[1]], [[1.0]])])


@pytest.mark.parametrize("calibration", ["max", "l2", "none"])
def test_boltzmann_refuses_calibrated_scores_below_0_and_names_the_list(calibration: Any) -> None:
    low = hf.Hits([[1, 2], [3, 4]], [[2.0, 1.0], [1.0, -1.0]])
    with refused(InputError, "range", "lists[1]", row=1):
        hf.fuse([hits(), low], calibration=calibration)
    padded = hf.Hits([[1, 2], [3, -1]], [[2.0, 1.0], [1.0, -1.0]])
    assert hf.fuse([hits(), padded], calibration=calibration).counts.tolist() == [4, 3]
    assert hf.fuse([hits(), low], calibration=calibration, pool=1).counts.tolist() == [2, 2]


BAD_CALIBRATE: list[tuple[dict[str, Any], tuple[str, str | None]]] = [
    ({"method": "logit"}, ("choice", "calibration")),
    ({"method": "softmax", "temperature": 0.0}, ("range", "temperature")),
    ({"method": "max", "temperature": 1.0}, ("unused", "temperature")),
    ({"method": "theoretical_min_max"}, ("missing", "lower")),
    ({"method": "theoretical_min_max", "lower": 1.0, "upper": 1.0}, ("order", "lower")),
    ({"method": "theoretical_min_max", "lower": (0.0, 1.0)}, ("length", "lower")),
    ({"method": "theoretical_min_max", "lower": float("inf")}, ("range", "lower")),
    ({"method": "min_max", "lower": 0.0}, ("unused", "lower")),
    ({"method": "z_score", "single": 1e39}, ("range", "single")),
    ({"method": fusion.Calibration("max"), "single": 1.0}, ("conflict", "single")),
    ({"method": None}, ("choice", "calibration")),
    ({"method": "pit", "ties": "max"}, ("choice", "ties")),
    ({"method": "rank", "ties": "strict"}, ("unused", "ties")),
    ({"backend": "none"}, ("choice", "backend")),
    ({"threads": 0}, ("range", "threads")),
]


@pytest.mark.parametrize(("options", "refusal"), BAD_CALIBRATE)
def test_a_bad_argument_of_calibrate_is_refused(options: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        hf.calibrate(hits(), **options)


BAD_HITS: list[tuple[tuple[Any, ...], tuple[str, str | None]]] = [
    (([[1, 2]], [[1.0]]), ("shape", "ids")),
    (([[1, 2]], [1.0]), ("shape", "ids")),
    (([[[1]]], [[[1.0]]]), ("shape", "ids")),
    (([[1.0, 2.0]], [[1.0, 2.0]]), ("dtype", "ids")),
    (([["a"]], [[1.0]]), ("dtype", "ids")),
    (([[1]], [["x"]]), ("dtype", "scores")),
    (([[1, -2]], [[1.0, 1.0]]), ("range", "ids[0, 1]")),
    (([[1, 2], [4, 4]], [[1.0, 2.0], [3.0, 4.0]]), ("duplicate", "ids[1]")),
    (([[1, 2]], [[1.0, np.nan]]), ("finite", "scores[0, 1]")),
    (([[1, 2]], [[np.inf, 1.0]]), ("finite", "scores[0, 0]")),
    (([[1, 2]], [[1e39, 1.0]]), ("finite", "scores[0, 0]")),
    (([[1, 2]], [[1.0, 2.0]], [3]), ("shape", "counts")),
    (([[1, 2]], [[1.0, 2.0]], [-1]), ("shape", "counts")),
    (([[1, 2]], [[1.0, 2.0]], [1, 1]), ("shape", "counts")),
    (([[1, 2]], [[1.0, 2.0]], [1.5]), ("dtype", "counts")),
    (([[-1, 2]], [[1.0, 2.0]], [2]), ("range", "ids[0, 0]")),
    ((np.array([[1, 2**64 - 1]], np.uint64), [[1.0, 2.0]]), ("range", "ids", {"given": 2**64 - 1})),
    ((np.array([[1, 2**63 + 5]], np.uint64), [[1.0, 2.0]]), ("range", "ids", {"given": 2**63 + 5})),
    (([[1, 2]], [[1.0, 2.0]], np.array([2**64 - 1], np.uint64)), ("range", "counts", {"given": 2**64 - 1})),
]


@pytest.mark.parametrize(("arguments", "refusal"), BAD_HITS)
def test_bad_hits_are_refused(arguments: tuple[Any, ...], refusal: tuple[Any, ...]) -> None:
    with refused(InputError, *refusal):
        hf.Hits(*arguments)


def test_hits_put_themselves_in_total_order_with_padding_last() -> None:
    made = hf.Hits([[7, -1, 3, 5]], [[0.5, 99.0, 0.9, 0.5]])
    assert made.ids.tolist() == [[3, 5, 7, -1]]
    assert made.counts.tolist() == [3]
    assert np.isneginf(made.scores[0, 3])
    assert made.row(0) == [(3, float(np.float32(0.9))), (5, 0.5), (7, 0.5)]
    assert len(made) == 1
    assert made.head(2).ids.tolist() == [[3, 5]]
    with refused(InputError, "range", "k", given=-1):
        made.head(-1)


def test_a_single_row_and_padding_among_many_are_accepted() -> None:
    assert hf.Hits([2, 9], [1.0, 3.0]).ids.tolist() == [[9, 2]]
    assert hf.Hits(np.array([2, 2**63 - 1], np.uint64), [1.0, 3.0]).row(0) == [(2**63 - 1, 3.0), (2, 1.0)]
    assert hf.Hits([[-1, -1, -1]], [[0.0, np.nan, np.inf]]).counts.tolist() == [0]
    assert hf.Hits([[1, 2, 3]], [[1.0, np.nan, 2.0]], [1]).row(0) == [(1, 1.0)]


def test_a_method_by_name_and_as_an_object_is_one_call() -> None:
    lists = [hits(), hits()]
    pairs = [
        ({"method": "boltzmann", "temperature": 0.5}, fusion.Boltzmann(temperature=0.5)),
        ({"wasserstein": 3}, fusion.Boltzmann(wasserstein=3)),
        ({"method": "linear"}, fusion.Linear()),
        ({"method": "rrf", "rank_constant": 3}, fusion.RRF(rank_constant=3)),
        ({"method": "max", "bias": (0.0, 1.0)}, fusion.Max(bias=(0.0, 1.0))),
        ({"method": "tsallis", "q": np.array([1.0, 2.0])}, fusion.Tsallis(q=(1.0, 2.0))),
        ({"method": "quantum", "form": "sqrt"}, fusion.Quantum(form="sqrt")),
    ]
    for named, made in pairs:
        assert_hits_equal(hf.fuse(lists, **named), hf.fuse(lists, method=made))


def test_every_method_is_registered_by_the_name_that_the_kernels_know() -> None:
    from hopfuse import _native, reference

    assert {method.kernel for method in fusion.METHODS.values()} == set(_native.fusion_methods())
    assert set(fusion.calibration.CALIBRATIONS) == set(_native.calibrations()) == set(reference.calibration.METHODS)
    assert reference.fuse is not hf.fuse


def test_a_calibration_by_name_and_as_an_object_is_one_call() -> None:
    lists = [hits(), hf.Hits([[2], [7]], [[3.0], [1.0]])]
    by_name = hf.fuse(lists, method="linear", calibration="pit", ties="mean", single=0.75, equal=0.5)
    made = fusion.Calibration("pit", ties="mean", single=0.75, equal=0.5)
    assert_hits_equal(hf.fuse(lists, method="linear", calibration=made), by_name)
    assert_bitwise(
        hf.calibrate(hits(), "softmax", temperature=2.0).scores,
        hf.calibrate(hits(), fusion.Calibration("softmax", temperature=2.0)).scores,
    )


def test_a_prior_is_made_once_and_not_changed() -> None:
    prior = fusion.Prior([0.0, np.nan, 1.0], weight=0.5)
    assert prior.factors.tolist() == [0.5, 1.0, 1.0]
    assert repr(prior) == "Prior(documents=3, weight=0.5)"
    with pytest.raises(ValueError, match="read-only"):
        prior.factors[0] = 2.0
    with pytest.raises(AttributeError, match="weight"):
        prior.weight = 1.0
    assert fusion.Prior([0.0, 1.0]).factors.tolist() == [np.float32(0.7), 1.0]
    with refused(InputError, "range", "weight", given=1.5):
        fusion.Prior([0.5], weight=1.5)


def test_inputs_are_left_as_they_were() -> None:
    one, two, weights = hits(), hits(), np.array([[1.0, 2.0], [0.5, 0.0]])
    before = [a.copy() for a in (one.ids, one.scores, one.counts, two.scores, weights)]
    hf.fuse([one, two], weights=weights)
    hf.calibrate([one, two])
    for now, then in zip((one.ids, one.scores, one.counts, two.scores, weights), before, strict=True):
        assert_bitwise(now, then)


@pytest.mark.parametrize(
    ("lists", "field"),
    [(np.ones((2, 2)), "lists"), (5, "lists"), ([np.ones(3)], "lists[0]")],
    ids=["array", "int", "list"],
)
def test_calibrate_takes_hits_alone(lists: Any, field: str) -> None:
    with refused(InputError, "type", field):
        hf.calibrate(lists)


# ---- What is kept from call to call ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [fusion.Boltzmann(), fusion.RRF(rank_constant=3), fusion.Tsallis(q=(1.0, 2.0)), fusion.Calibration()]
)
def test_options_are_converted_once_for_each_number_of_lists(options: Any) -> None:
    kept = options.kernel_options_once(2)
    assert repr(kept) == repr(options.kernel_options(2))
    assert kept is options.kernel_options_once(2)
    for array in kept.values():
        if isinstance(array, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1.0
    again = pickle.loads(pickle.dumps(options))
    assert again == options
    assert "_kernel_options" not in vars(again)
    assert repr(again.kernel_options_once(2)) == repr(kept)


def test_options_are_converted_for_the_lists_of_a_call() -> None:
    rule = fusion.Calibration()
    assert [rule.kernel_options_once(lists)["lower"].size for lists in (1, 2, 1)] == [1, 2, 1]


def test_a_list_among_options_is_read_in_every_call() -> None:
    bias = [0.0, 0.0]
    method = fusion.Max(bias=bias)
    lists = [hf.Hits([[1]], [[0.5]]), hf.Hits([[2]], [[0.5]])]
    assert hf.fuse(lists, method=method, k=2).ids.tolist() == [[1, 2]]
    bias[1] = 1.0
    assert hf.fuse(lists, method=method, k=2).ids.tolist() == [[2, 1]]


def test_equal_options_of_other_types_are_not_taken_for_each_other() -> None:
    lists = [hits(), hits()]
    hf.fuse(lists, method="rrf", rank_constant=1)
    hf.fuse(lists, method="tsallis", q=(1.0, 1))
    with refused(InputError, "range", "rank_constant", given=True):
        hf.fuse(lists, method="rrf", rank_constant=True)
    with refused(InputError, "range", "q[1]", given=True):
        hf.fuse(lists, method="tsallis", q=(1.0, True))
    zero = hf.calibrate(hf.Hits([[1]], [[2.0]]), single=0.0).scores
    assert not np.signbit(zero[0, 0])
    assert np.signbit(hf.calibrate(hf.Hits([[1]], [[2.0]]), single=-0.0).scores[0, 0])
