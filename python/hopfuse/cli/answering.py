"""``--answers`` and a policy's language model: what policy-rag asks one for, checked before it is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ..connect import ChatEndpoint
from ..errors import InputError
from .endpoint import DETAILS, endpoint_options, make_endpoint
from .policy import read_policy

F = TypeVar("F", bound=Callable[..., Any])


def answering_options(command: F) -> F:
    """``--answers`` and the model's options; :func:`language_model` reads them."""
    command = endpoint_options("so that nothing is asked twice")(command)
    return click.option(
        "--answers", is_flag=True, help="Have --model answer from policy-rag's first hits alone; see [answers] there."
    )(command)


def language_model(chosen: str, policy: Path | None, *, answers: bool, **options: Any) -> ChatEndpoint | None:
    """The model that policy-rag is given; refused where one is needed and not named, or named and not needed.

    Parameters
    ----------
    chosen : str
        As ``--recipe`` names it; others than policy-rag have none.
    policy : Path, optional
        What ``--policy`` names.
    answers : bool
        Whether ``--answers`` is given.
    **options
        model, endpoint, cache and concurrency.
    """
    if chosen != "policy-rag":
        return None
    rules = read_policy(policy)
    gated = rules.switches.gate and rules.facts.gate == "llm"
    if options["model"] is not None:
        if not (gated or answers):
            raise InputError('nothing would be asked of --model: add --answers, or a --policy with facts.gate = "llm"')
        return make_endpoint(options)
    for name in DETAILS:
        if options[name] is not None:
            raise InputError(f"--{name} is given without --model, the name of a language model there; add it")
    if answers:
        raise InputError("--answers needs --model, the name of a language model, and --endpoint where it answers")
    if gated:
        raise InputError('the policy has facts.gate = "llm": give --model and --endpoint, or set it to "rules"')
    return None
