"""Bugs planted in the kernels of kernels/cuda themselves, one at a time: what is changed, and what must find it.

``found``: a kind of SimtError, or ``wrong``, an answer that is not the CPU's; in the build that is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CUDA = Path(__file__).resolve().parents[2] / "kernels" / "cuda"


@dataclass(frozen=True)
class Mutant:
    """``old`` stands once in the file, and becomes ``new``; ``case`` is a case of test_mutants.py."""

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
        "if (atomicSub(a.left, 1) == 1) *a.last_pass = number;",
        "if (--*a.left == 0) *a.last_pass = number;",
        "proofs",
        "tsan",
        "race",
    ),
    Mutant(
        "a try ends before all threads have read whose turn it is",
        "ppr_topk_f32.cu",
        "    __syncthreads();  // all have read whose turn it is, which the end of a try changes\n",
        "",
        "tries",
        "tsan",
        "race",
    ),
    Mutant(
        "a block says that it has come before its sums are there",
        "grid_join.h",
        "    if (threadIdx.x < L) put_column<L>(room, blockIdx.x, mine);\n    if (!is_last_block(room.arrived + 1 + group, "
        "static_cast<unsigned>(members), &shared->is_last)) return false;\n",
        "    const bool is_last = is_last_block(room.arrived + 1 + group, static_cast<unsigned>(members), "
        "&shared->is_last);\n"
        "    if (threadIdx.x < L) put_column<L>(room, blockIdx.x, mine);\n    if (!is_last) return false;\n",
        "proofs",
        "tsan",
        "race",
    ),
    Mutant(
        "warps mark rows that a pass makes nonzero",
        "ppr_f32.cu",
        "!= 0.0f) atomicOr(reached, 1ull << (row & 63));",
        "!= 0.0f) *reached |= 1ull << (row & 63);",
        "proofs",
        "tsan",
        "race",
    ),
    Mutant(
        "the rows that a pass makes nonzero are written before all are marked",
        "ppr_f32.cu",
        "    __syncthreads();\n    if (threadIdx.x == 0) a.reached[blockIdx.x] = *reached;\n",
        "    if (threadIdx.x == 0) a.reached[blockIdx.x] = *reached;\n",
        "proofs",
        "tsan",
        "race",
    ),
    Mutant(
        "the second pass does not read the first one's state of rows that restart",
        "ppr_f32.cu",
        "const float before = has_before ? step.next[at] : 0.0f;",
        "const float before = 0.0f;",
        "proofs",
        "plain",
        "wrong",
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
        "a step of a product begins before its queries are there",
        "dense_product.h",
        "depth += PRODUCT_DEPTH) {\n            __syncthreads();\n            read_rows",
        "depth += PRODUCT_DEPTH) {\n            read_rows",
        "halves",
        "tsan",
        "race",
    ),
    Mutant(
        "the next queries of a product take the place of those in use",
        "dense_product.h",
        "            buffer = 1 - buffer;\n",
        "",
        "halves",
        "tsan",
        "race",
    ),
    Mutant(
        "a step of a product is loaded while the one before is read",
        "dense_product.h",
        "            add_products(shared, row_lane, query_lane, sums);\n            __syncthreads();\n",
        "            add_products(shared, row_lane, query_lane, sums);\n",
        "wide",
        "tsan",
        "race",
    ),
    Mutant(
        "a pass begins before the last one has ended",
        "ppr_f32.cu",
        "        if (step.number > t.step.number) grid_barrier(a.barrier);\n",
        "",
        "walks",
        "tsan",
        "race",
    ),
    Mutant(
        "a pass begins before the sums of segments are there",
        "ppr_f32.cu",
        "current, at, t.partial);\n            grid_barrier(a.barrier);\n",
        "current, at, t.partial);\n",
        "walks",
        "tsan",
        "race",
    ),
    Mutant(
        "a pass reads sums of segments that are not there, in the order of blocks",
        "ppr_f32.cu",
        "current, at, t.partial);\n            grid_barrier(a.barrier);\n",
        "current, at, t.partial);\n",
        "walks",
        "plain",
        "wrong",
    ),
    # ---- Bounds of arrays
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
    Mutant(
        "a product reads a query too many",
        "dense_product.h",
        "query < part.num_queries && at + j < part.dim ?",
        "query <= part.num_queries && at + j < part.dim ?",
        "halves",
        "asan",
        "address",
    ),
    Mutant(
        "a product reads beyond a row",
        "dense_product.h",
        "at + i < dim ?",
        "at + i <= dim ?",
        "halves",
        "asan",
        "address",
    ),
    Mutant(
        "a product reads a row too many",
        "dense_product.h",
        "first + 8 * j : part.num_rows - 1;",
        "first + 8 * j : part.num_rows;",
        "halves",
        "asan",
        "address",
    ),
    Mutant(
        "a product reads eight numbers of rows that are not aligned",
        "dense_product.h",
        "if (dim % 8 == 0)",
        "if (dim % 4 == 0)",
        "fours",
        "asan",
        "undefined",
    ),
    Mutant(
        "a product in float32 reads a query too many",
        "dense_product.h",
        "const bool is_inside = line < count &&",
        "const bool is_inside = line <= count &&",
        "wide",
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
        "ppr_bound(residual, known.slack[query], known.missed[query], d)",
        "ppr_bound(residual, known.slack[query], 0.0, d)",
        "proofs",
        "plain",
        "wrong",
    ),
    # ---- Products of 16-bit rows
    Mutant(
        "low parts of queries are left out",
        "dense_product.h",
        "low |= static_cast<unsigned>(Row::narrow(scaled - Row::widen(rounded))) << (16 * j);",
        "low |= 0u;",
        "parts",
        "plain",
        "wrong",
    ),
    Mutant(
        "low parts are those of the query, not of what is left",
        "dense_product.h",
        "Row::narrow(scaled - Row::widen(rounded))",
        "Row::narrow(scaled)",
        "units",
        "plain",
        "wrong",
    ),
    Mutant(
        "a query beyond the largest float16 number",
        "dense_product.h",
        "bits_to_float((268u -",
        "bits_to_float((275u -",
        "units",
        "plain",
        "wrong",
    ),
    Mutant(
        "the parts of a matrix unit's rows in another order",
        "dense_product.h",
        "{top.x, bottom.x, top.y, bottom.y}",
        "{top.x, top.y, bottom.x, bottom.y}",
        "units",
        "plain",
        "wrong",
    ),
    Mutant(
        "depths of rows that are not those of queries",
        "dense_product.h",
        "{top.z, bottom.z, top.w, bottom.w}",
        "{top.w, bottom.w, top.z, bottom.z}",
        "units",
        "plain",
        "wrong",
    ),
    Mutant(
        "sums of a matrix unit at another query",
        "dense_product.h",
        "const int query = 8 * tile + 2 * member + i % 2,",
        "const int query = 8 * tile + 2 * (i % 2) + member,",
        "units",
        "plain",
        "wrong",
    ),
    Mutant(
        "sums of a matrix unit at another row",
        "dense_product.h",
        "row = first_row + i / 2 * 8;",
        "row = first_row + i % 2 * 8;",
        "units",
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
