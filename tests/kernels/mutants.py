"""Bugs planted in the kernels of kernels/cuda themselves, one at a time: what is changed, and what must find it.

``found``: a kind of SimtError, or ``wrong``, an answer that is not the CPU's; in the build that is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CUDA = Path(__file__).resolve().parents[2] / "kernels" / "cuda"


@dataclass(frozen=True)
class Mutant:
    """``old`` stands once in the file, and becomes ``new``; ``case`` is a function of test_simt_mutants.py."""

    name: str
    file: str
    old: str
    new: str
    case: str
    build: str
    found: str

    def text(self) -> str:
        text = (CUDA / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} has {self.old!r} {text.count(self.old)} times; plant it anew")
        return text.replace(self.old, self.new)


MUTANTS = [
    # ---- Races
    Mutant(
        "two blocks count lanes that end",
        "ppr_topk_f32.cu",
        "if (atomicSub(a.left, 1) == 1) *a.last_pass = a.number;",
        "if (--*a.left == 0) *a.last_pass = a.number;",
        "proofs",
        "tsan",
        "race",
    ),
    Mutant(
        "a block says that it has come before its sums are there",
        "grid_join.h",
        "    if (threadIdx.x < L) room.put<L>(blockIdx.x, mine);\n    if (!is_last_block(room.arrived + 1 + group, "
        "static_cast<unsigned>(members), &shared->is_last)) return false;\n",
        "    const bool is_last = is_last_block(room.arrived + 1 + group, static_cast<unsigned>(members), "
        "&shared->is_last);\n"
        "    if (threadIdx.x < L) room.put<L>(blockIdx.x, mine);\n    if (!is_last) return false;\n",
        "proofs",
        "tsan",
        "race",
    ),
    Mutant(
        "warps mark rows that restart",
        "ppr_restart_f32.cu",
        "atomicOr(reinterpret_cast<unsigned long long*>(r.words) + (r.node[i] >> 6), 1ull << (r.node[i] & 63));",
        "r.words[r.node[i] >> 6] |= 1ull << (r.node[i] & 63);",
        "proofs",
        "tsan",
        "race",
    ),
    Mutant(
        "blocks count a subgraph's nodes",
        "ppr_restart_f32.cu",
        "atomicAdd(reinterpret_cast<unsigned long long*>(joined) + threadIdx.x, "
        "static_cast<unsigned long long>(nodes));",
        "joined[threadIdx.x] += static_cast<unsigned long long>(nodes);",
        "masks",
        "tsan",
        "race",
    ),
    Mutant(
        "the count of waiting keys is read after it is cleared",
        "topk_keys.h",
        "        const int waiting = *num_waiting;\n        __syncthreads();\n",
        "        const int waiting = *num_waiting;\n",
        "dense",
        "tsan",
        "race",
    ),
    Mutant(
        "a step of a product is loaded while the one before is read",
        "dense_topk.cu",
        "        }\n        __syncthreads();\n    }\n",
        "        }\n    }\n",
        "halves",
        "tsan",
        "race",
    ),
    # ---- Bounds of arrays
    Mutant(
        "a product reads a query too many",
        "dense_topk.cu",
        "const bool is_inside = first + line < count && depth + column < dim;",
        "const bool is_inside = first + line <= count && depth + column < dim;",
        "halves",
        "asan",
        "address",
    ),
    Mutant(
        "a query's scores in pairs, where rows are odd",
        "topk.cu",
        "return make_topk_key(scores[j] + error, first_row + j);",
        "return make_topk_key((j % 2 ? reinterpret_cast<const float2*>(scores + j - 1)->y\n"
        "                                            : reinterpret_cast<const float2*>(scores + j)->x) + error,\n"
        "                                 first_row + j);",
        "dense",
        "asan",
        "undefined",
    ),
    Mutant(
        "a tile's last row",
        "ppr_walk.h",
        "last(tile * PPR_TILE + PPR_TILE < num_nodes ? tile * PPR_TILE + PPR_TILE : num_nodes) {}",
        "last(tile * PPR_TILE + PPR_TILE) {}",
        "proofs",
        "asan",
        "address",
    ),
    Mutant(
        "a split reads one key too many",
        "topk_keys.h",
        "keys[item] = j < end ?",
        "keys[item] = j <= end ?",
        "dense",
        "asan",
        "address",
    ),
    Mutant(
        "a list is filled past its end",
        "fuse_f32.cu",
        "for (int64_t i = threadIdx.x; i < width; i += blockDim.x)",
        "for (int64_t i = threadIdx.x; i <= width; i += blockDim.x)",
        "fusion",
        "asan",
        "address",
    ),
    # ---- Numeric bounds
    Mutant(
        "a bound below the score that it is for",
        "topk.cu",
        "scores[j] / norms + error / norms",
        "scores[j] / norms",
        "moved",
        "plain",
        "wrong",
    ),
    Mutant(
        "a bound without what products may lose below the least float32",
        "topk.cu",
        "fmaf(bound.slack * (query_norm + bound.norm_floor), norm + bound.norm_floor, bound.underflow);",
        "bound.slack * query_norm * norm;",
        "moved",
        "plain",
        "wrong",
    ),
    Mutant(
        "a list that holds no more counts as proven",
        "topk.cu",
        "const bool proven = last == 0 ||",
        "const bool proven = last != 1 ||",
        "moved",
        "plain",
        "wrong",
    ),
    Mutant(
        "what sums may miss is left out of a bound",
        "ppr_scales.h",
        "ppr_bound(residual, slack[query], missed[query], d)",
        "ppr_bound(residual, slack[query], 0.0, d)",
        "proofs",
        "plain",
        "wrong",
    ),
]

#: The same of index widths, which no emulator can see: PTX shows them.
INDEX_MUTANTS = [
    Mutant(
        "a state's index in 32 bits",
        "ppr_walk.h",
        "const int64_t u = rows.indices[e];",
        "const int32_t u = rows.indices[e];",
        "ppr_f32.cu",
        "ptx",
        "32 bits",
    ),
    Mutant(
        "a score's index in 32 bits",
        "ppr_certify_f32.cu",
        "int64_t e, int64_t u, double factor,",
        "int64_t e, int32_t u, double factor,",
        "ppr_certify_f32.cu",
        "ptx",
        "32 bits",
    ),
    Mutant(
        "a mask's index in 32 bits",
        "ppr_restart_f32.cu",
        "t.shares[static_cast<int64_t>(t.in_indices[e]) * L + lane]",
        "t.shares[static_cast<uint32_t>(t.in_indices[e]) * L + lane]",
        "ppr_restart_f32.cu",
        "ptx",
        "32 bits",
    ),
    Mutant(
        "the place of a score in 32 bits",
        "ppr_certify_f32.cu",
        "x[static_cast<int64_t>(internal_of[at % num_nodes]) * L + at / num_nodes]",
        "x[internal_of[at % num_nodes] * L + at / num_nodes]",
        "ppr_certify_f32.cu",
        "ptx",
        "32 bits",
    ),
]
