"""``--policy``: what a command that asks no language model refuses of it, before any work."""

from __future__ import annotations

from pathlib import Path

from ..errors import InputError
from .policy import read_policy


def check_policy(path: Path | None, depth: int, said: str, *, entity_vectors: bool = True) -> None:
    """Refuse a policy that the command could not follow to the end.

    Parameters
    ----------
    path : Path, optional
        What ``--policy`` names; by default the policy of policy-rag itself.
    depth : int
        Passages that are asked for.
    said : str
        Where that number is from, for the error.
    entity_vectors : bool
        Whether the index has vectors of its entities, as far as that is known.

    Raises
    ------
    InputError
        The file is no policy; its gate is a language model; it ranks fewer passages than are asked for; its seeds are
        found by vectors that the entities do not have.

    Examples
    --------
    >>> from hopfuse.errors import InputError
    >>> try:
    ...     check_policy(None, 150, "--k is 150")
    ... except InputError as error:
    ...     print(error)
    --k is 150, and the default policy ranks 100 passages; ask for fewer, or raise its reranking.pool
    """
    policy, name = read_policy(path), "the default policy" if path is None else str(path)
    if policy.switches.gate and policy.facts.gate == "llm":
        raise InputError(
            f'{name} has facts.gate = "llm", which needs a language model, and this command asks none; set it to '
            '"rules", or use hopfuse score or explain with --model'
        )
    if depth > policy.reranking.pool:
        raise InputError(
            f"{said}, and {name} ranks {policy.reranking.pool} passages; ask for fewer, or raise its reranking.pool"
        )
    if policy.seeds.source != "entities" and not entity_vectors:
        raise InputError(
            f'{name} has seeds.source = "{policy.seeds.source}", and there are no vectors of the entities here; set it '
            'to "entities"'
        )
