"""Portuguese: tables and what its numbers do beyond the common."""

# ruff: noqa: RUF001 (the marks of many scripts look alike)

import re

from intone_server.synthesis.normalizing.language import (
    Gender,
    Language,
    Number,
    library_words,
    names,
    nouns,
    words,
)
from intone_server.synthesis.normalizing.patterns import HOUR, MINUTE, TIME


class Portuguese(Language):
    """Numbers of Brazil, where most speakers live, that agree with what is counted."""

    code = "pt_BR"
    minus = "menos"
    marks = words(". ponto|, vírgula")
    to = "a"
    months = names(
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"
    )
    date_format = "{day} de {month} de {year}"
    symbols = words(
        "& e|@ em|+ mais|− menos|= igual a|< menor que|> maior que|× vezes|÷ dividido por"
        "|± mais ou menos|≈ aproximadamente|≠ diferente de|≤ menor ou igual a|≥ maior ou igual a"
        "|% por cento|‰ por mil|§ parágrafo|° graus|© copyright|/ por|^ elevado a|# número"
    )
    units = nouns("""
        nm|nanômetro|+s|m
        µm,μm|micrômetro|+s|m
        mm|milímetro|+s|m
        cm|centímetro|+s|m
        m|metro|+s|m
        km|quilômetro|+s|m
        km/h|quilômetro por hora|quilômetros por hora|m
        m/s|metro por segundo|metros por segundo|m
        cm²,cm2|centímetro quadrado|centímetros quadrados|m
        m²,m2,m^2|metro quadrado|metros quadrados|m
        km²,km2|quilômetro quadrado|quilômetros quadrados|m
        m³,m3,m^3|metro cúbico|metros cúbicos|m
        cm³,cm3|centímetro cúbico|centímetros cúbicos|m
        ha|hectare|+s|m
        µg,μg|micrograma|+s|m
        mg|miligrama|+s|m
        g|grama|+s|m
        kg|quilograma|+s|m
        t|tonelada|+s|f
        ml,mL|mililitro|+s|m
        cl,cL|centilitro|+s|m
        l,L|litro|+s|m
        µs,μs|microssegundo|+s|m
        ms|milissegundo|+s|m
        s,seg|segundo|+s|m
        min|minuto|+s|m
        h|hora|+s|f
        Hz|hertz||m
        kHz|quilohertz||m
        MHz|megahertz||m
        GHz|gigahertz||m
        °C,° C,℃|grau Celsius|graus Celsius|m
        °F,° F,℉|grau Fahrenheit|graus Fahrenheit|m
        °|grau|+s|m
        kB,KB|quilobyte|+s|m
        MB|megabyte|+s|m
        GB|gigabyte|+s|m
        TB|terabyte|+s|m
        Mbit/s,Mbps|megabit por segundo|megabits por segundo|m
        Gbit/s,Gbps|gigabit por segundo|gigabits por segundo|m
        W|watt|+s|m
        kW|quilowatt|+s|m
        MW|megawatt|+s|m
        GW|gigawatt|+s|m
        kWh|quilowatt-hora|quilowatts-hora|m
        V|volt|+s|m
        mAh|miliampere-hora|miliamperes-hora|m
        J|joule|+s|m
        kJ|quilojoule|+s|m
        kcal|quilocaloria|+s|f
        dB|decibel|decibéis|m
        hPa|hectopascal|hectopascais|m
        px|pixel|+s|m
        %|por cento||m
        ‰|por mil||m
    """)
    currencies = nouns("""
        $,US$,USD|dólar|+es|m|centavo|+s
        C$,CA$,CAD|dólar canadense|dólares canadenses|m|centavo|+s
        A$,AU$,AUD|dólar australiano|dólares australianos|m|centavo|+s
        €,EUR|euro|+s|m|centavo|+s
        £,GBP|libra|+s|f|penny|pence
        ¥,JPY,JP¥|iene|+s|m
        CN¥,CNY|yuan|+s|m
        R$,BRL|real|reais|m|centavo|+s
        CHF|franco suíço|francos suíços|m|centavo|+s
        ₹,INR|rupia|+s|f
        ₩,KRW|won|+s|m
        ₽,RUB|rublo|+s|m|copeque|+s
        ₿,BTC|bitcoin|+s|m
    """)
    cents_join = "e"
    magnitudes = nouns("""
        mil|mil
        mi,milhão,milhões|milhão|milhões|m
        bi,bilhão,bilhões|bilhão|bilhões|m
        tri,trilhão,trilhões|trilhão|trilhões|m
    """)
    of = "de"
    fractions = {  # noqa: RUF012
        2: ("meio", "meios"),
        3: ("terço", "terços"),
        4: ("quarto", "quartos"),
        5: ("quinto", "quintos"),
        6: ("sexto", "sextos"),
        8: ("oitavo", "oitavos"),
        10: ("décimo", "décimos"),
    }
    half_more = "e meio"
    counted_words = {  # noqa: RUF012
        **dict.fromkeys(names("mês meses dia dias sistema sistemas programa programas"), "m"),
        **dict.fromkeys(
            names("vez vezes noite noites tarde tardes parte partes mulher mulheres"), "f"
        ),
    }
    followers = frozenset(names("a e ou de do da é era são em no na com por para mais que até"))
    clock_patterns = (TIME + r"((?: ?h(?![\w'’]))?)", rf"{HOUR} ?h(?: ?{MINUTE})?()(?![\w'’])")
    phones = ("[6789][0-9]{2} [0-9]{3} [0-9]{3}",)
    ordinal_pattern = r"([0-9]{1,3})\.?(º|ª)"

    def is_singular(self, number: Number) -> bool:
        """Below 2, but for nothing."""
        return number.integer != 0 and int(number.whole) < 2

    def cardinal(self, value: int, gender: Gender = "") -> str:
        """As in: "uma", "duas" and "duzentas" before feminine nouns."""
        spoken = super().cardinal(value)
        if gender != "f":
            return spoken
        # Millions are counted in the masculine whatever they are of.
        millions, mark, rest = re.fullmatch(r"(?:(.*)(lhões|lhão))?(.*)", spoken).groups("")  # type: ignore[union-attr]
        rest = re.sub(r"(zent|trezent|[aeiou]cent|inhent)os\b", r"\1as", rest)
        rest = re.sub(r"\bdois\b", "duas", re.sub(r"\bum$", "uma", rest))
        return millions + mark + rest

    def ordinal(self, value: int, suffix: str = "") -> str:
        """Primeiro or primeira."""
        spoken = library_words(value, self.code, "ordinal")
        return re.sub(r"o\b", "a", spoken) if suffix == "ª" else spoken

    def fraction(self, numerator: int, denominator: int) -> str | None:
        """A half is "meio" alone."""
        if (numerator, denominator) == (1, 2):
            return "meio"
        return super().fraction(numerator, denominator)

    def clock(self, hour: int, minute: int, _suffix: str = "") -> str:
        """As in: "catorze e cinco", "catorze horas"."""
        if minute:
            return f"{self.cardinal(hour, 'f')} e {self.cardinal(minute)}"
        return self.count(Number(str(hour)), self.units["h"])

    def guess_gender(self, word: str) -> Gender | None:
        """By the usual endings."""
        if re.search("(?:as?|ção|ções|dades?|gem|gens)$", word):
            return "f"
        return "m" if re.search("os?$", word) else None


class EuropeanPortuguese(Portuguese):
    """Numbers of Portugal."""

    code = "pt"
