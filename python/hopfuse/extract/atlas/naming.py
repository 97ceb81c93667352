"""Giving every entity a name of its own, and some of them alternate ones."""

from __future__ import annotations

from collections import Counter

from .draft import Draft
from .names import alternates, fold, reads_as_name
from .records import City, World

ALTERNATES = 2


def name_entities(draft: Draft, world: World) -> None:
    """Well-known things first: they keep their plain names; later ones are qualified or left out."""
    for code, name in world.continents.items():
        draft.entity(f"continent/{code}", name)
    for country in world.countries.values():
        draft.entity(f"country/{country.code}", country.name, f"{country.name} (country)")
    for code, currency in world.currencies.items():
        draft.entity(f"currency/{code}", currency.name, f"{currency.name} ({code})")
    for code, language in world.languages.items():
        draft.entity(f"language/{code}", language.name, f"{language.name} (language)", f"{language.name} ({code})")
    for city in sorted(world.cities.values(), key=lambda c: (-c.population, c.id)):
        draft.entity(f"city/{city.id}", city.name, f"{city.name}, {_place(world, city)}")
    for region in world.regions.values():
        country_name = world.countries[region.country].name
        draft.entity(f"region/{region.code}", region.name, f"{region.name} ({region.kind}, {country_name})")
    for county in world.counties.values():
        draft.entity(f"county/{county.fips}", county.name, f"{county.name}, {world.regions[county.state].name}")
    for zone in sorted({c.timezone for c in world.cities.values()}):
        draft.entity(f"zone/{zone}", zone)


def add_alternates(draft: Draft, world: World) -> None:
    """Alternate names for countries and cities, where they are nothing else's name."""
    sources = {f"city/{c.id}": c.alternates for c in world.cities.values()}
    sources |= {f"country/{c.code}": c.alternates for c in world.countries.values()}
    known = {
        key: {fold(name): name for name in sorted(names) if reads_as_name(name)}
        for key, names in sources.items()
        if key in draft.names
    }
    plain = frozenset(map(fold, draft.plain.values()))
    claims = Counter(folded for names in known.values() for folded in names)
    taken = plain | {name for name, count in claims.items() if count > 1}
    for key, names in known.items():
        draft.alternates[key] = alternates(draft.plain[key], names.values(), taken, ALTERNATES)


def _place(world: World, city: City) -> str:
    region = world.region_of(city)
    return region.name if region else world.countries[city.country].name
