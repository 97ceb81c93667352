"""Draw questions over the atlas as people type them, from its facts, and count those that methods answer.

python -m experiments.atlas_questions [--out FILE] [--seed N] [--count N]
python -m experiments.atlas_questions --measure INDEX [--questions FILE …] [--failures] [--out FILE]

INDEX is written by ``python examples/atlas --save INDEX``. A question is answered if each of its groups of passages
has one among the first five hits: one group for a question about one thing, two for "Peru or Chile", and one for each
place of a name that several places have.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import hopfuse as hf

from bench.markdown import table
from bench.result_file import ResultFile
from examples.atlas.names import fold, with_article
from examples.atlas.passages import Collection
from examples.atlas.places import City, Places, read_places

from .folders import read_lines
from .side_by_side import ROOT

TESTS = ROOT / "tests" / "examples"
DRAWN, WRITTEN = TESTS / "drawn_questions.jsonl", TESTS / "newcomer_questions.jsonl"
SEED, COUNT, K = 44, 25, 5
BIG, TOWN = 300_000, 20_000  # inhabitants

#: What people call places, and the names or codes that the atlas's packages use.
COUNTRIES = """UK=GB Britain=GB USA=US America=US Holland=NL Ivory_Coast=CI Czech_Republic=CZ Burma=MM UAE=AE
Cape_Verde=CV East_Timor=TL Deutschland=DE España=ES Suomi=FI Polska=PL Schweiz=CH Österreich=AT Italia=IT Brasil=BR
Magyarország=HU"""
CITIES = """München=Munich Köln=Köln Cologne=Köln Wien=Vienna Praha=Prague Warszawa=Warsaw Lisboa=Lisbon Roma=Rome
Milano=Milan Torino=Turin Napoli=Naples Firenze=Florence Genève=Geneva Moskva=Moscow Bruxelles=Brussels
København=Copenhagen Göteborg=Gothenburg Beograd=Belgrade Sevilla=Sevilla Seville=Sevilla
Bombay=Mumbai Calcutta=Kolkata Saigon=Ho_Chi_Minh_City Peking=Beijing Kiev=Kyiv Nürnberg=Nuremberg
Den_Haag=The_Hague Krakow=Kraków Cracow=Kraków Danzig=Gdańsk Venezia=Venice"""
REGIONS = """Bavaria=DE-BY Saxony=DE-SN Hesse=DE-HE Thuringia=DE-TH Lower_Saxony=DE-NI Tuscany=IT-52 Lombardy=IT-25
Sicily=IT-82 Sardinia=IT-88 Piedmont=IT-21 Apulia=IT-75 Catalonia=ES-CT Andalusia=ES-AN Brittany=FR-BRE Corsica=FR-20R
Normandy=FR-NOR Carinthia=AT-2 Styria=AT-6 Tyrol=AT-7 Crete=GR-M Silesia=PL-24 Flanders=BE-VLG Wallonia=BE-WAL
Bayern=DE-BY Toscana=IT-52 Cataluña=ES-CT Québec=CA-QC Hokkaidō=JP-01 Basque_Country=ES-PV Madeira=PT-30"""
ADJECTIVES = """Swiss=CH Dutch=NL French=FR German=DE Spanish=ES Greek=GR Danish=DK Swedish=SE Finnish=FI Turkish=TR
Polish=PL Irish=IE Portuguese=PT Hungarian=HU Norwegian=NO Belgian=BE Czech=CZ Peruvian=PE Chilean=CL Kenyan=KE
Japanese=JP Thai=TH Vietnamese=VN Egyptian=EG Moroccan=MA Argentinian=AR Brazilian=BR Cuban=CU Nepalese=NP Icelandic=IS
Croatian=HR Serbian=RS Romanian=RO Mongolian=MN Ethiopian=ET Ghanaian=GH Iraqi=IQ Lebanese=LB Malaysian=MY Cypriot=CY"""

#: Attributes of a country by its facet: what people type about a country, and about a place in it.
ABOUT = {
    "currency": ("What currency do they use in {}?", "Which money do I need in {}?", "currency in {}"),
    "languages": ("Which languages are spoken in {}?", "What do people speak in {}?", "languages of {}"),
    "connections": ("What is the calling code of {}?", "Dialling code for {}?", "What's the internet domain of {}?"),
}
OF_COUNTRY = {
    **ABOUT,
    "borders": ("Which countries border {}?", "What are the neighbours of {}?", "borders of {}"),
    "": ("What's the capital of {}?", "How big is {}?", "Which continent is {} on?", "capital of {}"),
}
OF_CITY = ("How many people live in {}?", "What time zone is {} in?", "population of {}", "time zone of {}")


class Drawn(NamedTuple):
    """A question with the number of passages that lead to its answer, and groups of passages that state it."""

    question: str
    hops: int
    passages: Sequence[Sequence[str]]


@functools.cache
def read_atlas() -> tuple[Places, Collection]:
    """Return the atlas's places, and the passages about them."""
    places = read_places()
    return places, Collection(places)


