"""What is wrong with a kernel's resources on an architecture, in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from budgets import Budget, BudgetError, read_budget
from cubin import Resources, read_resources
from nvrtc import Nvrtc
from occupancy import occupancy

#: A block may have this much without asking the driver for more.
MOST_SHARED = 48 * 1024


def block_size(resources: Resources, budget: Budget) -> Iterator[str]:
    bound = resources.launch_bound
    if budget.block is None and bound is None:
        yield 'neither "Block: 256" in its comment nor __launch_bounds__ says how many threads a block has'
    elif bound is not None and budget.block is not None and budget.block > bound:
        yield f"blocks of {budget.block} threads, but __launch_bounds__ allows {bound}"


def shared_memory(resources: Resources, budget: Budget, dynamic: bool) -> Iterator[str]:
    if budget.shared > MOST_SHARED:
        yield f"{budget.shared} bytes of shared memory are stated; {MOST_SHARED} is the most that every launch may have"
    if resources.static_shared > budget.shared:
        yield f"{resources.static_shared} bytes of static shared memory, but the comment states {budget.shared} in all"
    elif dynamic and resources.static_shared == budget.shared:
        yield "uses dynamic shared memory, which its comment does not state: Shared memory: 1024 bytes"


def audit(architecture: int, resources: Resources, budget: Budget, dynamic: bool) -> Iterator[str]:
    """Every way in which a kernel breaks its budget. ``dynamic``: it uses dynamic shared memory."""
    yield from block_size(resources, budget)
    yield from shared_memory(resources, budget, dynamic)
    if resources.local:
        yield f"{resources.local} bytes of local memory: registers spill, or an array is indexed at run time"
    if resources.registers > budget.registers:
        yield f"{resources.registers} registers, budget {budget.registers}"
    block = budget.block or resources.launch_bound
    if block is not None:
        reached = 100 * occupancy(architecture, resources.registers, block, budget.shared)
        if int(reached) < budget.occupancy:
            yield f"occupancy {reached:.0f} %, stated {budget.occupancy} % (blocks of {block} threads)"


def entries(ptx: bytes) -> dict[str, str]:
    """The kernels of a PTX file: name and text."""
    parts = re.split(r"^\.visible \.entry (\w+)", ptx.decode(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def uses_dynamic_shared(ptx: bytes) -> set[str]:
    """The kernels that name an array of shared memory without a size."""
    arrays = re.findall(r"^\.extern \.shared .*?(\w+)\[\];", ptx.decode(), re.MULTILINE)
    return {name for name, text in entries(ptx).items() if any(array in text for array in arrays)}


def audit_file(compiler: Nvrtc, source: Path, architecture: int) -> list[str]:
    """The complaints about all kernels of a file, each with file, kernel and architecture."""
    code = compiler.build(source, architecture)
    dynamic = uses_dynamic_shared(code.ptx)
    complaints = []
    for kernel, resources in sorted(read_resources(code.cubin).items()):
        try:
            found = list(audit(architecture, resources, read_budget(source, kernel), kernel in dynamic))
        except BudgetError as error:
            complaints.append(str(error))
        else:
            complaints += [f"{source.name}: {kernel} on sm_{architecture}: {text}" for text in found]
    return complaints
