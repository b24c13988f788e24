"""Italian: tables and what its numbers do beyond the common."""

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


class Italian(Language):
    """Agrees "uno" with what is counted."""

    code = "it"
    minus = "meno"
    marks = words(". punto|, virgola")
    to = "a"
    months = names(
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre "
        "novembre dicembre"
    )
    symbols = words(
        "& e|@ a|+ più|− meno|= uguale a|< minore di|> maggiore di|× per|÷ diviso"
        "|± più o meno|≈ circa|≠ diverso da|≤ minore o uguale a|≥ maggiore o uguale a"
        "|% per cento|‰ per mille|§ paragrafo|° gradi|© copyright|/ al|^ alla|# numero"
    )
    units = nouns("""
        nm|nanometro|nanometri|m
        µm,μm|micrometro|micrometri|m
        mm|millimetro|millimetri|m
        cm|centimetro|centimetri|m
        m|metro|metri|m
        km|chilometro|chilometri|m
        km/h|chilometro orario|chilometri orari|m
        m/s|metro al secondo|metri al secondo|m
        cm²,cm2|centimetro quadrato|centimetri quadrati|m
        m²,m2,m^2,mq|metro quadrato|metri quadrati|m
        km²,km2|chilometro quadrato|chilometri quadrati|m
        m³,m3,m^3|metro cubo|metri cubi|m
        cm³,cm3|centimetro cubo|centimetri cubi|m
        ha|ettaro|ettari|m
        µg,μg|microgrammo|microgrammi|m
        mg|milligrammo|milligrammi|m
        g|grammo|grammi|m
        kg|chilogrammo|chilogrammi|m
        t|tonnellata|tonnellate|f
        ml,mL|millilitro|millilitri|m
        cl,cL|centilitro|centilitri|m
        l,L|litro|litri|m
        µs,μs|microsecondo|microsecondi|m
        ms|millisecondo|millisecondi|m
        s,sec|secondo|secondi|m
        min|minuto|minuti|m
        h|ora|ore|f
        Hz|hertz||m
        kHz|chilohertz||m
        MHz|megahertz||m
        GHz|gigahertz||m
        °C,° C,℃|grado Celsius|gradi Celsius|m
        °F,° F,℉|grado Fahrenheit|gradi Fahrenheit|m
        °|grado|gradi|m
        kB,KB|kilobyte||m
        MB|megabyte||m
        GB|gigabyte||m
        TB|terabyte||m
        Mbit/s,Mbps|megabit al secondo||m
        Gbit/s,Gbps|gigabit al secondo||m
        W|watt||m
        kW|chilowatt||m
        MW|megawatt||m
        GW|gigawatt||m
        kWh|chilowattora||m
        V|volt||m
        mAh|milliampere ora||m
        J|joule||m
        kJ|chilojoule||m
        kcal|chilocaloria|chilocalorie|f
        dB|decibel||m
        hPa|ettopascal||m
        px|pixel||m
        %|per cento||m
        ‰|per mille||m
    """)
    currencies = nouns("""
        $,US$,USD|dollaro|dollari|m|centesimo|centesimi
        C$,CA$,CAD|dollaro canadese|dollari canadesi|m|centesimo|centesimi
        A$,AU$,AUD|dollaro australiano|dollari australiani|m|centesimo|centesimi
        €,EUR|euro||m|centesimo|centesimi
        £,GBP|sterlina|sterline|f|penny|pence
        ¥,JPY,JP¥|yen||m
        CN¥,CNY|yuan||m
        R$,BRL|real||m|centavo|+s
        CHF|franco svizzero|franchi svizzeri|m|centesimo|centesimi
        ₹,INR|rupia|rupie|f
        ₩,KRW|won||m
        ₽,RUB|rublo|rubli|m|copeco|copechi
        ₿,BTC|bitcoin||m
    """)
    cents_join = "e"
    magnitudes = nouns("""
        mila|mila
        mln,Mln,milione,milioni|milione|milioni|m
        mld,Mld,miliardo,miliardi|miliardo|miliardi|m
    """)
    of = "di"
    fractions = {  # noqa: RUF012
        2: ("mezzo", "mezzi"),
        3: ("terzo", "terzi"),
        4: ("quarto", "quarti"),
        5: ("quinto", "quinti"),
        6: ("sesto", "sesti"),
        8: ("ottavo", "ottavi"),
        10: ("decimo", "decimi"),
    }
    half_more = "e mezzo"
    counted_words = {  # noqa: RUF012
        **dict.fromkeys(names("anno giorno mese problema sistema programma"), "m"),
        **dict.fromkeys(names("volta settimana persona pagina parte"), "f"),
    }
    followers = frozenset(names("a e o di del è era sono in nel con per su più che da fino"))
    ordinal_pattern = "([0-9]{1,4})(º|ª)"

    def cardinal(self, value: int, gender: Gender = "") -> str:
        """As in: "un" and "una" before nouns."""
        if value == 1 and gender:
            return "una" if gender == "f" else "un"
        # num2words 0.5.14 joins millions with "e", which is said of the last part alone.
        return re.sub("(lion[ei]|liard[io]) e ", r"\1 ", super().cardinal(value))

    def count(self, number: Number, noun: Noun) -> str:
        """As in: "un'ora"."""
        return re.sub(r"\b(un)a (?=[aeiou])", r"\1'", super().count(number, noun))

    def ordinal(self, value: int, suffix: str = "") -> str:
        """Primo or prima."""
        spoken = library_words(value, self.code, "ordinal")
        return spoken[:-1] + "a" if suffix == "ª" else spoken

    def clock(self, hour: int, minute: int, _suffix: str = "") -> str:
        """As in: "quattordici e cinque", "quattordici"."""
        spoken = self.cardinal(hour, "f")
        return f"{spoken} e {self.cardinal(minute)}" if minute else spoken