class Facts:
    """The atlas's facts, and random choices among them."""

    def __init__(self, random_: random.Random) -> None:
        self.random = random_
        self.places, self.collection = read_atlas()
        self.count = Counter(map(fold, self.collection.plain.values()))
        capitals = (code for code, c in self.places.countries.items() if c.capital and c.area > 1000)
        self.countries = sorted(code for code in capitals if f"country/{code}/currency" in self.collection.passages)
        self.cities = [c for c in self.places.cities.values() if f"city/{c.id}" in self.collection.passages]
        self.counties = defaultdict[str, list[str]](list)
        for fips, county in self.places.counties.items():
            self.counties[county.name].append(f"county/{fips}")

    def pick(self, choices: Sequence[Any] | str) -> Any:
        """Return one of some choices, or a pair of a table."""
        if isinstance(choices, str):
            typed, _, meant = self.random.choice(choices.split()).replace("_", " ").partition("=")
            return typed, meant
        return self.random.choice(choices)

    def country(self) -> tuple[str, str]:
        """Return a country's name in a sentence, and its code."""
        code = self.pick(self.countries)
        return with_article(self.places.countries[code].name), code

    def city(self, low: int, high: float = float("inf"), *, in_region: bool = False) -> City:
        """Return a city whose name nothing else has."""
        fit = (c for c in self.cities if low <= c.population < high and bool(self.places.region_of(c)) == in_region)
        chosen: City = self.pick([c for c in fit if self.count[fold(c.name)] == 1])
        return chosen

    def named(self, name: str) -> City:
        """Return the largest city of a name."""
        return max((c for c in self.cities if c.name == name), key=lambda c: c.population)

    def about(self, place: str, code: str, hops: int, texts: Mapping[str, Sequence[str]] = ABOUT) -> Drawn:
        """Return a question about an attribute of the country of a place."""
        facet = self.pick(sorted(texts))
        return Drawn(self.pick(texts[facet]).format(place), hops, [[f"country/{code}/{facet}".rstrip("/")]])

    def of_city(self, place: str, city: City, hops: int) -> Drawn:
        """Return a question about an attribute of a city."""
        return Drawn(self.pick(OF_CITY).format(place), hops, [[f"city/{city.id}"]])


def _country(f: Facts) -> Drawn:
    name, code = f.country()
    return f.about(name, code, 1, OF_COUNTRY)


def _country_as_called(f: Facts) -> Drawn:
    typed, code = f.pick(COUNTRIES)
    return f.about(typed, code, 1, OF_COUNTRY)


def _adjective(f: Facts) -> Drawn:
    adjective, code = f.pick(ADJECTIVES)
    facet, text = f.pick(
        [
            ("/currency", "What's the {} currency called?"),
            ("/connections", "What is the {} calling code?"),
            ("", "What is the {} capital?"),
            ("/borders", "What are the {} neighbours by land?"),
        ]
    )
    return Drawn(text.format(adjective), 1, [[f"country/{code}{facet}"]])


def _adjective_capital(f: Facts) -> Drawn:
    adjective, code = f.pick(ADJECTIVES)
    return f.of_city(f"the {adjective} capital", f.places.cities[f.places.countries[code].capital or ""], 2)


def _capital(f: Facts) -> Drawn:
    name, code = f.country()
    return f.of_city(f"the capital of {name}", f.places.cities[f.places.countries[code].capital or ""], 2)


def _city(f: Facts) -> Drawn:
    city = f.city(BIG)
    return f.of_city(city.name, city, 1)


def _city_as_called(f: Facts) -> Drawn:
    typed, name = f.pick(CITIES)
    return f.of_city(typed, f.named(name), 1)


def _city_as_called_country(f: Facts) -> Drawn:
    typed, name = f.pick(CITIES)
    city = f.named(name)
    return f.about(typed, city.country, 3 if f.places.region_of(city) else 2)


def _city_country(f: Facts) -> Drawn:
    city = f.city(BIG)
    return f.about(city.name, city.country, 2)


