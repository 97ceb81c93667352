"""Every argument of calibrate, fuse, Hits and the fusion methods."""

from __future__ import annotations

import pickle
from dataclasses import fields
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from api.checks import refused
from compare import assert_bitwise, assert_hits_equal
from hopfuse import fusion


def hits() -> hf.Hits:
    return hf.Hits([[3, 1, 4], [1, 5, -1]], [[9.0, 7.0, 1.0], [2.0, 1.0, 0.0]])


BAD_FUSE: list[tuple[dict[str, Any], list[str]]] = [
    ({"method": "vote"}, ["method", "'vote'", "boltzmann", "borda", "linear", "max", "rrf"]),
    ({"method": None}, ["method", "None"]),
    ({"method": ["rrf"]}, ["method"]),
    ({"method": fusion.RRF}, ["method"]),
    ({"temperature": 0.0}, ["temperature", "0.0", "'auto'"]),
    ({"temperature": -1.0}, ["temperature", "-1.0"]),
    ({"temperature": float("nan")}, ["temperature", "nan"]),
    ({"temperature": float("inf")}, ["temperature", "inf"]),
    ({"temperature": 1e39}, ["temperature", "1e+39"]),
    ({"temperature": 1e-60}, ["temperature", "1e-60"]),
    ({"temperature": "hot"}, ["temperature", "'hot'"]),
    ({"temperature": None}, ["temperature", "None"]),
    ({"temperature": True}, ["temperature", "True"]),
    ({"temperature": [1.0]}, ["temperature", "[1.0]"]),
    ({"rank_constant": 60}, ["'boltzmann'", "'rank_constant'", "temperature"]),
    ({"method": "rrf", "temperature": 1.0}, ["'rrf'", "'temperature'", "rank_constant"]),
    ({"method": "linear", "bias": [0, 0]}, ["'linear'", "'bias'", "none"]),
    ({"method": "rrf", "rank_constant": -1}, ["rank_constant", "-1"]),
    ({"method": "rrf", "rank_constant": 1e39}, ["rank_constant", "1e+39"]),
    ({"method": "rrf", "rank_constant": "60"}, ["rank_constant", "'60'"]),
    ({"method": "rrf", "rank_constant": float("nan")}, ["rank_constant", "nan"]),
    ({"method": "rrf", "calibration": "pit"}, ["'rrf'", "ranks", "omit it"]),
    ({"method": "rrf", "calibration": "none"}, ["'rrf'", "omit it"]),
    ({"method": "max", "bias": [0.0]}, ["bias", "[0.0]", "2"]),
    ({"method": "max", "bias": [0.0, np.inf]}, ["bias", "inf"]),
    ({"method": "max", "bias": [0.0, 1e39]}, ["bias", "1e+39"]),
    ({"method": "max", "weights": [1.0, 1.0]}, ["'max'", "weights", "omit them"]),
    ({"method": fusion.RRF(), "rank_constant": 3}, ["rank_constant", "RRF(rank_constant=60.0)", "object"]),
    ({"method": "rrf", "ties": "mean"}, ["'rrf'", "ties=", "ranks", "omit it"]),
    ({"method": "borda", "single": 0.5}, ["'borda'", "single=", "ranks"]),
    ({"method": "comb_mnz", "gamma": 17}, ["gamma", "17", "16"]),
    ({"method": "comb_mnz", "gamma": None}, ["gamma", "None"]),
    ({"method": "comb_min", "weights": [1.0, 1.0]}, ["'comb_min'", "weights", "omit them"]),
    ({"method": "comb_sum", "gamma": 1}, ["'comb_sum'", "'gamma'", "none"]),
    ({"method": "log_isr", "sigma": 1.5}, ["sigma", "1.5", "[0, 1]"]),
    ({"method": "borda", "missing": "half"}, ["missing", "'half'", "'mean'", "'zero'"]),
    ({"method": "rbc", "phi": 1.0}, ["phi", "1.0", "between 0 and 1"]),
    ({"method": "rbc", "phi": 1e-60}, ["phi", "1e-60"]),
    ({"method": "log_linear", "epsilon": 0.0}, ["epsilon", "0.0", "above 0"]),
    ({"method": "log_linear", "temperature": -1.0}, ["temperature", "-1.0"]),
    ({"method": "power_mean", "p": 0.01}, ["p", "0.01", "0.05", "100"]),
    ({"method": "power_mean", "p": "one"}, ["p", "'one'"]),
    ({"method": "tsallis", "q": -0.5}, ["q", "-0.5", "[0, 10]"]),
    ({"method": "tsallis", "q": (1.0, 1.0, 1.0)}, ["q", "2 of them"]),
    ({"method": "tsallis", "q": "two"}, ["q", "'two'"]),
    ({"method": "tsallis", "calibration": "none"}, ["'tsallis'", "'none'", "pit"]),
    ({"method": "quantum", "form": "cube"}, ["form", "'cube'", "'sqrt'"]),
    ({"method": "quantum", "theta": float("inf")}, ["theta", "inf", "radians"]),
    ({"method": "plackett_luce", "steps": 2.5}, ["steps", "2.5", "1 to 100"]),
    ({"method": "plackett_luce", "calibration": "rank"}, ["'plackett_luce'", "ranks"]),
    ({"wasserstein": -0.5}, ["wasserstein", "-0.5", "at least 0"]),
    ({"wasserstein": "auto"}, ["wasserstein", "'auto'"]),
    ({"wasserstein": float("inf")}, ["wasserstein", "inf"]),
    ({"method": "quantum", "wasserstein": 1.0}, ["'quantum'", "'wasserstein'"]),
    ({"method": "condorcet", "calibration": "min_max"}, ["'condorcet'", "ranks"]),
    ({"method": "wmnz", "gamma": 2.0}, ["'wmnz'", "'gamma'", "none"]),
    ({"method": "gumbel", "theta": 0.5}, ["theta", "0.5", "'auto'", "[1, 100]"]),
    ({"method": "gumbel", "theta": None}, ["theta", "None"]),
    ({"method": "gumbel", "calibration": "none"}, ["'gumbel'", "'none'"]),
    ({"calibration": "logit"}, ["calibration", "'logit'", "pit", "z_score", "softmax"]),
    ({"calibration": "theoretical_min_max"}, ["'theoretical_min_max'", "lower=", "BM25"]),
    ({"calibration": fusion.Calibration("max"), "ties": "mean"}, ["ties", "object"]),
    ({"single": float("nan")}, ["single", "nan", "finite"]),
    ({"equal": "half"}, ["equal", "'half'"]),
    ({"single": -0.5}, ["single", "-0.5", "'boltzmann'", "at least 0"]),
    ({"pool": -1}, ["pool", "-1", "at least 0"]),
    ({"pool": 1.5}, ["pool", "1.5", "whole number"]),
    ({"pool": (1, 2, 3)}, ["pool", "2 of them"]),
    ({"prior": [0.5, 1.5]}, ["importance", "1.5", "document 1", "[0, 1]"]),
    ({"prior": [[0.5]]}, ["prior", "(N,)"]),
    ({"prior": "high"}, ["prior", "'high'"]),
    ({"calibration": "z_score"}, ["'boltzmann'", "'z_score'", "min_max"]),
    ({"ties": "first"}, ["ties", "'first'", "strict", "weak"]),
    ({"calibration": "max", "ties": "mean"}, ["ties", "'mean'", "'max'", "pit"]),
    ({"weights": [1.0]}, ["weights", "(1,)", "(2,)", "(2, 2)"]),
    ({"weights": [[1.0, 1.0]]}, ["weights", "(1, 2)"]),
    ({"weights": [1.0, -0.1]}, ["weights", "-0.1", "at least 0"]),
    ({"weights": [1.0, np.nan]}, ["weights", "nan"]),
    ({"weights": [1.0, 1e39]}, ["weights", "1.e+39"]),
    ({"weights": [3e38, 3e38]}, ["weights", "sum", "float32"]),
    ({"method": "wmnz", "weights": [[1.0, 1.0], [3e38, 3e38]]}, ["weights", "sum", "float32"]),
    ({"method": "gumbel", "epsilon": 1e-40}, ["epsilon", "1e-40", "float32"]),
    ({"method": "gumbel", "epsilon": "least"}, ["epsilon", "'least'"]),
    ({"method": "gumbel", "theta": 10**400}, ["theta", "[1, 100]"]),
    ({"weights": ["a", "b"]}, ["weights", "dtype"]),
    ({"consensus": -1.0}, ["consensus", "-1.0"]),
    ({"consensus": float("nan")}, ["consensus", "nan"]),
    ({"consensus": 1e39}, ["consensus", "1e+39"]),
    ({"consensus": "some"}, ["consensus", "'some'"]),
    ({"consensus": None}, ["consensus", "None"]),
    ({"consensus": True}, ["consensus", "True"]),
    ({"consensus": [1.0]}, ["consensus", "[1.0]"]),
    ({"k": -1}, ["k", "-1"]),
    ({"k": 1.0}, ["k", "1.0"]),
    ({"backend": "tpu"}, ["backend", "'tpu'"]),
    ({"threads": 5000}, ["threads", "5000"]),
]


