"""Dutch: tables and what its numbers do beyond the common."""

# ruff: noqa: RUF001 (the marks of many scripts look alike)

from intone_server.synthesis.normalizing.language import Gender, Language, names, nouns, words
from intone_server.synthesis.normalizing.patterns import HOUR, MINUTE, TIME


class Dutch(Language):
    """Years in hundreds; most units have no plural."""

    code = "nl"
    minus = "min"
    marks = words(". punt|, komma")
    to = "tot"
    months = names(
        "januari februari maart april mei juni juli augustus september oktober november december"
    )
    symbols = words(
        "& en|@ bij|+ plus|− min|= is|< kleiner dan|> groter dan|× keer|÷ gedeeld door"
        "|± plus of min|≈ ongeveer|≠ is niet gelijk aan|≤ kleiner dan of gelijk aan"
        "|≥ groter dan of gelijk aan|% procent|‰ promille|§ paragraaf|° graden|© copyright"
        "|/ per|^ tot de macht"
        "|# nummer"
    )
    units = nouns("""
        nm|nanometer
        µm,μm|micrometer
        mm|millimeter
        cm|centimeter
        m|meter
        km|kilometer
        km/h,km/u|kilometer per uur
        m/s|meter per seconde
        cm²,cm2|vierkante centimeter
        m²,m2,m^2|vierkante meter
        km²,km2|vierkante kilometer
        m³,m3,m^3|kubieke meter
        cm³,cm3|kubieke centimeter
        ha|hectare
        µg,μg|microgram
        mg|milligram
        g|gram
        kg|kilogram
        t|ton
        ml,mL|milliliter
        cl,cL|centiliter
        l,L|liter
        µs,μs|microseconde|+n
        ms|milliseconde|+n
        s,sec|seconde|+n
        min|minuut|minuten
        h,u|uur
        Hz|hertz
        kHz|kilohertz
        MHz|megahertz
        GHz|gigahertz
        °C,° C,℃|graad Celsius|graden Celsius
        °F,° F,℉|graad Fahrenheit|graden Fahrenheit
        °|graad|graden
        kB,KB|kilobyte
        MB|megabyte
        GB|gigabyte
        TB|terabyte
        Mbit/s,Mbps|megabit per seconde
        Gbit/s,Gbps|gigabit per seconde
        W|watt
        kW|kilowatt
        MW|megawatt
        GW|gigawatt
        kWh|kilowattuur
        V|volt
        mAh|milliampère-uur
        J|joule
        kJ|kilojoule
        kcal|kilocalorie|+ën
        dB|decibel
        hPa|hectopascal
        px|pixel|+s
        %|procent
        ‰|promille
    """)
    currencies = nouns("""
        $,US$,USD|dollar|||cent
        C$,CA$,CAD|Canadese dollar|||cent
        A$,AU$,AUD|Australische dollar|||cent
        €,EUR|euro|||cent
        £,GBP|pond|||penny|pence
        ¥,JPY,JP¥|yen
        CN¥,CNY|yuan
        R$,BRL|real|||centavo|+s
        CHF|Zwitserse frank|||centime|+s
        ₹,INR|roepie|+s
        ₩,KRW|won
        ₽,RUB|roebel|||kopeke|+n
        ₿,BTC|bitcoin|+s
    """)
    cents_join = "en"
    magnitudes = nouns("""
        duizend|duizend
        mln.,mln,miljoen|miljoen
        mld.,mld,miljard|miljard
        biljoen|biljoen
    """)
    fractions = {  # noqa: RUF012
        2: ("half", "halve"),
        3: ("derde", "derde"),
        4: ("kwart", "kwart"),
        5: ("vijfde", "vijfde"),
        6: ("zesde", "zesde"),
        8: ("achtste", "achtste"),
        10: ("tiende", "tiende"),
    }
    half_more = "en een half"
    ordinal_pattern = "([0-9]{1,4})(e|ste|de)"
    clock_patterns = (TIME + r"((?: uur| ?[uh])?(?![\w'’]))", rf"{HOUR}(?:\.{MINUTE})? (uur)\b")

    def year(self, value: int) -> str:
        """In hundreds up to 1999."""
        hundreds, rest = divmod(value, 100)
        if not 11 <= hundreds <= 19:
            return self.cardinal(value)
        return f"{self.cardinal(hundreds)}honderd{self.cardinal(rest) if rest else ''}"

    def day(self, value: int, _before: str) -> str:
        """A cardinal, the first as well."""
        return self.cardinal(value)

    def fraction(self, numerator: int, denominator: int) -> str | None:
        """As in: "een half" rather than "één half"."""
        spoken = super().fraction(numerator, denominator)
        return spoken.replace("één", "een") if spoken else None

    def clock(self, hour: int, minute: int, _suffix: str = "") -> str:
        """As in: "veertien uur vijf"."""
        spoken = f"{self.cardinal(hour)} uur"
        return f"{spoken} {self.cardinal(minute)}" if minute else spoken

    def gender(self, _word: str) -> Gender | None:
        """Its numbers agree with nothing."""
        return ""