def _town_country(f: Facts) -> Drawn:
    town = f.city(TOWN, BIG)
    return f.about(f"the country where {town.name} is", town.country, 2, OF_COUNTRY)


def _city_of_region_country(f: Facts) -> Drawn:
    city = f.city(TOWN, in_region=True)
    return f.about(f.pick(["{}", "the country of {}"]).format(city.name), city.country, 3)


def _region(f: Facts) -> Drawn:
    typed, code = f.pick(REGIONS)
    return Drawn(
        f.pick(["Which country is {} in?", "{} is a part of what country"]).format(typed), 1, [[f"region/{code}"]]
    )


def _region_country(f: Facts) -> Drawn:
    typed, code = f.pick(REGIONS)
    return f.about(typed, f.places.regions[code].country, 2)


def _domain(f: Facts) -> Drawn:
    domain = f.places.countries[code := f.pick(f.countries)].domain
    text = f.pick(
        ["Which country has the domain {}?", "Whose internet ending is {}?", "{} is the domain of which country"]
    )
    return Drawn(text.format(domain), 1, [[f"country/{code}/connections"]])


def _domain_country(f: Facts) -> Drawn:
    code = f.pick(f.countries)
    texts = {facet: texts for facet, texts in OF_COUNTRY.items() if facet != "connections"}
    return f.about(f"the country with the domain {f.places.countries[code].domain}", code, 2, texts)


def _by_calling_code(f: Facts) -> tuple[str, str]:
    count = Counter(c.calling_code for c in f.places.countries.values())
    code = f.pick([code for code in f.countries if count[f.places.countries[code].calling_code] == 1])
    return f"+{f.places.countries[code].calling_code}", code


def _calling_code(f: Facts) -> Drawn:
    number, code = _by_calling_code(f)
    text = f.pick(["Which country has the calling code {}?", "A call from {}, where is that?", "{} country"])
    return Drawn(text.format(number), 1, [[f"country/{code}/connections"]])


def _calling_code_country(f: Facts) -> Drawn:
    number, code = _by_calling_code(f)
    texts = {facet: texts for facet, texts in OF_COUNTRY.items() if facet != "connections"}
    return f.about(f"the country with the calling code {number}", code, 2, texts)


def _currency_code(f: Facts) -> Drawn:
    code = f.pick(sorted(f.places.currencies))
    text = f.pick(["Which currency is {}?", "What's the ISO number of {}?", "What does {} stand for?"])
    return Drawn(text.format(code), 1, [[f"currency/{code}"]])


def _paid_with(f: Facts) -> Drawn:
    code = f.pick(sorted(f.places.currencies))
    users = [f"country/{key}/currency" for key, c in f.places.countries.items() if c.currency == code]
    typed = f.pick([code, f.places.currencies[code].name])
    hops = 2 if typed == code else 1
    return Drawn(f.pick(["Where can I pay with {}?", "Which country uses the {}?"]).format(typed), hops, [users])


def _currency_number(f: Facts) -> Drawn:
    name, code = f.country()
    hops = 2
    if f.random.random() < 0.5:
        city = f.city(BIG)
        name, code, hops = city.name, city.country, 3
    text = f.pick(["What's the ISO number of the currency used in {}?", "Letter code of the money they use in {}?"])
    return Drawn(text.format(name), hops, [[f"currency/{f.places.countries[code].currency}"]])


def _language_code(f: Facts) -> Drawn:
    code = f.pick([code for code in f.countries if len(f.places.countries[code].languages) == 1])
    language = f.places.countries[code].languages[0]
    text = f.pick(
        ["What is the three-letter code of the language spoken in {}?", "language code for what they speak in {}"]
    )
    return Drawn(text.format(with_article(f.places.countries[code].name)), 2, [[f"language/{language}"]])


def _only_neighbour(f: Facts) -> Drawn:
    alone = [code for code in f.countries if len(f.places.countries[code].neighbours) == 1]
    code = f.pick([code for code in alone if f.places.countries[code].neighbours[0] in f.countries])
    place = f"the only country next to {with_article(f.places.countries[code].name)}"
    other = f.places.countries[code].neighbours[0]
    if f.random.random() < 0.5:
        return f.about(place, other, 2, OF_COUNTRY)
    return f.of_city(f"the capital of {place}", f.places.cities[f.places.countries[other].capital or ""], 3)