@pytest.mark.parametrize(("options", "says"), BAD_FUSE)
def test_a_bad_argument_of_fuse_is_refused(options: dict[str, Any], says: list[str]) -> None:
    refused(lambda: hf.fuse([hits(), hits()], **options), says)


def test_bad_lists_are_refused() -> None:
    refused(lambda: hf.fuse([]), ["at least one Hits"])
    refused(lambda: hf.fuse(hits()), ["sequence"])  # type: ignore[arg-type]
    refused(lambda: hf.fuse([hits(), [(1, 2.0)]]), ["list 1", "list", "hf.Hits(ids, scores)"])  # type: ignore[list-item]
    refused(lambda: hf.fuse([hits(), hf.Hits([[1]], [[1.0]])]), ["list 1", "1 query", "2"])


@pytest.mark.parametrize("calibration", ["max", "l2", "none"])
def test_boltzmann_refuses_calibrated_scores_below_0_and_names_the_list(calibration: Any) -> None:
    low = hf.Hits([[1, 2], [3, 4]], [[2.0, 1.0], [1.0, -1.0]])
    refused(lambda: hf.fuse([hits(), low], calibration=calibration), ["list 1", "row 1", "negative", "pit"])
    padded = hf.Hits([[1, 2], [3, -1]], [[2.0, 1.0], [1.0, -1.0]])
    assert hf.fuse([hits(), padded], calibration=calibration).counts.tolist() == [4, 3]
    assert hf.fuse([hits(), low], calibration=calibration, pool=1).counts.tolist() == [2, 2]


