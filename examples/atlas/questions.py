"""Questions of two and three hops: a path from a named entity to a place, and an attribute of that place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Set
from hashlib import blake2b
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from .names import contains, fold, with_article
from .passages import Collection
from .places import City, Country, Places, Region

PER_TYPE = 150
PER_PLACE = 12  # paths to a place, at most
ALIAS_SHARE = 3  # one question in so many uses an alternate name, if there is one

COUNTRY = {
    "capital": "What is the capital of {}?",
    "currency": "What currency is used in {}?",
    "language": "Which language is spoken in {}?",
    "neighbour": "Which country is the only neighbour by land of {}?",
    "calling-code": "What is the calling code of {}?",
    "domain": "What is the internet domain of {}?",
    "currency-number": "What is the ISO 4217 number of the currency used in {}?",
    "language-code": "What is the three-letter code of the language spoken in {}?",
    "capital-zone": "In which time zone is the capital of {}?",
    "capital-people": "What is the population of the capital of {}?",
    "neighbour-currency": "What currency is used in the only neighbour by land of {}?",
}
REGION = {
    "country": "In which country is {}?",
    "city": "What is the largest city of {}?",
    "city-people": "What is the population of the largest city of {}?",
    "city-zone": "In which time zone is the largest city of {}?",
}
ZONE = {
    "city": "What is the largest city in {}?",
    "people": "What is the population of the largest city in {}?",
    "country": "In which country is the largest city in {}?",
}
NEAR = {"people": "What is the population of {}?", "zone": "In which time zone is {}?"}

Attribute = tuple[str, tuple[str, ...], str]  # its name, the passages that lead to its value, the value


class Chain(NamedTuple):
    """A chain from an entity over passages, in order, to an answer in the last."""

    start: str
    hops: tuple[str, ...]
    answer: str


class Path(NamedTuple):
    """A path from an entity over passages to a place with a unique code."""

    start: str
    hops: tuple[str, ...]
    place: Any
    code: str


class Question(NamedTuple):
    """A question; ``hops`` are passages, by id or by row, and ``name`` is the place that its text names."""

    id: str
    text: str
    type: str
    answer: str
    hops: tuple[Any, ...]
    name: str
    by_alias: bool


def write_questions(places: Places, collection: Collection) -> list[Question]:
    """Return at most ``PER_TYPE`` questions of every type, spread over their last passages, sorted by id."""
    named = [(name,) for name in collection.plain.values()]
    count = Counter(name for row in (*named, *collection.others.values()) for name in set(map(fold, row)))
    known = {key for key, plain in collection.plain.items() if count[fold(plain)] == 1}
    questions: list[Question] = []
    for type, text, chains in _types(places, known):
        fit = (chain for chain in _in_turns(type, chains) if _is_fit(chain, collection))
        questions += [_in_words(type, text, chain, collection) for chain in islice(fit, PER_TYPE)]
    return sorted(questions)


def _types(places: Places, known: Set[str]) -> Iterator[tuple[str, str, list[Chain]]]:
    """Yield each type of question with its text and its chains of two or three hops."""
    paths = _paths(places)
    for start, (phrase, attributes, texts) in STARTS.items():
        chains = defaultdict[str, list[Chain]](list)
        for path in _spread(path for path in paths[start] if path.start in known):
            for name, hops, value in attributes(places, path.place):
                if 2 <= len(path.hops) + len(hops) <= 3:
                    chains[name].append(Chain(path.start, path.hops + hops, value))
        yield from ((f"{start}-{name}", text.format(phrase), chains[name]) for name, text in texts.items())


def _paths(places: Places) -> dict[str, list[Path]]:
    """Return the paths of every kind of start."""
    paths = defaultdict[str, list[Path]](list)
    for code, country in places.countries.items():
        paths["country"].append(Path(f"country/{code}", (), country, code))
    for code, region in places.regions.items():
        if region.parent:
            key, country = f"region/{code}", places.countries[region.country]
            paths["part"].append(Path(key, (key,), places.regions[region.parent], region.parent))
            paths["region"].append(Path(key, (key, f"region/{region.parent}"), country, country.code))
    for fips, county in places.counties.items():
        paths["county"].append(Path(f"county/{fips}", (f"county/{fips}",), places.regions[county.state], county.state))
    for id, city in places.cities.items():
        key, inside, near = f"city/{id}", places.region_of(city), city.near[0]
        if inside:
            paths["place"].append(Path(key, (key,), inside, inside.code))
        else:
            paths["city"].append(Path(key, (key,), places.countries[city.country], city.country))
        paths["zone"].append(Path(key, (key,), city, city.timezone))
        paths["near"].append(Path(key, (key,), places.cities[near], near))
    return paths


def _spread(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield a few paths to every place, chosen by a hash of where they start."""
    by_place = defaultdict[str, list[Path]](list)
    for path in paths:
        by_place[path.code].append(path)
    for group in by_place.values():
        yield from sorted(group, key=lambda path: _hash(path.start))[:PER_PLACE]


