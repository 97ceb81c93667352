"""What is asked of countries, regions, time zones and cities."""

from __future__ import annotations

from collections.abc import Set

from .chains import QuestionType, Tail, Topic
from .records import City, Country, Region, World
from .walks import (
    city_to_country,
    city_to_near,
    city_to_region,
    city_to_zone,
    country_itself,
    county_to_state,
    region_to_country,
    region_to_parent,
)


def _capital(world: World, country: Country) -> Tail:
    return ((f"country/{country.code}",), country.capital_name) if country.capital_name else None


def _currency(world: World, country: Country) -> Tail:
    if not country.currency:
        return None
    return (f"country/{country.code}/currency",), world.currencies[country.currency].name


def _language(world: World, country: Country) -> Tail:
    if len(country.languages) != 1:
        return None
    return (f"country/{country.code}/languages",), world.languages[country.languages[0]].name


def _neighbour(world: World, country: Country) -> Tail:
    if len(country.neighbours) != 1:
        return None
    return (f"country/{country.code}/borders",), world.countries[country.neighbours[0]].name


def _calling_code(world: World, country: Country) -> Tail:
    return ((f"country/{country.code}/connections",), f"+{country.calling_code}") if country.calling_code else None


def _domain(world: World, country: Country) -> Tail:
    return ((f"country/{country.code}/connections",), country.domain) if country.domain else None


def _currency_number(world: World, country: Country) -> Tail:
    if not country.currency:
        return None
    hops = (f"country/{country.code}/currency", f"currency/{country.currency}")
    return hops, world.currencies[country.currency].number


def _language_code(world: World, country: Country) -> Tail:
    if len(country.languages) != 1:
        return None
    code = country.languages[0]
    return (f"country/{country.code}/languages", f"language/{code}"), world.languages[code].three_letters


def _capital_zone(world: World, country: Country) -> Tail:
    if not country.capital:
        return None
    return (f"country/{country.code}", f"city/{country.capital}"), world.cities[country.capital].timezone


def _capital_people(world: World, country: Country) -> Tail:
    if not country.capital:
        return None
    return (f"country/{country.code}", f"city/{country.capital}"), f"{world.cities[country.capital].population:,}"


def _neighbour_currency(world: World, country: Country) -> Tail:
    found = _neighbour(world, country) and _currency(world, world.countries[country.neighbours[0]])
    return ((f"country/{country.code}/borders", *found[0]), found[1]) if found else None


def _country(world: World, region: Region) -> Tail:
    return (f"region/{region.code}",), world.countries[region.country].name


def _city(world: World, region: Region) -> Tail:
    city = world.largest_in_region.get(region.code)
    return ((f"region/{region.code}",), city.name) if city else None


def _city_people(world: World, region: Region) -> Tail:
    city = world.largest_in_region.get(region.code)
    return ((f"region/{region.code}", f"city/{city.id}"), f"{city.population:,}") if city else None


def _city_zone(world: World, region: Region) -> Tail:
    city = world.largest_in_region.get(region.code)
    return ((f"region/{region.code}", f"city/{city.id}"), city.timezone) if city else None


def _zone_city(world: World, city: City) -> Tail:
    return (f"zone/{city.timezone}",), world.largest_in_zone[city.timezone].name


def _zone_people(world: World, city: City) -> Tail:
    largest = world.largest_in_zone[city.timezone]
    return (f"zone/{city.timezone}", f"city/{largest.id}"), f"{largest.population:,}"


def _zone_country(world: World, city: City) -> Tail:
    largest = world.largest_in_zone[city.timezone]
    if world.region_of(largest):
        return None
    return (f"zone/{city.timezone}", f"city/{largest.id}"), world.countries[largest.country].name


def _people(world: World, city: City) -> Tail:
    return (f"city/{city.id}",), f"{city.population:,}"


def _zone(world: World, city: City) -> Tail:
    return (f"city/{city.id}",), city.timezone


COUNTRY = Topic[Country](
    starts={
        "city": ("the country where {} is", city_to_country),
        "region": ("the country that {} is a part of", region_to_country),
        "country": ("{}", country_itself),
    },
    asks={
        "capital": ("What is the capital of {}?", _capital),
        "currency": ("What currency is used in {}?", _currency),
        "language": ("Which language is spoken in {}?", _language),
        "neighbour": ("Which country is the only neighbour by land of {}?", _neighbour),
        "calling-code": ("What is the calling code of {}?", _calling_code),
        "domain": ("What is the internet domain of {}?", _domain),
        "currency-number": ("What is the ISO 4217 number of the currency used in {}?", _currency_number),
        "language-code": ("What is the three-letter code of the language spoken in {}?", _language_code),
        "capital-zone": ("In which time zone is the capital of {}?", _capital_zone),
        "capital-people": ("What is the population of the capital of {}?", _capital_people),
        "neighbour-currency": ("What currency is used in the only neighbour by land of {}?", _neighbour_currency),
    },
)
REGION = Topic[Region](
    starts={
        "place": ("the state or canton where {} is", city_to_region),
        "county": ("the state that {} belongs to", county_to_state),
        "part": ("the larger region that {} belongs to", region_to_parent),
    },
    asks={
        "country": ("In which country is {}?", _country),
        "city": ("What is the largest city of {}?", _city),
        "city-people": ("What is the population of the largest city of {}?", _city_people),
        "city-zone": ("In which time zone is the largest city of {}?", _city_zone),
    },
)
ZONE = Topic[City](
    starts={"zone": ("the time zone of {}", city_to_zone)},
    asks={
        "city": ("What is the largest city in {}?", _zone_city),
        "people": ("What is the population of the largest city in {}?", _zone_people),
        "country": ("In which country is the largest city in {}?", _zone_country),
    },
)
NEAR = Topic[City](
    starts={"near": ("the city of more than half a million people that is nearest to {}", city_to_near)},
    asks={
        "people": ("What is the population of {}?", _people),
        "zone": ("In which time zone is {}?", _zone),
    },
)


def question_types(world: World, known: Set[str]) -> list[QuestionType]:
    """All of them, in a fixed order."""
    topics = (COUNTRY.types(world, known), REGION.types(world, known), ZONE.types(world, known))
    return [kind for topic in (*topics, NEAR.types(world, known)) for kind in topic]
