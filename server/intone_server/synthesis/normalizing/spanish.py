"""Spanish: tables and what its numbers do beyond the common."""

# ruff: noqa: RUF001 (the marks of many scripts look alike)

import re

from intone_server.synthesis.normalizing.language import (
    Gender,
    Language,
    library_words,
    names,
    nouns,
    words,
)


class Spanish(Language):
    """Numbers that agree with what is counted."""

    code = "es"
    minus = "menos"
    marks = words(". punto|, coma")
    to = "a"
    months = names(
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
    )
    date_format = "{day} de {month} de {year}"
    symbols = words(
        "& y|@ en|+ más|− menos|= igual a|< menor que|> mayor que|× por|÷ dividido por"
        "|± más menos|≈ aproximadamente|≠ distinto de|≤ menor o igual que|≥ mayor o igual que"
        "|% por ciento|‰ por mil|§ sección|° grados|© copyright|/ por|^ elevado a|# número"
    )
    units = nouns("""
        nm|nanómetro|+s|m
        µm,μm|micrómetro|+s|m
        mm|milímetro|+s|m
        cm|centímetro|+s|m
        m|metro|+s|m
        km|kilómetro|+s|m
        km/h|kilómetro por hora|kilómetros por hora|m
        m/s|metro por segundo|metros por segundo|m
        cm²,cm2|centímetro cuadrado|centímetros cuadrados|m
        m²,m2,m^2|metro cuadrado|metros cuadrados|m
        km²,km2|kilómetro cuadrado|kilómetros cuadrados|m
        m³,m3,m^3|metro cúbico|metros cúbicos|m
        cm³,cm3|centímetro cúbico|centímetros cúbicos|m
        ha|hectárea|+s|f
        µg,μg|microgramo|+s|m
        mg|miligramo|+s|m
        g|gramo|+s|m
        kg|kilogramo|+s|m
        t|tonelada|+s|f
        ml,mL|mililitro|+s|m
        cl,cL|centilitro|+s|m
        l,L|litro|+s|m
        µs,μs|microsegundo|+s|m
        ms|milisegundo|+s|m
        s,seg|segundo|+s|m
        min|minuto|+s|m
        h|hora|+s|f
        Hz|hercio|+s|m
        kHz|kilohercio|+s|m
        MHz|megahercio|+s|m
        GHz|gigahercio|+s|m
        °C,° C,℃|grado Celsius|grados Celsius|m
        °F,° F,℉|grado Fahrenheit|grados Fahrenheit|m
        °|grado|+s|m
        kB,KB|kilobyte|+s|m
        MB|megabyte|+s|m
        GB|gigabyte|+s|m
        TB|terabyte|+s|m
        Mbit/s,Mbps|megabit por segundo|megabits por segundo|m
        Gbit/s,Gbps|gigabit por segundo|gigabits por segundo|m
        W|vatio|+s|m
        kW|kilovatio|+s|m
        MW|megavatio|+s|m
        GW|gigavatio|+s|m
        kWh|kilovatio hora|kilovatios hora|m
        V|voltio|+s|m
        mAh|miliamperio hora|miliamperios hora|m
        J|julio|+s|m
        kJ|kilojulio|+s|m
        kcal|kilocaloría|+s|f
        dB|decibelio|+s|m
        hPa|hectopascal|+es|m
        px|píxel|píxeles|m
        %|por ciento
        ‰|por mil
    """)
    currencies = nouns("""
        $,US$,USD|dólar|+es|m|centavo|+s
        MX$,MXN|peso mexicano|pesos mexicanos|m|centavo|+s
        C$,CA$,CAD|dólar canadiense|dólares canadienses|m|centavo|+s
        A$,AU$,AUD|dólar australiano|dólares australianos|m|centavo|+s
        €,EUR|euro|+s|m|céntimo|+s
        £,GBP|libra|+s|f|penique|+s
        ¥,JPY,JP¥|yen|+es|m
        CN¥,CNY|yuan|+es|m
        R$,BRL|real|+es|m|centavo|+s
        CHF|franco suizo|francos suizos|m|céntimo|+s
        ₹,INR|rupia|+s|f
        ₩,KRW|won|+es|m
        ₽,RUB|rublo|+s|m|kopek|+s
        ₿,BTC|bitcoin|+s|m
    """)
    cents_join = "con"
    magnitudes = nouns("""
        mil|mil
        M,mill.,millón,millones|millón|millones|m
        billón,billones|billón|billones|m
    """)
    of = "de"
    fractions = {  # noqa: RUF012
        2: ("medio", "medios"),
        3: ("tercio", "tercios"),
        4: ("cuarto", "cuartos"),
        5: ("quinto", "quintos"),
        6: ("sexto", "sextos"),
        8: ("octavo", "octavos"),
        10: ("décimo", "décimos"),
    }
    half_more = "y medio"
    counted_words = {  # noqa: RUF012
        **dict.fromkeys(names("mes año día días sistema sistemas programa programas"), "m"),
        **dict.fromkeys(names("vez veces mano manos parte partes clase clases mujer mujeres"), "f"),
    }
    followers = frozenset(names("a al y o u de del es era son en con por para más que hasta"))
    phones = ("[6789][0-9]{2} [0-9]{3} [0-9]{3}",)
    ordinal_pattern = r"([0-9]{1,3})\.?(º|ª|er\b)"

    def cardinal(self, value: int, gender: Gender = "") -> str:
        """As in: "un", "veintiún" and "doscientas" before nouns."""
        # num2words 0.5.14 leaves "veintiuno mil" and "treinta y uno millones" unshortened.
        spoken = re.sub("uno(?= m)", _shorten, super().cardinal(value))
        if gender == "m":
            return re.sub("uno$", _shorten, spoken)
        if gender == "f":
            millions, mark, rest = spoken.rpartition("llones ")
            rest = re.sub("uno$", "una", re.sub("(cient|quinient)os", r"\1as", rest))
            return millions + mark + re.sub(r"\bun mil$", "una mil", rest)
        return spoken

    def ordinal(self, value: int, suffix: str = "") -> str:
        """Primer, primero or primera."""
        special = {11: "undécimo", 12: "duodécimo"}
        spoken = special.get(value) or library_words(value, self.code, "ordinal")
        if suffix == "ª":
            return re.sub(r"o\b", "a", spoken)
        return spoken[:-1] if suffix == "er" and spoken.endswith("ero") else spoken

    def clock(self, hour: int, minute: int, _suffix: str = "") -> str:
        """As in: "catorce y cinco", "catorce horas"."""
        spoken = self.cardinal(hour, "f")
        if minute:
            return f"{spoken} y {self.cardinal(minute)}"
        return spoken if hour == 1 else f"{spoken} horas"

    def guess_gender(self, word: str) -> Gender | None:
        """By the usual endings."""
        if re.search("(?:[aá]s?|ci[oó]n(?:es)?|dad(?:es)?)$", word):
            return "f"
        return "m" if re.search("os?$", word) else None


def _shorten(found: re.Match[str]) -> str:
    return "ún" if found.string[: found.start()].endswith("veinti") else "un"