def _largest_in_region(f: Facts) -> Drawn:
    code = f.pick(sorted(f.places.largest_in_region))
    city, name = f.places.largest_in_region[code], f.places.regions[code].name
    if f.random.random() < 0.3:
        return Drawn(f"What's the biggest city in {name}?", 1, [[f"region/{code}"]])
    return f.of_city(f"the biggest city of {name}", city, 2)


def _largest_in_its_region(f: Facts) -> Drawn:
    town = f.city(TOWN, BIG, in_region=True)
    kind = f.places.regions[town.region or ""].kind
    if f.random.random() < 0.5:
        return Drawn(f"What is the largest city of the {kind} {town.name} is in?", 2, [[f"region/{town.region}"]])
    return f.of_city(
        f"the largest city of the {kind} where {town.name} is", f.places.largest_in_region[town.region or ""], 3
    )


def _county(f: Facts) -> Drawn:
    name, (key,) = f.pick([(name, keys) for name, keys in f.counties.items() if len(keys) == 1])
    if f.random.random() < 0.5:
        return Drawn(f.pick(["Which state is {} in?", "federal code of {}"]).format(name), 1, [[key]])
    state = f.places.counties[key.partition("/")[2]].state
    return Drawn(f"What is the largest city of the state that {name} belongs to?", 2, [[f"region/{state}"]])


def _counties(f: Facts) -> Drawn:
    name, keys = f.pick([(name, keys) for name, keys in f.counties.items() if 2 <= len(keys) <= 3])
    return Drawn(f.pick(["Which state is {} in?", "Where is {}?", "{} state"]).format(name), 1, [[key] for key in keys])


def _cities_of_a_name(f: Facts) -> Drawn:
    large = defaultdict[str, list[City]](list)
    for city in f.cities:
        if city.population >= TOWN:
            large[city.name].append(city)
    name, found = f.pick([(n, cs) for n, cs in large.items() if len(cs) in (2, 3) and len({c.country for c in cs}) > 1])
    text = f.pick(["Which country is {} in?", "How many people live in {}?", "where is {}"])
    return Drawn(text.format(name), 1, [[f"city/{city.id}"] for city in found])


def _two_countries(f: Facts) -> Drawn:
    (one, first), (other, second) = f.country(), f.country()
    facet, text = f.pick(
        [
            ("/currency", "Do {} and {} use the same currency?"),
            ("/languages", "Do people in {} and {} speak the same language?"),
            ("", "Which is larger, {} or {}?"),
            ("", "What are the capitals of {} and {}?"),
            ("/connections", "calling codes of {} and {}"),
        ]
    )
    return Drawn(text.format(one, other), 1, [[f"country/{first}{facet}"], [f"country/{second}{facet}"]])


def _two_cities(f: Facts) -> Drawn:
    one, other = f.city(BIG), f.city(BIG)
    text = f.pick(["Which has more people, {} or {}?", "Are {} and {} in the same time zone?", "is {} bigger than {}"])
    return Drawn(text.format(one.name, other.name), 1, [[f"city/{one.id}"], [f"city/{other.id}"]])


def _two_cities_countries(f: Facts) -> Drawn:
    one, other = f.city(BIG), f.city(BIG)
    groups = [[f"country/{city.country}/currency"] for city in (one, other)]
    return Drawn(f"Can I pay with the same money in {one.name} and {other.name}?", 2, groups)


def _zone(f: Facts) -> Drawn:
    town = f.city(TOWN, BIG)
    if f.random.random() < 0.5:
        return Drawn(f"What is the largest city in the time zone of {town.name}?", 2, [[f"zone/{town.timezone}"]])
    largest = f.places.largest_in_zone[town.timezone]
    text = f"How many people live in the largest city in the time zone of {town.name}?"
    return Drawn(text, 3, [[f"city/{largest.id}"]])


def _near(f: Facts) -> Drawn:
    town = f.city(TOWN, BIG)
    if f.random.random() < 0.5:
        return Drawn(f"Which big city is near {town.name}?", 1, [[f"city/{town.id}"]])
    return f.of_city(f"the big city nearest to {town.name}", f.places.cities[town.near[0]], 2)


def _capital_of_what(f: Facts) -> Drawn:
    code = f.pick(f.countries)
    capital = f.places.countries[code].capital_name
    text = f.pick(["{} is the capital of which country?", "Which country's capital is {}?"])
    return Drawn(text.format(capital), 1, [[f"country/{code}"]])


