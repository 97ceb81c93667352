"""The memory and the self-test of a device."""

from __future__ import annotations

from dataclasses import dataclass

from .._arrays.mapped import mapping_of
from .._arrays.vectors import code_bytes
from .._validation import check_choice, check_type, check_whole
from ..backends import opened, untested
from ..backends.engine import device_of
from ..backends.selftest import Check, kernel_times, leaked_bytes, run
from ..errors import InputError
from ..types import Corpus, Graph, Incidence, LabelSets
from ..types.continued_corpus import ContinuedCorpus

__all__ = [
    "Check",
    "KernelCheck",
    "MemoryEstimate",
    "SelfTest",
    "estimate_device_memory",
    "free_device_memory",
    "selftest",
]

MOST = 2**24
"""The largest batch, k and seeds of an estimate, which allocates arrays of these sizes on the host."""


@dataclass(frozen=True)
class MemoryEstimate:
    """Memory in bytes, on a device and on the host.

    Attributes
    ----------
    graph, corpus : int
        Device memory held from the first call until :func:`free_device_memory`, or until the object is dropped. A
        corpus is held in the precision of its vectors, whatever its storage. If these take 64 MiB or more, it has
        8-bit codes too, unless ``HOPFUSE_CUDA_CODES=never``; a device without room for twice their size does without.
    ppr, ppr_topk, dense_topk : int
        The most that a call of this function allocates in addition, with its results; it returns to the pool once the
        results are dropped. :func:`ppr_topk` takes less if no list needs further passes to be proven.
    host_vectors : int
        Host memory of the corpus's vectors: 0 if they are in a mapped file, whose pages the system may evict.
    host_codes : int
        Host memory of the corpus's 8-bit codes and their bounds, whatever its storage. They are computed by
        ``Corpus.from_array``, or for the corpus of an index by the first search on the CPU.
    """

    graph: int
    corpus: int
    ppr: int
    ppr_topk: int
    dense_topk: int
    host_vectors: int
    host_codes: int

    @property
    def workspace(self) -> int:
        """The most that one of these calls allocates in addition."""
        return max(self.ppr, self.ppr_topk, self.dense_topk)

    @property
    def total(self) -> int:
        """Device memory in all."""
        return self.graph + self.corpus + self.workspace


def estimate_device_memory(
    graph: Graph | None = None,
    corpus: Corpus | None = None,
    *,
    batch: int = 32,
    k: int = 100,
    seeds: int = 8,
    stop: str = "proven",
    device: int | None = None,
) -> MemoryEstimate:
    """Estimate the memory that a graph, a corpus and searches take on a GPU, and a corpus on the host. Needs no GPU.

    The allocations of the calls are counted in a dry run, for batches on the host, on a GPU whose memory nobody else
    uses. Fragmentation of the pool, and masks and node weights of queries, are not included.

    Parameters
    ----------
    graph, corpus : Graph, Corpus, optional
    batch, k, seeds : int
        Queries per call, and hits and seeds per query.
    stop : {"proven", "tol"}
        As in :func:`ppr_topk`.
    device : int, optional
        The number of the GPU. By default it is the one that calls of this thread use or, on a machine without one, a
        GPU on which calls take the most.

    Returns
    -------
    MemoryEstimate

    Raises
    ------
    InputError
        Neither a graph nor a corpus, numbers below 1, or a GPU that does not exist.
    BackendError
        ``device`` is given, and there is no driver.

    Examples
    --------
    >>> import numpy as np, hopfuse as hf
    >>> corpus = hf.Corpus.from_array(np.zeros((10_000, 384), np.float32))
    >>> estimate = hf.estimate_device_memory(corpus=corpus)
    >>> estimate.corpus, estimate.host_vectors, estimate.host_codes
    (15400448, 15360000, 4069696)
    """
    if graph is None and corpus is None:
        raise InputError("missing", "graph", "{field} and {@corpus} are missing; give one of them, or both")
    for name, held, kind in (("graph", graph, Graph), ("corpus", corpus, Corpus)):
        if held is not None:
            check_type(held, name, kind, f"a {kind.__name__}")
    sizes = {"batch": batch, "k": k, "seeds": seeds}
    numbers = {name: check_whole(number, name, MOST) for name, number in sizes.items()}
    proves = check_choice(stop, "stop", ("proven", "tol")) == "proven"
    from ..backends.cuda.estimates import estimate  # only here, because it takes long to import

    return MemoryEstimate(**estimate(graph, corpus, **numbers, proves=proves, device=device), **_on_host(corpus))