def _of_country(places: Places, country: Country) -> Iterator[Attribute]:
    key = f"country/{country.code}"
    if country.capital_name:
        yield "capital", (key,), country.capital_name
    if country.capital:
        capital, hops = places.cities[country.capital], (key, f"city/{country.capital}")
        yield "capital-zone", hops, capital.timezone
        yield "capital-people", hops, f"{capital.population:,}"
    if country.currency:
        currency, hop = places.currencies[country.currency], f"{key}/currency"
        yield "currency", (hop,), currency.name
        yield "currency-number", (hop, f"currency/{country.currency}"), currency.number
    if len(country.languages) == 1:
        language, hop = places.languages[country.languages[0]], f"{key}/languages"
        yield "language", (hop,), language.name
        yield "language-code", (hop, f"language/{country.languages[0]}"), language.three_letters
    if len(country.neighbours) == 1:
        neighbour = places.countries[country.neighbours[0]]
        yield "neighbour", (f"{key}/borders",), neighbour.name
        if neighbour.currency:
            hops = (f"{key}/borders", f"country/{neighbour.code}/currency")
            yield "neighbour-currency", hops, places.currencies[neighbour.currency].name
    if country.calling_code:
        yield "calling-code", (f"{key}/connections",), f"+{country.calling_code}"
    if country.domain:
        yield "domain", (f"{key}/connections",), country.domain


def _of_region(places: Places, region: Region) -> Iterator[Attribute]:
    key = f"region/{region.code}"
    yield "country", (key,), places.countries[region.country].name
    if city := places.largest_in_region.get(region.code):
        yield "city", (key,), city.name
        yield "city-people", (key, f"city/{city.id}"), f"{city.population:,}"
        yield "city-zone", (key, f"city/{city.id}"), city.timezone


def _of_zone(places: Places, city: City) -> Iterator[Attribute]:
    key, largest = f"zone/{city.timezone}", places.largest_in_zone[city.timezone]
    yield "city", (key,), largest.name
    yield "people", (key, f"city/{largest.id}"), f"{largest.population:,}"
    if not places.region_of(largest):
        yield "country", (key, f"city/{largest.id}"), places.countries[largest.country].name


def _of_city(_: Places, city: City) -> Iterator[Attribute]:
    yield "people", (f"city/{city.id}",), f"{city.population:,}"
    yield "zone", (f"city/{city.id}",), city.timezone


#: By the start of a chain: the place in words, its attributes, and the questions about them.
STARTS = {
    "city": ("the country where {} is", _of_country, COUNTRY),
    "region": ("the country that {} is a part of", _of_country, COUNTRY),
    "country": ("{}", _of_country, COUNTRY),
    "place": ("the state or canton where {} is", _of_region, REGION),
    "county": ("the state that {} belongs to", _of_region, REGION),
    "part": ("the larger region that {} belongs to", _of_region, REGION),
    "zone": ("the time zone of {}", _of_zone, ZONE),
    "near": ("the city of more than half a million people that is nearest to {}", _of_city, NEAR),
}


def _in_turns(type: str, chains: list[Chain]) -> Iterator[Chain]:
    """Yield the chains in turns over their last passages, ordered by a hash of their starts."""
    by_last = defaultdict[str, list[Chain]](list)
    salt = _hash(type)
    for chain in sorted(chains, key=lambda c: _hash(c.start) ^ salt):
        by_last[chain.hops[-1]].append(chain)
    for turn in zip_longest(*by_last.values()):
        yield from (chain for chain in turn if chain)


def _is_fit(chain: Chain, collection: Collection) -> bool:
    """Return whether the hops are distinct passages of which only the last has the answer."""
    if len(set(chain.hops)) != len(chain.hops) or not all(hop in collection.passages for hop in chain.hops):
        return False
    *before, last = (collection.passages[hop] for hop in chain.hops)
    early = (collection.plain[chain.start], *(text for p in before for text in (p.title, p.text)))
    return chain.answer in last.text and not any(contains(text, chain.answer) for text in early)


def _in_words(type: str, text: str, chain: Chain, collection: Collection) -> Question:
    others = [name for name in collection.alternates.get(chain.start, ()) if not contains(name, chain.answer)]
    by_alias = bool(others) and _hash(f"alias {type} {chain.start}") % ALIAS_SHARE == 0
    name = others[_hash(f"which {chain.start}") % len(others)] if by_alias else collection.plain[chain.start]
    shown = with_article(name) if chain.start.startswith("country/") else name
    return Question(f"{type}/{chain.start}", text.format(shown), type, chain.answer, chain.hops, name, by_alias)


def _hash(text: str) -> int:
    """Return a 64-bit hash of a text, the same in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
