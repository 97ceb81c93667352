"""Passages about countries, their currencies and their languages."""

from __future__ import annotations

from .draft import Draft
from .names import with_article
from .records import Country, World


def describe_countries(draft: Draft, world: World) -> None:
    """A few passages per country, each with facts of its own; one per currency and language."""
    for country in world.countries.values():
        key, name = f"country/{country.code}", with_article(country.name)
        _overview(draft, world, country, key, name)
        _currency(draft, world, country, key, name)
        _languages(draft, world, country, key, name)
        _borders(draft, world, country, key, name)
        _connections(draft, country, key, name)
    for code, currency in world.currencies.items():
        key = f"currency/{code}"
        text = f"The {currency.name} has the letter code {code} and the number {currency.number} in ISO 4217."
        draft.passage(key, draft.names[key], text, key)
    for code, language in world.languages.items():
        key = f"language/{code}"
        text = f"{language.name} is a language with the three-letter code {language.three_letters} in ISO 639."
        if language.two_letters:
            text += f" Its two-letter code is {language.two_letters}."
        draft.passage(key, draft.names[key], text, key)


def _overview(draft: Draft, world: World, country: Country, key: str, name: str) -> None:
    continent = f"continent/{country.continent}"
    capital = f"city/{country.capital}" if country.capital else None
    text = f"The capital of {name} is {country.capital_name}. " if country.capital_name else ""
    place = f"is in {world.continents[country.continent]}"
    text += f"{name[0].upper()}{name[1:]} {place}" + (f" and covers {country.area:,} km²." if country.area else ".")
    draft.passage(key, country.name, text, key, continent, capital)
    draft.fact(key, "continent", continent)
    draft.fact(key, "capital", capital)


def _currency(draft: Draft, world: World, country: Country, key: str, name: str) -> None:
    if country.currency:
        currency = f"currency/{country.currency}"
        text = f"The currency used in {name} is the {world.currencies[country.currency].name}."
        draft.passage(f"{key}/currency", f"Currency of {name}", text, key, currency)
        draft.fact(key, "currency", currency)


def _languages(draft: Draft, world: World, country: Country, key: str, name: str) -> None:
    if country.languages:
        keys = [f"language/{code}" for code in country.languages]
        listed = join_words([world.languages[code].name for code in country.languages])
        noun = "languages spoken in {} are" if len(keys) > 1 else "language spoken in {} is"
        draft.passage(f"{key}/languages", f"Languages of {name}", f"The {noun.format(name)} {listed}.", key, *keys)
        draft.fact(key, "language", *keys)


def _borders(draft: Draft, world: World, country: Country, key: str, name: str) -> None:
    keys = [f"country/{code}" for code in country.neighbours]
    listed = join_words([with_article(world.countries[code].name) for code in country.neighbours])
    noun = "neighbours of {} by land are" if len(keys) > 1 else "only neighbour of {} by land is"
    text = f"The {noun.format(name)} {listed}." if keys else f"No country borders {name} by land."
    draft.passage(f"{key}/borders", f"Borders of {name}", text, key, *keys)
    draft.fact(key, "border", *keys)


def _connections(draft: Draft, country: Country, key: str, name: str) -> None:
    said = []
    if country.calling_code:
        said.append(f"The calling code of {name} is +{country.calling_code}.")
    if country.domain:
        said.append(f"The internet domain of {name} is {country.domain}.")
    if said:
        title = f"Calling code and internet domain of {name}"
        draft.passage(f"{key}/connections", title, " ".join(said), key)


def join_words(words: list[str]) -> str:
    """Words as a sentence lists them.

    Examples
    --------
    >>> join_words(["French"]), join_words(["Dutch", "French", "German"])
    ('French', 'Dutch, French and German')
    """
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)
