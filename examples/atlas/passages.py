"""Short passages about every place, and the facts that they state."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Set
from typing import NamedTuple

from hopfuse.extract import FUNCTION_WORDS

from .names import alternates, fold, reads_as_name, with_article
from .places import LARGE, City, Country, Places, Region

ALTERNATES = 2  # alternate names of a place that are entities of their own, at most
KNOWN = 100_000  # inhabitants of a city whose other alternate names are its aliases
_PLAIN_WORD = re.compile(r"\b[a-z]+\b")


class Passage(NamedTuple):
    """A text, the entity that it is about, and the entities that it mentions (by key)."""

    title: str
    text: str
    about: str
    mentions: tuple[str, ...]


class Collection:
    """Entities, passages and facts by readable keys.

    ``names`` are distinct names of entities, ``plain`` their names in texts, which several may share, ``alternates``
    other names of countries and cities that are entities too, ``others`` other names and codes that are not; a fact is
    (subject, relation, object).
    """

    def __init__(self, places: Places) -> None:
        self.names: dict[str, str] = {}
        self.plain: dict[str, str] = {}
        self.alternates: dict[str, tuple[str, ...]] = {}
        self.others: dict[str, tuple[str, ...]] = {}
        self.passages: dict[str, Passage] = {}
        self.facts: list[tuple[str, str, str]] = []
        self._used: set[str] = set()
        self._name_entities(places)
        self._add_alternates(places)
        for country in places.countries.values():
            self._describe_country(places, country)
        for code, currency in places.currencies.items():
            text = f"The {currency.name} has the letter code {code} and the number {currency.number} in ISO 4217."
            self._describe(f"currency/{code}", text)
        for code, language in places.languages.items():
            text = f"{language.name} is a language with the three-letter code {language.three_letters} in ISO 639."
            if language.two_letters:
                text += f" Its two-letter code is {language.two_letters}."
            self._describe(f"language/{code}", text)
        for city in places.cities.values():
            self._describe_city(places, city)
        self._describe_regions(places)
        self._describe_zones(places)
        self._add_others(places)

    def _name_entities(self, places: Places) -> None:
        """Name well-known entities first, which keep their plain names; later ones are qualified or left out.

        Regions and counties of one name are all qualified: none is better known.
        """
        same = Counter(fold(place.name) for place in (*places.regions.values(), *places.counties.values()))
        for code, name in places.continents.items():
            self._name(f"continent/{code}", name)
        for country in places.countries.values():
            self._name(f"country/{country.code}", country.name, f"{country.name} (country)")
        for code, currency in places.currencies.items():
            self._name(f"currency/{code}", currency.name, f"{currency.name} ({code})")
        for code, language in places.languages.items():
            self._name(f"language/{code}", language.name, f"{language.name} (language)", f"{language.name} ({code})")
        for city in sorted(places.cities.values(), key=lambda c: (-c.population, c.id)):
            inside = places.region_of(city) or places.countries[city.country]
            self._name(f"city/{city.id}", city.name, f"{city.name}, {inside.name}")
        for region in places.regions.values():
            country_name = places.countries[region.country].name
            qualified = f"{region.name} ({region.kind}, {country_name})"
            self._name(f"region/{region.code}", region.name, qualified, alone=same[fold(region.name)] == 1)
        for county in places.counties.values():
            qualified = f"{county.name}, {places.regions[county.state].name}"
            self._name(f"county/{county.fips}", county.name, qualified, alone=same[fold(county.name)] == 1)
        for zone in sorted(places.largest_in_zone):
            self._name(f"zone/{zone}", zone)

    def _name(self, key: str, plain: str, *qualified: str, alone: bool = True) -> None:
        """Add an entity under the first of its names that is free, if any; the plain one only if it is alone."""
        free = next((name for name in (*[plain] * alone, *qualified) if fold(name) not in self._used), None)
        if free is not None:
            self._used.add(fold(free))
            self.names[key], self.plain[key] = free, plain

    def _add_alternates(self, places: Places) -> None:
        """Add alternate names of countries and cities that name nothing else."""
        sources = {f"city/{c.id}": c.alternates for c in places.cities.values()}
        sources |= {f"country/{c.code}": c.alternates for c in places.countries.values()}
        known = {
            key: {fold(name): name for name in sorted(names) if reads_as_name(name)}
            for key, names in sources.items()
            if key in self.names
        }
        claims = Counter(folded for names in known.values() for folded in names)
        taken = {fold(name) for name in self.plain.values()} | {name for name, count in claims.items() if count > 1}
        for key, names in known.items():
            self.alternates[key] = alternates(self.plain[key], names.values(), taken, ALTERNATES)

    def _add_others(self, places: Places) -> None:
        """Add what people in other languages call places, and their codes.

        What names something else, a function word, and a plain word of the passages are left out; but a city may be
        called as a region, a county or a language is, such as Naples, which is Napoli, as is its province.
        """
        words = set(FUNCTION_WORDS)
        words |= {word for passage in self.passages.values() for word in _PLAIN_WORD.findall(passage.text)}
        words |= {fold(name) for names in self.alternates.values() for name in names}
        lesser = ("region/", "county/", "language/")
        better = words | {fold(name) for key, name in self.plain.items() if not key.startswith(lesser)}
        taken = better | {fold(name) for name in self.plain.values()}
        for city in places.cities.values():
            if city.population >= KNOWN:
                short = {name for name in city.alternates if len(name) == 4 and fold(name) not in fold(city.name)}
                self._add_names(f"city/{city.id}", city.alternates, better, short if city.population > LARGE else ())
        for country in places.countries.values():
            self._add_names(f"country/{country.code}", country.others, taken)
        for region in places.regions.values():
            self._add_names(f"region/{region.code}", region.others, taken)
        codes = {f"currency/{code}": [code] for code in places.currencies}
        for c in places.countries.values():
            signs = (c.domain, f"+{c.calling_code}")
            codes[f"country/{c.code}"] = [c.three_letters, *(sign for sign in signs if len(sign) > 1)]
        for key, row in codes.items():
            if key in self.names:
                fit = (code for code in row if not (code.isalpha() and fold(code) in taken))
                self.others[key] = (*self.others.get(key, ()), *fit)

    def _add_names(self, key: str, names: Iterable[str], taken: Set[str], short: Container[str] = ()) -> None:
        """Add names of more than four letters, and some short ones: too many of these are words of English."""
        if key in self.names:
            fit = (name for name in sorted(names) if reads_as_name(name) and (len(name) > 4 or name in short))
            self.others[key] = tuple(name for name in fit if fold(name) not in taken)

    def _describe(
        self, id: str, text: str, *facts: tuple[str, str | None], about: str | None = None, title: str | None = None
    ) -> None:
        """Add a passage and its facts, without entities that were left out."""
        about = about or id
        if about in self.names:
            known = [(relation, o) for relation, o in facts if o and o in self.names and o != about]
            mentions = tuple(dict.fromkeys(o for _, o in known))
            self.passages[id] = Passage(title or self.names[about], text, about, mentions)
            self.facts += [(about, relation, o) for relation, o in known]

    def _describe_country(self, places: Places, country: Country) -> None:
        key, name = f"country/{country.code}", with_article(country.name)
        text = f"The capital of {name} is {country.capital_name}. " if country.capital_name else ""
        text += f"{name[0].upper()}{name[1:]} is in {places.continents[country.continent]}"
        text += f" and covers {country.area:,} km²." if country.area else "."
        capital = f"city/{country.capital}" if country.capital else None
        facts = (("continent", f"continent/{country.continent}"), ("capital", capital))
        self._describe(key, text, *facts, title=country.name)
        if country.currency:
            text = f"The currency used in {name} is the {places.currencies[country.currency].name}."
            fact = ("currency", f"currency/{country.currency}")
            self._describe(f"{key}/currency", text, fact, about=key, title=f"Currency of {name}")
        if country.languages:
            verb = "languages spoken in {} are" if len(country.languages) > 1 else "language spoken in {} is"
            text = f"The {verb.format(name)} {_listed([places.languages[code].name for code in country.languages])}."
            facts = tuple(("language", f"language/{code}") for code in country.languages)
            self._describe(f"{key}/languages", text, *facts, about=key, title=f"Languages of {name}")
        verb = "neighbours of {} by land are" if len(country.neighbours) > 1 else "only neighbour of {} by land is"
        names = _listed([with_article(places.countries[code].name) for code in country.neighbours])
        text = f"The {verb.format(name)} {names}." if names else f"No country borders {name} by land."
        facts = tuple(("border", f"country/{code}") for code in country.neighbours)
        self._describe(f"{key}/borders", text, *facts, about=key, title=f"Borders of {name}")
        code = f"The calling code of {name} is +{country.calling_code}." if country.calling_code else ""
        domain = f"The internet domain of {name} is {country.domain}." if country.domain else ""
        if code or domain:
            title = f"Calling code and internet domain of {name}"
            self._describe(f"{key}/connections", f"{code} {domain}".strip(), about=key, title=title)

    def _describe_city(self, places: Places, city: City) -> None:
        region, country = places.region_of(city), places.countries[city.country]
        inside = f"region/{region.code}" if region else f"country/{city.country}"
        place = region.name if region else with_article(country.name)
        near, distance = city.near
        other = "other " if city.population > LARGE else ""
        text = f"{city.name} is a place in {place} with a population of {city.population:,}."
        text += f" Its clocks follow the time zone {city.timezone}. The nearest {other}city of more than half a million"
        text += f" people is {places.cities[near].name}, {distance}."
        self._describe(
            f"city/{city.id}", text, ("in", inside), ("zone", f"zone/{city.timezone}"), ("near", f"city/{near}")
        )

    def _describe_regions(self, places: Places) -> None:
        parts = Counter(region.parent for region in places.regions.values())
        counties = Counter(county.state for county in places.counties.values())
        for code, region in places.regions.items():
            inside = f"region/{region.parent}" if region.parent else f"country/{region.country}"
            city = places.largest_in_region.get(code)
            text = _region_text(places, region)
            text += f" It is divided into {parts[code]} parts." if parts[code] else ""
            text += f" It has {counties[code]} counties or their equivalents." if counties[code] else ""
            text += f" The largest city of {region.name} is {city.name}." if city else ""
            largest = f"city/{city.id}" if city else None
            self._describe(f"region/{code}", text, ("in", inside), ("largest city", largest))
        for fips, county in places.counties.items():
            text = f"{county.name} belongs to {places.regions[county.state].name}. Its federal code is {fips}."
            self._describe(f"county/{fips}", text, ("in", f"region/{county.state}"))

    def _describe_zones(self, places: Places) -> None:
        count = Counter(city.timezone for city in places.cities.values())
        for zone, city in sorted(places.largest_in_zone.items()):
            kept = f"{count[zone]:,} places" if count[zone] > 1 else "One place"
            text = f"{kept} of the atlas keep the time zone {zone}. The largest city in it is {city.name}."
            self._describe(f"zone/{zone}", text, ("largest city", f"city/{city.id}"))


def _region_text(places: Places, region: Region) -> str:
    parent = places.regions.get(region.parent or "")
    place = parent.name if parent else with_article(places.countries[region.country].name)
    article = "an" if region.kind[0] in "aeiou" and not region.kind.startswith("uni") else "a"
    return f"{region.name} is {article} {region.kind} of {place}."


def _listed(words: list[str]) -> str:
    """Return words as a list in a sentence: "Dutch, French and German"."""
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)
