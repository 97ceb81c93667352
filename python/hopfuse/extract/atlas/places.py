"""Passages about cities, regions, counties and time zones."""

from __future__ import annotations

from collections import Counter

from .draft import Draft
from .names import with_article
from .nearest import BIG
from .records import City, Region, World


def describe_places(draft: Draft, world: World) -> None:
    """One passage per place and time zone."""
    for city in world.cities.values():
        _city(draft, world, city)
    _regions(draft, world)
    _counties(draft, world)
    _time_zones(draft, world)


def _city(draft: Draft, world: World, city: City) -> None:
    key, region = f"city/{city.id}", world.region_of(city)
    inside = f"region/{region.code}" if region else f"country/{city.country}"
    place = region.name if region else with_article(world.countries[city.country].name)
    zone = f"zone/{city.timezone}"
    text = f"{city.name} is a place in {place} with a population of {city.population:,}."
    text += f" Its clocks follow the time zone {city.timezone}."
    big = None
    if city.near:
        big, big_name = f"city/{city.near.city}", world.cities[city.near.city].name
        other = "other " if city.population > BIG else ""
        text += f" The nearest {other}city of more than half a million people is {big_name},"
        text += f" {city.near.km} km to the {city.near.direction}."
    draft.passage(key, draft.names.get(key, ""), text, key, inside, zone, big)
    draft.fact(key, "in", inside)
    draft.fact(key, "zone", zone)
    draft.fact(key, "near", big)


def _regions(draft: Draft, world: World) -> None:
    parts = Counter(region.parent for region in world.regions.values())
    counties = Counter(county.state for county in world.counties.values())
    for region in world.regions.values():
        key = f"region/{region.code}"
        inside = f"region/{region.parent}" if region.parent else f"country/{region.country}"
        city = world.largest_in_region.get(region.code)
        text = _region_text(world, region, parts[region.code], counties[region.code], city)
        biggest = f"city/{city.id}" if city else None
        draft.passage(key, draft.names.get(key, ""), text, key, inside, biggest)
        draft.fact(key, "in", inside)
        draft.fact(key, "largest city", biggest)


def _region_text(world: World, region: Region, parts: int, counties: int, city: City | None) -> str:
    parent = world.regions.get(region.parent or "")
    place = parent.name if parent else with_article(world.countries[region.country].name)
    article = "an" if region.kind[0] in "aeiou" and not region.kind.startswith("uni") else "a"
    text = f"{region.name} is {article} {region.kind} of {place}."
    if parts:
        text += f" It is divided into {parts} parts."
    if counties:
        text += f" It has {counties} counties or their equivalents."
    if city:
        text += f" The largest city of {region.name} is {city.name}."
    return text


def _counties(draft: Draft, world: World) -> None:
    for county in world.counties.values():
        key, state = f"county/{county.fips}", f"region/{county.state}"
        text = f"{county.name} belongs to {world.regions[county.state].name}. Its federal code is {county.fips}."
        draft.passage(key, draft.names.get(key, ""), text, key, state)
        draft.fact(key, "in", state)


def _time_zones(draft: Draft, world: World) -> None:
    count = Counter(city.timezone for city in world.cities.values())
    for zone, city in sorted(world.largest_in_zone.items()):
        key, biggest = f"zone/{zone}", f"city/{city.id}"
        places = f"{count[zone]:,} places" if count[zone] > 1 else "one place"
        text = f"{places[0].upper()}{places[1:]} of the atlas keep the time zone {zone}."
        text += f" The largest city in it is {city.name}."
        draft.passage(key, zone, text, key, biggest)
        draft.fact(key, "largest city", biggest)
