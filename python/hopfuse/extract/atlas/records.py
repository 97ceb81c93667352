"""The facts in one shape, keyed by the sources' own codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Neighbour(NamedTuple):
    """The nearest other city with more than half a million inhabitants."""

    city: str
    km: int
    direction: str


@dataclass(frozen=True, slots=True)
class City:
    """A populated place; ``region`` is its ISO 3166-2 code where known."""

    id: str
    name: str
    country: str
    region: str | None
    timezone: str
    population: int
    alternates: tuple[str, ...]
    near: Neighbour | None


@dataclass(frozen=True, slots=True)
class Country:
    """A country or territory; ``capital`` is the id of a city, or None where the cities lack it."""

    code: str
    name: str
    alternates: tuple[str, ...]
    continent: str
    capital_name: str
    capital: str | None
    area: int
    currency: str | None
    calling_code: str
    domain: str
    languages: tuple[str, ...]
    neighbours: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """An ISO 3166-2 subdivision."""

    code: str
    name: str
    kind: str
    country: str
    parent: str | None


@dataclass(frozen=True, slots=True)
class County:
    """A county of the United States, or its equivalent."""

    fips: str
    name: str
    state: str


@dataclass(frozen=True, slots=True)
class Currency:
    """ISO 4217."""

    name: str
    letters: str
    number: str


@dataclass(frozen=True, slots=True)
class Language:
    """ISO 639."""

    name: str
    three_letters: str
    two_letters: str | None


@dataclass(frozen=True, slots=True)
class World:
    """Everything, in sorted order of the keys."""

    cities: dict[str, City]
    countries: dict[str, Country]
    continents: dict[str, str]
    regions: dict[str, Region]
    counties: dict[str, County]
    currencies: dict[str, Currency]
    languages: dict[str, Language]
    largest_in_zone: dict[str, City]
    largest_in_region: dict[str, City]

    def region_of(self, city: City) -> Region | None:
        """The region that the city's passage names instead of the country."""
        return self.regions.get(city.region) if city.region else None