BAD_CALIBRATE: list[tuple[dict[str, Any], list[str]]] = [
    ({"method": "logit"}, ["calibration", "'logit'", "pit"]),
    ({"method": "softmax", "temperature": 0.0}, ["temperature", "0.0", "above 0"]),
    ({"method": "max", "temperature": 1.0}, ["temperature", "'max'", "'softmax'"]),
    ({"method": "theoretical_min_max"}, ["lower=", "BM25"]),
    ({"method": "theoretical_min_max", "lower": 1.0, "upper": 1.0}, ["lower", "upper", "below"]),
    ({"method": "theoretical_min_max", "lower": (0.0, 1.0)}, ["lower", "1 of them"]),
    ({"method": "theoretical_min_max", "lower": float("inf")}, ["lower", "inf"]),
    ({"method": "min_max", "lower": 0.0}, ["lower", "'min_max'", "'theoretical_min_max'"]),
    ({"method": "z_score", "single": 1e39}, ["single", "1e+39"]),
    ({"method": fusion.Calibration("max"), "single": 1.0}, ["single", "object"]),
    ({"method": None}, ["calibration", "None"]),
    ({"method": "pit", "ties": "max"}, ["ties", "'max'", "strict"]),
    ({"method": "rank", "ties": "strict"}, ["ties", "'strict'", "'rank'"]),
    ({"backend": "none"}, ["backend", "'none'"]),
    ({"threads": 0}, ["threads", "0"]),
]


@pytest.mark.parametrize(("options", "says"), BAD_CALIBRATE)
def test_a_bad_argument_of_calibrate_is_refused(options: dict[str, Any], says: list[str]) -> None:
    refused(lambda: hf.calibrate(hits(), **options), says)


BAD_HITS: list[tuple[tuple[Any, ...], list[str]]] = [
    (([[1, 2]], [[1.0]]), ["(1, 2)", "(1, 1)", "(B, k)"]),
    (([[1, 2]], [1.0]), ["(1, 2)"]),
    (([[[1]]], [[[1.0]]]), ["(1, 1, 1)"]),
    (([[1.0, 2.0]], [[1.0, 2.0]]), ["float64", "integers"]),
    (([["a"]], [[1.0]]), ["integers"]),
    (([[1]], [["x"]]), ["scores", "real"]),
    (([[1, -2]], [[1.0, 1.0]]), ["-2", "row 0", "position 1"]),
    (([[1, 2], [4, 4]], [[1.0, 2.0], [3.0, 4.0]]), ["row 1", "id 4", "more than once"]),
    (([[1, 2]], [[1.0, np.nan]]), ["nan", "row 0", "position 1"]),
    (([[1, 2]], [[np.inf, 1.0]]), ["inf", "row 0", "position 0"]),
    (([[1, 2]], [[1e39, 1.0]]), ["inf", "position 0"]),
    (([[1, 2]], [[1.0, 2.0]], [3]), ["counts", "0 to 2"]),
    (([[1, 2]], [[1.0, 2.0]], [-1]), ["counts"]),
    (([[1, 2]], [[1.0, 2.0]], [1, 1]), ["counts", "(2,)"]),
    (([[1, 2]], [[1.0, 2.0]], [1.5]), ["counts", "float64"]),
    (([[-1, 2]], [[1.0, 2.0]], [2]), ["-1", "row 0"]),
]


