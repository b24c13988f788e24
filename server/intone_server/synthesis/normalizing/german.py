"""German: tables and what its numbers do beyond the common."""

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
from intone_server.synthesis.normalizing.patterns import HOUR, MINUTE, TIME

# What stands before an ordinal tells its ending.
_ENDINGS = {
    **dict.fromkeys(names("der die das"), ""),
    **dict.fromkeys(
        names(
            "am im vom zum beim zur ab bis seit nach vor dem den des dieser diesem diesen einem "
            "einer eines jedem jeden ihrem seinem ihrer seiner ihren seinen unserem unserer"
        ),
        "n",
    ),
    **dict.fromkeys(names("ein kein sein ihr mein unser"), "r"),
    "eine": "",
}
_CASES = frozenset(names("an auf aus bei in mit nach seit von vor zu während wegen trotz"))
_WORDS_BEFORE = re.compile(r"(?:(\w+) )?(\w+) $")


class German(Language):
    """Years in hundreds, and ordinals that agree with the word before them."""

    code = "de"
    minus = "minus"
    marks = words(". Punkt|, Komma")
    to = "bis"
    months = names(
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
    )
    symbols = words(
        "& und|@ bei|+ plus|− minus|= gleich|< kleiner als|> größer als|× mal|÷ geteilt durch"
        "|± plus minus|≈ ungefähr|≠ ungleich|≤ kleiner gleich|≥ größer gleich|% Prozent|‰ Promille"
        "|§ Paragraf|° Grad|© Copyright|/ pro|^ hoch|# Nummer"
    )
    units = nouns("""
        nm|Nanometer||m
        µm,μm|Mikrometer||m
        mm|Millimeter||m
        cm|Zentimeter||m
        m|Meter||m
        km|Kilometer||m
        km/h|Kilometer pro Stunde||m
        m/s|Meter pro Sekunde||m
        cm²,cm2,qcm|Quadratzentimeter||m
        m²,m2,m^2,qm|Quadratmeter||m
        km²,km2|Quadratkilometer||m
        m³,m3,m^3|Kubikmeter||m
        cm³,cm3|Kubikzentimeter||m
        ha|Hektar||m
        µg,μg|Mikrogramm||m
        mg|Milligramm||m
        g|Gramm||m
        kg|Kilogramm||m
        t|Tonne|+n|f
        ml,mL|Milliliter||m
        cl,cL|Zentiliter||m
        l,L|Liter||m
        µs,μs|Mikrosekunde|+n|f
        ms|Millisekunde|+n|f
        s,Sek.,Sek|Sekunde|+n|f
        min,Min.,Min|Minute|+n|f
        h,Std.,Std|Stunde|+n|f
        Hz|Hertz||m
        kHz|Kilohertz||m
        MHz|Megahertz||m
        GHz|Gigahertz||m
        °C,° C,℃|Grad Celsius||m
        °F,° F,℉|Grad Fahrenheit||m
        °|Grad||m
        kB,KB|Kilobyte||m
        MB|Megabyte||m
        GB|Gigabyte||m
        TB|Terabyte||m
        Mbit/s,Mbps|Megabit pro Sekunde||m
        Gbit/s,Gbps|Gigabit pro Sekunde||m
        W|Watt||m
        kW|Kilowatt||m
        MW|Megawatt||m
        GW|Gigawatt||m
        kWh|Kilowattstunde|+n|f
        V|Volt||m
        mAh|Milliamperestunde|+n|f
        J|Joule||m
        kJ|Kilojoule||m
        kcal|Kilokalorie|+n|f
        dB|Dezibel||m
        hPa|Hektopascal||m
        px|Pixel||m
        %|Prozent||m
        ‰|Promille||m
    """)
    currencies = nouns("""
        $,US$,USD|Dollar||m|Cent
        C$,CA$,CAD|kanadischer Dollar|kanadische Dollar|m|Cent
        A$,AU$,AUD|australischer Dollar|australische Dollar|m|Cent
        €,EUR|Euro||m|Cent
        £,GBP|Pfund||m|Penny|Pence
        ¥,JPY,JP¥|Yen||m
        CN¥,CNY|Yuan||m
        R$,BRL|Real||m|Centavo|+s
        CHF|Schweizer Franken||m|Rappen
        ₹,INR|Rupie|+n|f
        ₩,KRW|Won||m
        ₽,RUB|Rubel||m|Kopeke|+n
        ₿,BTC|Bitcoin|+s|m
    """)
    cents_join = "und"
    magnitudes = nouns("""
        Tsd.,Tsd|tausend
        Mio.,Mio,Million,Millionen|Million|+en|f
        Mrd.,Mrd,Milliarde,Milliarden|Milliarde|+n|f
        Bio.,Bio,Billion,Billionen|Billion|+en|f
    """)
    fractions = {  # noqa: RUF012
        2: ("halb", "halbe"),
        3: ("Drittel", "Drittel"),
        4: ("Viertel", "Viertel"),
        5: ("Fünftel", "Fünftel"),
        6: ("Sechstel", "Sechstel"),
        8: ("Achtel", "Achtel"),
        10: ("Zehntel", "Zehntel"),
    }
    half_more = "einhalb"
    counted_words = {"mal": "m"}  # noqa: RUF012
    followers = frozenset(
        names(
            "und oder bis von ist war sind hat wird in im auf mit zu zum zur für gegen plus minus "
            "als wie aus bei"
        )
    )
    ordinal_pattern = r"([0-9]{1,3})(\.)(?= \w)"
    clock_patterns = (TIME + r"((?: Uhr| ?h)?(?!\w))", rf"{HOUR}(?:\.{MINUTE})? (Uhr)\b")
    pairs = False

    def cardinal(self, value: int, gender: Gender = "") -> str:
        """As in: "ein" and "eine" before nouns."""
        spoken = super().cardinal(value)
        if gender and spoken.endswith("eins"):
            return spoken[:-1] + ("e" if gender == "f" else "")
        return spoken

    def ordinal(self, value: int, suffix: str = "") -> str:
        """With the ending `suffix` behind the e: dritte, dritten, dritter."""
        return library_words(value, self.code, "ordinal") + suffix

    def ordinal_ending(self, before: str) -> str | None:
        """The ending behind the text `before`; None if nothing there calls for an ordinal."""
        found = _WORDS_BEFORE.search(before[-40:])
        if found is None:
            return None
        ending = _ENDINGS.get(found[2].lower())
        return "n" if ending == "" and (found[1] or "").lower() in _CASES else ending

    def day(self, value: int, before: str) -> str:
        """An ordinal, by itself in the nominative."""
        ending = self.ordinal_ending(before)
        return self.ordinal(value, "r" if ending is None else ending)

    def year(self, value: int) -> str:
        """In hundreds up to 1999."""
        return library_words(value, self.code, "year")

    def mixed(self, whole: int, fraction: str, *, is_half: bool) -> str:
        """As in: "zweieinhalb", "zwei drei Viertel"."""
        if is_half:
            return self.cardinal(whole, "m") + self.half_more
        return f"{self.cardinal(whole)} {fraction}"

    def clock(self, hour: int, minute: int, _suffix: str = "") -> str:
        """As in: "vierzehn Uhr fünf"."""
        spoken = f"{self.cardinal(hour, 'm')} Uhr"
        return f"{spoken} {self.cardinal(minute)}" if minute else spoken
