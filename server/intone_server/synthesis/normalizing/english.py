"""English: tables and what its numbers do beyond the common."""

# ruff: noqa: RUF001 (the marks of many scripts look alike)

from intone_server.synthesis.normalizing.language import (
    Gender,
    Language,
    library_words,
    names,
    nouns,
    words,
)
from intone_server.synthesis.normalizing.patterns import HOUR, MINUTE, TIME


class English(Language):
    """Digit by digit behind the point, and years in pairs."""

    code = "en"
    decimal = "."
    minus = "minus"
    marks = words(". point|, comma")
    to = "to"
    months = names(
        "January February March April May June July August September October November December"
    )
    date_format = "{month} {day}, {year}"
    month_first = True
    symbols = words(
        "& and|@ at|+ plus|− minus|= equals|< less than|> greater than|× times|÷ divided by"
        "|± plus or minus|≈ about|≠ is not equal to|≤ at most|≥ at least|% percent|‰ per mille"
        "|§ section|° degrees|© copyright|/ per|^ to the power of|# number"
    )
    units = nouns("""
        nm|nanometre|+s
        µm,μm|micrometre|+s
        mm|millimetre|+s
        cm|centimetre|+s
        m|metre|+s
        km|kilometre|+s
        ft|foot|feet
        yd|yard|+s
        mi|mile|+s
        mph|mile per hour|miles per hour
        km/h,kph|kilometre per hour|kilometres per hour
        m/s|metre per second|metres per second
        mm²,mm2|square millimetre|+s
        cm²,cm2|square centimetre|+s
        m²,m2,m^2|square metre|+s
        km²,km2|square kilometre|+s
        m³,m3,m^3|cubic metre|+s
        cm³,cm3|cubic centimetre|+s
        ha|hectare|+s
        µg,μg|microgram|+s
        mg|milligram|+s
        g|gram|+s
        kg|kilogram|+s
        oz|ounce|+s
        lb,lbs|pound|+s
        ml,mL|millilitre|+s
        cl,cL|centilitre|+s
        l,L|litre|+s
        µs,μs|microsecond|+s
        ms|millisecond|+s
        s,sec,secs|second|+s
        min,mins|minute|+s
        h,hr,hrs|hour|+s
        Hz|hertz
        kHz|kilohertz
        MHz|megahertz
        GHz|gigahertz
        °C,° C,℃|degree Celsius|degrees Celsius
        °F,° F,℉|degree Fahrenheit|degrees Fahrenheit
        °|degree|+s
        kB,KB|kilobyte|+s
        MB|megabyte|+s
        GB|gigabyte|+s
        TB|terabyte|+s
        MB/s|megabyte per second|megabytes per second
        Mbps,Mbit/s|megabit per second|megabits per second
        Gbps,Gbit/s|gigabit per second|gigabits per second
        W|watt|+s
        kW|kilowatt|+s
        MW|megawatt|+s
        GW|gigawatt|+s
        kWh|kilowatt-hour|+s
        V|volt|+s
        mAh|milliamp-hour|+s
        J|joule|+s
        kJ|kilojoule|+s
        kcal|kilocalorie|+s
        dB|decibel|+s
        hPa|hectopascal|+s
        rpm|revolution per minute|revolutions per minute
        px|pixel|+s
        k|thousand
        %|percent
        ‰|per mille
    """)
    currencies = nouns("""
        $,US$,USD|dollar|+s||cent|+s
        C$,CA$,CAD|Canadian dollar|+s||cent|+s
        A$,AU$,AUD|Australian dollar|+s||cent|+s
        €,EUR|euro|+s||cent|+s
        £,GBP|pound|+s||penny|pence
        ¥,JPY,JP¥|yen
        CN¥,CNY|yuan
        R$,BRL|real|reais||centavo|+s
        CHF|Swiss franc|+s||centime|+s
        ₹,INR|rupee|+s||paisa|paise
        ₩,KRW|won
        ₽,RUB|rouble|+s||kopeck|+s
        ₿,BTC|bitcoin|+s
    """)
    cents_join = "and"
    magnitudes = nouns("""
        k,K,thousand|thousand
        m,M,mn,million|million
        b,B,bn,billion|billion
        t,T,tn,trillion|trillion
    """)
    fractions = {  # noqa: RUF012
        2: ("half", "halves"),
        3: ("third", "thirds"),
        4: ("quarter", "quarters"),
        5: ("fifth", "fifths"),
        6: ("sixth", "sixths"),
        8: ("eighth", "eighths"),
        10: ("tenth", "tenths"),
    }
    half_more = "and a half"
    ordinal_pattern = "([0-9]{1,6})(st|nd|rd|th)"
    clock_patterns = (
        TIME + r"((?: ?(?:[AaPp]\.[Mm]\.|[AaPp][Mm]\b\.?))?)",
        rf"{HOUR}(?:\.{MINUTE})? ?([AaPp]\.[Mm]\.|[AaPp][Mm]\b\.?)",
    )
    pairs = False

    def year(self, value: int) -> str:
        """In pairs of digits."""
        return library_words(value, self.code, "year").replace("oh-", "oh ")

    def day(self, value: int, _before: str) -> str:
        """An ordinal."""
        return self.ordinal(value)

    def clock(self, hour: int, minute: int, suffix: str = "") -> str:
        """As in: "nine thirty a.m.", "nine o'clock", "fourteen oh five"."""
        half = suffix.strip(" .").lower()[:1]
        if hour in (0, 24) and not half:
            if not minute:
                return "midnight"
            hour, half = 12, "a"
        if minute:
            rest = f" {'oh ' if minute < 10 else ''}{self.cardinal(minute)}"
        elif half:
            rest = ""
        else:
            rest = " o'clock" if hour <= 12 else " hundred"
        return self.cardinal(hour) + rest + (f" {half}.m." if half else "")

    def gender(self, _word: str) -> Gender | None:
        """None of its words has one."""
        return ""