@pytest.mark.parametrize(("arguments", "says"), BAD_HITS)
def test_bad_hits_are_refused(arguments: tuple[Any, ...], says: list[str]) -> None:
    refused(lambda: hf.Hits(*arguments), says)


def test_hits_put_themselves_in_total_order_with_padding_last() -> None:
    made = hf.Hits([[7, -1, 3, 5]], [[0.5, 99.0, 0.9, 0.5]])
    assert made.ids.tolist() == [[3, 5, 7, -1]]
    assert made.counts.tolist() == [3]
    assert np.isneginf(made.scores[0, 3])
    assert made.row(0) == [(3, float(np.float32(0.9))), (5, 0.5), (7, 0.5)]
    assert len(made) == 1
    assert made.head(2).ids.tolist() == [[3, 5]]
    refused(lambda: made.head(-1), ["-1"])


def test_a_single_row_and_padding_among_many_are_accepted() -> None:
    assert hf.Hits([2, 9], [1.0, 3.0]).ids.tolist() == [[9, 2]]
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
    from hopfuse.reference.fusion import METHODS as ORACLE

    assert set(fusion.METHODS) == set(ORACLE)
    assert {method.kernel for method in fusion.METHODS.values()} == set(_native.fusion_methods())
    assert set(fusion.calibration.CALIBRATIONS) == set(_native.calibrations()) == set(reference.calibration.METHODS)
    assert reference.fuse is not hf.fuse


@pytest.mark.parametrize("name", sorted(fusion.METHODS))
def test_the_oracle_and_the_library_agree_on_defaults(name: str) -> None:
    from hopfuse.reference.fusion import METHODS as ORACLE

    method, oracle = fusion.METHODS[name](), ORACLE[name]
    for lists in (1, 2, 3):
        if method.weighted:
            np.testing.assert_allclose(method.default_weights(lists), oracle.default_weights(lists), rtol=1e-7)
    assert method.weighted == (oracle.default_weights is not None)
    if method.calibrations != ():
        assert method.default_calibration == oracle.calibrations[0]
    allowed = fusion.calibration.CALIBRATIONS if method.calibrations is None else method.calibrations
    assert set(oracle.calibrations) == set(allowed)
    assert {f.name: getattr(method, f.name) for f in fields(method)} == dict(oracle.options)


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
    refused(lambda: fusion.Prior([0.5], weight=1.5), ["weight", "1.5", "[0, 1]"])


def test_inputs_are_left_as_they_were() -> None:
    one, two, weights = hits(), hits(), np.array([[1.0, 2.0], [0.5, 0.0]])
    before = [a.copy() for a in (one.ids, one.scores, one.counts, two.scores, weights)]
    hf.fuse([one, two], weights=weights)
    hf.calibrate([one, two])
    for now, then in zip((one.ids, one.scores, one.counts, two.scores, weights), before, strict=True):
        assert_bitwise(now, then)


@pytest.mark.parametrize("lists", [np.ones((2, 2)), 5, [np.ones(3)]])
def test_calibrate_takes_hits_alone(lists: Any) -> None:
    refused(lambda: hf.calibrate(lists), ["Hits", "wrap"])


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
    refused(lambda: hf.fuse(lists, method="rrf", rank_constant=True), ["rank_constant", "True"])
    refused(lambda: hf.fuse(lists, method="tsallis", q=(1.0, True)), ["q", "True"])
    zero = hf.calibrate(hf.Hits([[1]], [[2.0]]), single=0.0).scores
    assert not np.signbit(zero[0, 0])
    assert np.signbit(hf.calibrate(hf.Hits([[1]], [[2.0]]), single=-0.0).scores[0, 0])
