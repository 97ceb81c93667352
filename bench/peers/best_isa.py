"""hopfuse itself on the best instruction set, beside rows of another one (``python -m bench --isa avx2``)."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from ..settings import ISA_VARIABLE
from .resident import Resident


class BestIsa(Resident):
    """A process of the same Python, in which hopfuse chooses the instruction set."""

    title = "hopfuse on the best instruction set"
    remark = "hopfuse itself on the best instruction set, in a process of its own"

    def program(self) -> tuple[str, Mapping[str, str]]:
        return sys.executable, {name: value for name, value in os.environ.items() if name != ISA_VARIABLE}