def _on_host(corpus: Corpus | None) -> dict[str, int]:
    """Return the bytes of a corpus in host memory, by use."""
    if corpus is None:
        return {"host_vectors": 0, "host_codes": 0}
    held = corpus.concatenated.corpus.vectors if isinstance(corpus, ContinuedCorpus) else corpus.vectors
    vectors = 0 if mapping_of(held) is not None else held.nbytes
    return {"host_vectors": vectors, "host_codes": code_bytes(corpus.num_vectors, corpus.dim)}


def free_device_memory(held: Graph | Corpus | LabelSets | Incidence | None = None, *, backend: str = "auto") -> None:
    """Free the device memory of a graph, corpus, label sets or incidence; the next call there uploads it again.

    Memory that is cached for later calls is also given back to the device. A captured core that uses ``held`` keeps the
    memory until the core is dropped. Does nothing on the CPU.

    Parameters
    ----------
    held : Graph, Corpus, LabelSets or Incidence, optional
        Without it, only cached memory is given back.
    backend : {"auto", "cpu", "cuda"}

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.free_device_memory(hf.Graph.from_edges([0], [1]))
    """
    if held is not None:
        check_type(held, "held", (Graph, Corpus, LabelSets, Incidence), "a Graph, Corpus, LabelSets or Incidence")
    if device_of(backend) is None:
        return
    for found in opened(backend):
        found.device.runtime.release(held)


@dataclass(frozen=True)
class KernelCheck:
    """The result of :func:`selftest` for one kernel of a device.

    Attributes
    ----------
    name : str
    equal : bool
        Whether every check that launched the kernel is equal.
    launches : int
        Launches in one run of all checks, without those of recordings.
    seconds : float
        Total time of these launches, measured by device events. The checks are small, so it is mostly launch overhead.
    checks : tuple of str
        The names of the checks that launched it.
    """

    name: str
    equal: bool
    launches: int
    seconds: float
    checks: tuple[str, ...]


@dataclass(frozen=True)
class SelfTest:
    """Results of :func:`selftest`.

    Attributes
    ----------
    backend : str
    quick : bool
    checks : tuple of Check
    kernels : tuple of KernelCheck
        The kernels of a device; empty on the CPU.
    leaked_bytes : int or None
        Device memory still in use after 20 recordings of a search were made and dropped, including any that other
        programs allocated meanwhile; None on the CPU and if ``quick``.
    passed : bool
        Whether every check is equal.
    """

    backend: str
    quick: bool
    checks: tuple[Check, ...]
    kernels: tuple[KernelCheck, ...] = ()
    leaked_bytes: int | None = None

    @property
    def passed(self) -> bool:
        return all(check.equal for check in self.checks)


def selftest(backend: str = "cuda", quick: bool = False) -> SelfTest:
    """Run every op of a backend on generated cases and compare with the CPU's results, bit for bit.

    Parameters
    ----------
    backend : str
        "cuda", or "auto" for the default backend.
    quick : bool
        Run only the few cases that also run before the first use of a GPU; otherwise run every kernel.

    Returns
    -------
    SelfTest

    Raises
    ------
    BackendError
        The backend cannot run on this machine; the message says why.

    Examples
    --------
    >>> import hopfuse as hf
    >>> found = hf.selftest("cpu", quick=True)
    >>> found.passed, sum(check.differing for check in found.checks)
    (True, 0)
    """
    chosen = untested(backend)
    checks = tuple(run(chosen, quick=quick))
    wrong = {check.name for check in checks if not check.equal}
    kernels = tuple(
        KernelCheck(found.name, wrong.isdisjoint(found.cases), found.launches, found.seconds, found.cases)
        for found in kernel_times(chosen, quick=quick)
    )
    return SelfTest(backend, quick, checks, kernels, None if quick else leaked_bytes(chosen))
