"""Scaling node weights to the range that walks read; see NODE WEIGHTS in kernels/include/hopfuse/ppr.h."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ..._arrays.convert import to_float64
from ...errors import InputError
from ..faults import no_node_weight
from ..node_weights import NodeWeights, columns_in

if TYPE_CHECKING:
    from ...types import Graph
    from ..cuda import DeviceOps

#: The smallest weight above 0, after scaling.
LEAST_NODE_WEIGHT = _native.PPR_LEAST_WEIGHT


class NodeWeightCall(NamedTuple):
    """Scale a caller's weights, on the host or on a device, to the range that walks read."""

    graph: Graph
    weight: Any  # (B, M) float32, or on the host any real numbers
    node: NDArray[np.int32]  # (M,) distinct internal nodes
    per_type: bool
    allow: NDArray[np.uint8] | None  # (B, N) or (1, N) by internal node, on the host
    lightest: NDArray[np.float64] | None  # (B,) lightest edge that a query can walk; None: no product underflows

    def run_on_host(self) -> NodeWeights:
        """Return the weights, scaled.

        Raises
        ------
        InputError
            A weight that is not finite or below 0, a row without a weight above 0, a product of weights that float32
            cannot hold; the message names the row and the column.
        """
        graph, given, node = self.graph, self.weight, self.node
        is_single = given.dtype == np.float32
        given = np.ascontiguousarray(given if is_single else to_float64(given))
        made = NodeWeights(np.empty(given.shape, np.float32), node, np.empty(given.shape[0], np.float32))
        wrong = _native.read_node_weights(
            given if is_single else None,
            None if is_single else given,
            node,
            columns_in(graph, node).is_weighted,
            _has_entries(graph),
            self.allow,
            made.weight,
            made.other,
        )
        if wrong is None:
            _check_products(self.lightest, made)
            return made
        fault, row, at = wrong
        if fault == _native.NODE_WEIGHT_ALL_ZERO:
            raise no_node_weight(row)
        raise InputError(
            "range",
            f"node_weights[{row}, {at}]",
            "{field} is {given}; weights must be finite and at least 0",
            given=float(given[row, at]),
        )

    def run_on_device(self, device: DeviceOps) -> NodeWeights:
        made = _native.device_order_weights(
            device.queue(),
            device.graph(self.graph, per_type=self.per_type, counts_edges=True),
            weight=self.weight,
            node=self.node,
            allow=self.allow,
            lightest=self.lightest,
        )
        return NodeWeights(made["weight"], self.node, made["other"], on_device=True)


def _check_products(lightest: NDArray[np.float64] | None, weights: NodeWeights) -> None:
    """Raise if a node weight times the lightest edge underflows in float32; a degree may consist of one product."""
    tiny = float(np.finfo(np.float32).tiny)
    if lightest is None:
        return
    for query in np.flatnonzero(lightest * LEAST_NODE_WEIGHT < tiny):
        product = lightest[query] * weights.least(int(query))
        if product < tiny:
            raise InputError(
                "range",
                f"node_weights[{query}]",
                "{field} makes the lightest edge weigh {product:.3g}, which float32 cannot hold; make the least weight "
                "0 or larger, or scale the edges",
                product=product,
            )


def _has_entries(graph: Graph) -> NDArray[np.uint8]:
    """Return whether each internal node has entries, into or out of it."""
    if "has_entries" not in graph.derived:
        has = np.diff(graph.indptr) > 0
        if graph.directed:
            has[graph.indices] = True
        graph.derived["has_entries"] = has.view(np.uint8)
    found: NDArray[np.uint8] = graph.derived["has_entries"]
    return found
