"""French: tables and what its numbers do beyond the common."""

# ruff: noqa: RUF001 (the marks of many scripts look alike)

import re

from intone_server.synthesis.normalizing.language import (
    Gender,
    Language,
    Noun,
    Number,
    library_words,
    names,
    nouns,
    words,
)
from intone_server.synthesis.normalizing.patterns import HOUR, MINUTE, TIME


class French(Language):
    """Agrees "un" with what is counted; below 2 is singular."""

    code = "fr"
    spaced = True
    minus = "moins"
    marks = words(". point|, virgule")
    to = "à"
    months = names(
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"
    )
    symbols = words(
        "& et|@ à|+ plus|− moins|= égale|< inférieur à|> supérieur à|× fois|÷ divisé par"
        "|± plus ou moins|≈ environ|≠ différent de|≤ inférieur ou égal à|≥ supérieur ou égal à"
        "|% pour cent|‰ pour mille|§ paragraphe|° degrés|© copyright|/ par|^ puissance|# numéro"
    )
    units = nouns("""
        nm|nanomètre|+s|m
        µm,μm|micromètre|+s|m
        mm|millimètre|+s|m
        cm|centimètre|+s|m
        m|mètre|+s|m
        km|kilomètre|+s|m
        km/h|kilomètre heure|kilomètres heure|m
        m/s|mètre par seconde|mètres par seconde|m
        cm²,cm2|centimètre carré|centimètres carrés|m
        m²,m2,m^2|mètre carré|mètres carrés|m
        km²,km2|kilomètre carré|kilomètres carrés|m
        m³,m3,m^3|mètre cube|mètres cubes|m
        cm³,cm3|centimètre cube|centimètres cubes|m
        ha|hectare|+s|m
        µg,μg|microgramme|+s|m
        mg|milligramme|+s|m
        g|gramme|+s|m
        kg|kilogramme|+s|m
        t|tonne|+s|f
        ml,mL|millilitre|+s|m
        cl,cL|centilitre|+s|m
        l,L|litre|+s|m
        µs,μs|microseconde|+s|f
        ms|milliseconde|+s|f
        s,sec|seconde|+s|f
        min,mn|minute|+s|f
        h|heure|+s|f
        Hz|hertz||m
        kHz|kilohertz||m
        MHz|mégahertz||m
        GHz|gigahertz||m
        °C,° C,℃|degré Celsius|degrés Celsius|m
        °F,° F,℉|degré Fahrenheit|degrés Fahrenheit|m
        °|degré|+s|m
        ko,kB,KB|kilooctet|+s|m
        Mo,MB|mégaoctet|+s|m
        Go,GB|gigaoctet|+s|m
        To,TB|téraoctet|+s|m
        Mbit/s,Mbps|mégabit par seconde|mégabits par seconde|m
        Gbit/s,Gbps|gigabit par seconde|gigabits par seconde|m
        W|watt|+s|m
        kW|kilowatt|+s|m
        MW|mégawatt|+s|m
        GW|gigawatt|+s|m
        kWh|kilowattheure|+s|m
        V|volt|+s|m
        mAh|milliampère-heure|milliampères-heure|m
        J|joule|+s|m
        kJ|kilojoule|+s|m
        kcal|kilocalorie|+s|f
        dB|décibel|+s|m
        hPa|hectopascal|+s|m
        px|pixel|+s|m
        %|pour cent
        ‰|pour mille
    """)
    currencies = nouns("""
        $,US$,USD|dollar|+s|m|cent|+s
        C$,CA$,CAD|dollar canadien|dollars canadiens|m|cent|+s
        A$,AU$,AUD|dollar australien|dollars australiens|m|cent|+s
        €,EUR|euro|+s|m|centime|+s
        £,GBP|livre|+s|f|penny|pence
        ¥,JPY,JP¥|yen|+s|m
        CN¥,CNY|yuan|+s|m
        R$,BRL|réal|réaux|m|centavo|+s
        CHF|franc suisse|francs suisses|m|centime|+s
        ₹,INR|roupie|+s|f
        ₩,KRW|won|+s|m
        ₽,RUB|rouble|+s|m|kopeck|+s
        ₿,BTC|bitcoin|+s|m
    """)
    cents_join = "et"
    magnitudes = nouns("""
        k,K|mille
        M,million,millions|million|+s|m
        Md,Mds,Mrd,milliard,milliards|milliard|+s|m
        billion,billions|billion|+s|m
    """)
    of = "de"
    fractions = {  # noqa: RUF012
        2: ("demi", "demis"),
        3: ("tiers", "tiers"),
        4: ("quart", "quarts"),
        5: ("cinquième", "cinquièmes"),
        6: ("sixième", "sixièmes"),
        8: ("huitième", "huitièmes"),
        10: ("dixième", "dixièmes"),
    }
    half_more = "et demi"
    counted_words = {  # noqa: RUF012
        **dict.fromkeys(names("an ans mois jour jours siècle siècles point points"), "m"),
        **dict.fromkeys(names("semaine semaines année années fois personne personnes"), "f"),
    }
    followers = frozenset(names("et ou à sur de du des est était sont en dans par pour plus"))
    ordinal_pattern = "([0-9]{1,4})(ers?|res?|ères?|nde?s?|e|ème|es|èmes|ièmes?)"
    clock_patterns = (TIME + "(h?)", rf"{HOUR} ?h(?: ?{MINUTE})?()(?![\w'’])")

    def is_singular(self, number: Number) -> bool:
        """Below 2."""
        return int(number.whole) < 2

    def cardinal(self, value: int, gender: Gender = "") -> str:
        """Vingt et une, for feminine nouns."""
        spoken = super().cardinal(value)
        return spoken + "e" if gender == "f" and re.search(r"\bun$", spoken) else spoken

    def ordinal(self, value: int, suffix: str = "") -> str:
        """Premier, première, second, seconde; others end alike."""
        plural = "s" if suffix.endswith("s") else ""
        if value == 1:
            return ("première" if suffix.startswith(("r", "è")) else "premier") + plural
        if value == 2 and suffix.startswith("n"):
            return ("seconde" if "e" in suffix else "second") + plural
        # num2words 0.5.14 has an s too many in 80th.
        return (
            library_words(value, self.code, "ordinal").replace("vingtsième", "vingtième") + plural
        )

    def of_many(self, plural: str, magnitude: Noun) -> str:
        """Elided before vowels: d'euros."""
        return re.sub("^de (?=[aeiouy](?!e))", "d'", super().of_many(plural, magnitude))

    def clock(self, hour: int, minute: int, _suffix: str = "") -> str:
        """As in: "quatorze heures cinq"."""
        spoken = self.count(Number(str(hour)), self.units["h"])
        return f"{spoken} {self.cardinal(minute)}" if minute else spoken
