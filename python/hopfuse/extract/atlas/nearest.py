"""How far, and in which direction, the nearest big city is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .records import Neighbour

BIG = 500_000
EARTH_RADIUS_KM = 6371.0
_WINDS = ("north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west")
_CHUNK = 4096


def nearest_big(
    ids: Sequence[str], places: Sequence[tuple[float, float]], populations: Sequence[int]
) -> dict[str, Neighbour]:
    """The big neighbour of every place.

    Parameters
    ----------
    ids : sequence of str, length n
    places : sequence of (latitude, longitude), length n
        Degrees.
    populations : sequence of int, length n

    Returns
    -------
    dict of str to Neighbour
        Great-circle distance in whole kilometres (at least 1) and one of eight directions; empty
        where no big city is.

    Examples
    --------
    >>> nearest_big(["a", "b"], [(50.0, 8.0), (52.0, 8.0)], [10, 600_000])
    {'a': Neighbour(city='b', km=222, direction='north')}
    """
    degrees = np.array(places, np.float64).reshape(-1, 2)
    big = np.flatnonzero(np.array(populations) > BIG)
    if not big.size:
        return {}
    points = _unit_vectors(degrees)
    found: dict[str, Neighbour] = {}
    for start in range(0, len(ids), _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, len(ids)))
        cosine = np.einsum("id,jd->ij", points[rows], points[big])
        cosine[rows[:, None] == big] = -2.0
        best = cosine.argmax(axis=1)
        nearest = cosine[np.arange(rows.size), best]
        km = EARTH_RADIUS_KM * np.arccos(np.clip(nearest, -1.0, 1.0))
        wind = _directions(degrees[rows], degrees[big[best]])
        for i, id in enumerate(ids[start : start + _CHUNK]):
            if nearest[i] > -2.0:
                found[id] = Neighbour(ids[int(big[best[i]])], max(1, round(float(km[i]))), _WINDS[int(wind[i])])
    return found


def _unit_vectors(degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    lat, lon = np.radians(degrees).T
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)


def _directions(origin: NDArray[np.float64], goal: NDArray[np.float64]) -> NDArray[np.int64]:
    """Index of the wind that the great circle from origin to goal sets out towards."""
    (lat1, lon1), (lat2, lon2) = np.radians(origin).T, np.radians(goal).T
    east = np.sin(lon2 - lon1) * np.cos(lat2)
    north = np.cos(lat1) * np.sin(lat2) - np.sin(lat1) * np.cos(lat2) * np.cos(lon2 - lon1)
    wind: NDArray[np.int64] = np.rint(np.degrees(np.arctan2(east, north)) / 45.0).astype(np.int64) % 8
    return wind
