"""Ways from an entity that a question names to the place that it asks about."""

from __future__ import annotations

from collections.abc import Iterator

from .chains import Walk
from .records import City, Country, Region, World


def city_to_country(world: World) -> Iterator[Walk[Country]]:
    """Cities whose passage names their country."""
    for city in world.cities.values():
        if not world.region_of(city):
            yield Walk(f"city/{city.id}", (f"city/{city.id}",), world.countries[city.country], city.country)


def region_to_country(world: World) -> Iterator[Walk[Country]]:
    """Parts of regions: over the region to the country."""
    for region in world.regions.values():
        if region.parent:
            hops = (f"region/{region.code}", f"region/{region.parent}")
            yield Walk(hops[0], hops, world.countries[region.country], region.country)


def country_itself(world: World) -> Iterator[Walk[Country]]:
    """Countries, without a step."""
    for country in world.countries.values():
        yield Walk(f"country/{country.code}", (), country, country.code)


def city_to_region(world: World) -> Iterator[Walk[Region]]:
    """Cities whose passage names their region."""
    for city in world.cities.values():
        if region := world.region_of(city):
            yield Walk(f"city/{city.id}", (f"city/{city.id}",), region, region.code)


def county_to_state(world: World) -> Iterator[Walk[Region]]:
    """Counties."""
    for county in world.counties.values():
        yield Walk(f"county/{county.fips}", (f"county/{county.fips}",), world.regions[county.state], county.state)


def region_to_parent(world: World) -> Iterator[Walk[Region]]:
    """Parts of regions."""
    for region in world.regions.values():
        if region.parent:
            hops = (f"region/{region.code}",)
            yield Walk(hops[0], hops, world.regions[region.parent], region.parent)


def city_to_zone(world: World) -> Iterator[Walk[City]]:
    """Cities, with their time zone."""
    for city in world.cities.values():
        yield Walk(f"city/{city.id}", (f"city/{city.id}",), city, city.timezone)


def city_to_near(world: World) -> Iterator[Walk[City]]:
    """Cities, to the big city nearest to them."""
    for city in world.cities.values():
        if city.near:
            yield Walk(f"city/{city.id}", (f"city/{city.id}",), world.cities[city.near.city], city.near.city)