FORMS: dict[str, Callable[[Facts], Drawn]] = {
    form.__name__.strip("_"): form
    for form in (
        _country,
        _country_as_called,
        _adjective,
        _adjective_capital,
        _capital,
        _city,
        _city_as_called,
        _city_as_called_country,
        _city_country,
        _town_country,
        _city_of_region_country,
        _region,
        _region_country,
        _domain,
        _domain_country,
        _calling_code,
        _calling_code_country,
        _currency_code,
        _paid_with,
        _currency_number,
        _language_code,
        _only_neighbour,
        _largest_in_region,
        _largest_in_its_region,
        _county,
        _counties,
        _cities_of_a_name,
        _two_countries,
        _two_cities,
        _two_cities_countries,
        _zone,
        _near,
        _capital_of_what,
    )
}


def draw(seed: int, count: int) -> list[dict[str, Any]]:
    """Return so many questions, of each form equally many."""
    chosen = random.Random(seed)
    facts = Facts(chosen)
    known = {fold(row["question"]) for row in read_lines(WRITTEN)}
    order = chosen.sample(sorted(FORMS), len(FORMS))
    return list(islice(_drawn(facts, cycle(order), known), count))


def _drawn(f: Facts, forms: Iterator[str], known: set[str]) -> Iterator[dict[str, Any]]:
    for name in forms:
        found = FORMS[name](f)
        text = _typed(found.question, f.random)
        exist = all(id in f.collection.passages for group in found.passages for id in group)
        if exist and fold(text) not in known and len(set(map(tuple, found.passages))) == len(found.passages):
            known.add(fold(text))
            yield {"question": text, "form": name, "hops": found.hops, "passages": [list(g) for g in found.passages]}


def _typed(text: str, chosen: random.Random) -> str:
    """Return a text as people type it: as written, in lower case, or in capitals; sometimes without accents."""
    if chosen.random() < 0.3:
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    style = chosen.random()
    if style < 0.08:
        return text.upper()
    if style < 0.5:
        kept = re.split(r"\b([A-Z]{3})\b", text)  # codes of currencies stay
        text = "".join(part if at % 2 else part.lower() for at, part in enumerate(kept))
        return text.rstrip("?") if style < 0.35 else text
    return text[0].upper() + text[1:] if style < 0.9 else text.rstrip("?")


#: By name of the method, the weights of words and of vectors in a plain hybrid; None stands for the default recipe.
METHODS = {"default": None, "dense": (0.0, 1.0), "BM25": (1.0, 0.0), "plain hybrid": (1.0, 1.0)}


def measured(retriever: hf.Retriever, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[bool]]:
    """Return, by method, whether each question's groups of passages all have one among the first hits."""
    found = {}
    for name, weights in METHODS.items():
        method = retriever
        if weights is not None:
            method = retriever.variant("plain-hybrid", weights=(*weights, 1.0))
        hits = method.search([row["question"] for row in rows], k=K)
        found[name] = [is_answered(row, hits[b]) for b, row in enumerate(rows)]
    return found


def is_answered(row: Mapping[str, Any], hits: Sequence[Any]) -> bool:
    """Return whether the hits have a passage of each group, or of the title, of a question."""
    if "title" in row:
        return any(hit.title == row["title"] for hit in hits)
    groups = row.get("passages") or [[row["passage"]]]
    return all(any(hit.id in group for hit in hits) for group in groups)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.atlas_questions", description=__doc__)
    parser.add_argument(
        "--out", type=Path, help="where drawn questions are written [default: the tests'], or counts as CSV"
    )
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--measure", type=Path, metavar="INDEX", help="a saved index of the atlas, to be asked")
    parser.add_argument("--questions", type=Path, nargs="+", default=[DRAWN, WRITTEN])
    parser.add_argument("--failures", action="store_true", help="print the questions that the default does not answer")
    args = parser.parse_args()
    if args.measure is None:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in draw(args.seed, args.count))
        (args.out or DRAWN).write_text("".join(lines), encoding="utf-8")
        return
    retriever, counts = hf.Retriever.open(args.measure), []
    file = ResultFile("python -m experiments.atlas_questions --measure INDEX")
    for path in args.questions:
        rows = list(read_lines(path))
        found = measured(retriever, rows)
        counts.append([path.name, str(len(rows)), *(str(sum(answered)) for answered in found.values())])
        file.add(questions=path.name, number=len(rows), **{name: sum(answered) for name, answered in found.items()})
        if args.failures:
            for row, answered in zip(rows, found["default"], strict=True):
                if not answered:
                    print(json.dumps(row, ensure_ascii=False))
    print(table(["questions", "number", *METHODS], counts))
    file.write(args.out)


if __name__ == "__main__":
    main()
