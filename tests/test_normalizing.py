"""Numbers, money, dates, times, units and signs as people say them."""

# ruff: noqa: RUF001 (the marks of many scripts look alike)

import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intone_server.synthesis.boundaries import SPEAKABLE
from intone_server.synthesis.normalizing import normalize

LANGUAGES = ["en", "fr", "de", "es", "pt", "it", "nl"]
MAX_GROWTH = 32

ENGLISH = {
    # Numbers.
    "1,234,567": "one million two hundred and thirty-four thousand five hundred and sixty-seven",
    "I have 1 cat and 12 dogs.": "I have one cat and twelve dogs.",
    "3.14159": "three point one four one five nine",
    "0.05 and .5": "zero point zero five and point five",
    "100,000.50": "one hundred thousand point five zero",
    "1\u202f234 and 1'234": (
        "one thousand two hundred and thirty-four and one thousand two hundred and thirty-four"
    ),
    "It fell to -5 today.": "It fell to minus five today.",
    "Agent 007": "Agent zero zero seven",
    "code: 8 11111111111 end (ok).": (
        "code: eight one one one, one one one, one one one, one one end, ok."
    ),
    "123456789": "one two three, four five six, seven eight nine",
    "the 1st, 2nd, 3rd, 21st and 101st": (
        "the first, second, third, twenty-first and one hundred and first"
    ),
    "a 20-year-old and a 5-minute walk": "a twenty-year-old and a five-minute walk",
    "1/2, 3/4, 2½ and 1 1/2": "one half, three quarters, two and a half and one and a half",
    "10-20 people, pages 3–5": "ten to twenty people, pages three to five",
    "50%, 3.5 % and 5-10%": "fifty percent, three point five percent and five to ten percent",
    "10k users": "ten thousand users",
    # Money.
    "$19.99": "nineteen dollars and ninety-nine cents",
    "€5, 5 € and £3.50": "five euros, five euros and three pounds and fifty pence",
    "$1, $1.01 and $0.99": "one dollar, one dollar and one cent and ninety-nine cents",
    "¥100, US$5, 5 USD": "one hundred yen, five dollars, five dollars",
    "-$5.00": "minus five dollars",
    "$1.2 million, $5k and $3bn": (
        "one point two million dollars, five thousand dollars and three billion dollars"
    ),
    "$5-10 and $5–$10": "five to ten dollars and five to ten dollars",
    "$10/month": "ten dollars per month",
    "$1,234.56": "one thousand two hundred and thirty-four dollars and fifty-six cents",
    # Dates and years.
    "2026-11-30": "November thirtieth, twenty twenty-six",
    "03/04/2026": "March fourth, twenty twenty-six",
    "25/12/2026": "December twenty-fifth, twenty twenty-six",
    "On November 30, 2026, we met.": "On November thirtieth, twenty twenty-six, we met.",
    "May 5th and Nov. 3": "May fifth and November third",
    "5 May 2026, the 5th of May": "the fifth of May, twenty twenty-six, the fifth of May",
    "In 1984 it rained.": "In nineteen eighty-four it rained.",
    "since 2005, in May 2026": "since two thousand and five, in May twenty twenty-six",
    "between 1914 and 1918": "between nineteen fourteen and nineteen eighteen",
    "1914–1918": "nineteen fourteen to nineteen eighteen",
    "the 2026 election, the 2000 people": (
        "the twenty twenty-six election, the two thousand people"
    ),
    "1500 people": "one thousand five hundred people",
    "the 1990s, the 80s, '60s": "the nineteen nineties, the eighties, sixties",
    # Times.
    "9:30 and 14:05": "nine thirty and fourteen oh five",
    "at 7:00, 22:00, 00:05": "at seven o'clock, twenty-two hundred, twelve oh five a.m.",
    "9:30 a.m. or 5pm.": "nine thirty a.m. or five p.m.",
    "9am-5pm, 9:30-10:15": "nine a.m. to five p.m., nine thirty to ten fifteen",
    # Units.
    "1 km, 5 km and 100 km/h": "one kilometre, five kilometres and one hundred kilometres per hour",
    "3.5 kg, 16 GB, 50 Hz": "three point five kilograms, sixteen gigabytes, fifty hertz",
    "20 °C, 70°F, 90°": "twenty degrees Celsius, seventy degrees Fahrenheit, ninety degrees",
    "250 ms, 3 m², 6ft": "two hundred and fifty milliseconds, three square metres, six feet",
    "-20 °C": "minus twenty degrees Celsius",
    "5–10 km": "five to ten kilometres",
    # Telephone numbers and their like.
    "416-555-0100": "four one six, five five five, zero one zero zero",
    "+1 (416) 555-0100": "plus one, four one six, five five five, zero one zero zero",
    "ISBN 978-3-16-148410-0": (
        "ISBN nine seven eight, three, one six, one four eight four one zero, zero"
    ),
    # Signs.
    "Meet @ 5 + 5 = 10 (room #3) 😀": "Meet at five plus five equals ten, room number three",
    "5+5=10": "five plus five equals ten",
    "3 * 4, 10 - 4 = 6, 10 / 2, 10^6": (
        "three times four, ten minus four equals six, ten divided by two, ten to the power of six"
    ),
    "a < b, 5 > 3, ~50": "a less than b, five greater than three, about fifty",
    "R&D, you & me": "R and D, you and me",
    "#news": "hashtag news",
    "A | B → C": "A, B, C",
    "Acme™ is great 🎉🎉!": "Acme is great!",
    "(See [page 3] below.)": "See, page three, below.",
    "Steps: 1) mix, 2) bake.": "Steps: one, mix, two, bake.",
    "© 2026": "copyright twenty twenty-six",
    "$19.99, 03/04/2026, 1,234,567, 416-555-0100, 3.14159": (
        "nineteen dollars and ninety-nine cents, March fourth, twenty twenty-six, "
        "one million two hundred and thirty-four thousand five hundred and sixty-seven, "
        "four one six, five five five, zero one zero zero, three point one four one five nine"
    ),
}
FRENCH = {
    "1 234 567 et 1.234.567": (
        "un million deux cent trente-quatre mille cinq cent soixante-sept "
        "et un million deux cent trente-quatre mille cinq cent soixante-sept"
    ),
    "3,14 et 3,14159": "trois virgule quatorze et trois virgule un quatre un cinq neuf",
    "GPT 3.5": "GPT trois point cinq",
    "80 ou 200": "quatre-vingts ou deux cents",
    "19,99 €, 1 €, 21 £": (
        "dix-neuf euros et quatre-vingt-dix-neuf centimes, un euro, vingt et une livres"
    ),
    "1,2 million € et 5 millions $": (
        "un virgule deux million d'euros et cinq millions de dollars"
    ),
    "le 2026-11-30, le 03/04/2026": (
        "le trente novembre deux mille vingt-six, le trois avril deux mille vingt-six"
    ),
    "le 1er mai 2026, le 1 mai, le 21 mai": (
        "le premier mai deux mille vingt-six, le premier mai, le vingt et un mai"
    ),
    "en 1984": "en mille neuf cent quatre-vingt-quatre",
    "14h05, 9 h 30, 9h, 14:05, 21h": (
        "quatorze heures cinq, neuf heures trente, neuf heures, quatorze heures cinq, "
        "vingt et une heures"
    ),
    "5 km, 1,5 km, 20 °C": "cinq kilomètres, un virgule cinq kilomètre, vingt degrés Celsius",
    "100 km/h, 16 Go": "cent kilomètres heure, seize gigaoctets",
    "21 jours, 1 heure, 21 personnes": "vingt et un jours, une heure, vingt et une personnes",
    "3e, 2ème, 80e, 1re": "troisième, deuxième, quatre-vingtième, première",
    "50 %": "cinquante pour cent",
    "01 23 45 67 89": "zéro un, deux trois, quatre cinq, six sept, huit neuf",
    "n° 5, #3, 5 + 5 = 10": "numéro cinq, numéro trois, cinq plus cinq égale dix",
    "1/2, 2/3, 2½": "un demi, deux tiers, deux et demi",
    "10-20 pages": "dix à vingt pages",
    "-5 °C": "moins cinq degrés Celsius",
}
GERMAN = {
    "1.234.567": ("eine Million zweihundertvierunddreißigtausendfünfhundertsiebenundsechzig"),
    "3,14": "drei Komma eins vier",
    "GPT 3.5": "GPT drei Punkt fünf",
    "19,99 €, 1 €": "neunzehn Euro und neunundneunzig Cent, ein Euro",
    "1,5 Mio. Euro, 2 Mio.": "eins Komma fünf Millionen Euro, zwei Millionen.",
    "1 Mal, 5,- €": "ein Mal, fünf Euro",
    "1,2 Mio. € und 3 Milliarden $": ("eins Komma zwei Millionen Euro und drei Milliarden Dollar"),
    "am 3. Mai 2026": "am dritten Mai zweitausendsechsundzwanzig",
    "Der 2. Weltkrieg, im 2. Weltkrieg": "Der zweite Weltkrieg, im zweiten Weltkrieg",
    "vom 1. bis 3. Mai": "vom ersten bis dritten Mai",
    "in der 2. Woche": "in der zweiten Woche",
    "30.11.2026": "dreißigster November zweitausendsechsundzwanzig",
    "am 30.11.2026 und am 30.11.": (
        "am dreißigsten November zweitausendsechsundzwanzig und am dreißigsten November"
    ),
    "1984 war es so.": "neunzehnhundertvierundachtzig war es so.",
    "14:05 Uhr, 14 Uhr, 1 Uhr, 9:30, 14.30 Uhr": (
        "vierzehn Uhr fünf, vierzehn Uhr, ein Uhr, neun Uhr dreißig, vierzehn Uhr dreißig"
    ),
    "1 km, 1,5 km, 20 °C": "ein Kilometer, eins Komma fünf Kilometer, zwanzig Grad Celsius",
    "1 h, 2 h, 1 Stunde": "eine Stunde, zwei Stunden, eine Stunde",
    "Kapitel 1 ist, 1 und 2": "Kapitel eins ist, eins und zwei",
    "50 % und 1 %": "fünfzig Prozent und ein Prozent",
    "030 1234567": "null drei null, eins zwei drei vier fünf sechs sieben",
    "#3, 5 + 5 = 10": "Nummer drei, fünf plus fünf gleich zehn",
    "1/2, 3/4, 2½": "ein halb, drei Viertel, zweieinhalb",
    "10-20 Leute": "zehn bis zwanzig Leute",
}
SPANISH = {
    "1.234.567": "un millón doscientos treinta y cuatro mil quinientos sesenta y siete",
    "21.000 y 31.001": "veintiún mil y treinta y un mil uno",
    "3,14 y 3.14": "tres coma catorce y tres punto catorce",
    "19,99 €, 1 €, 21 €, 200 £": (
        "diecinueve euros con noventa y nueve céntimos, un euro, veintiún euros, doscientas libras"
    ),
    "1,2 millones €": "uno coma dos millones de euros",
    "30/11/2026, el 1 de mayo": ("treinta de noviembre de dos mil veintiséis, el primero de mayo"),
    "En 1984 George": "En mil novecientos ochenta y cuatro George",
    "a las 14:05, a la 1:00, a las 21:00": (
        "a las catorce y cinco, a la una, a las veintiuna horas"
    ),
    "1º, 3.er, 2ª, 11º": "primero, tercer, segunda, undécimo",
    "200 personas, 21 días, 1 hora": "doscientas personas, veintiún días, una hora",
    "1500 personas": "mil quinientas personas",
    "1 km, 5 km, 20 °C": "un kilómetro, cinco kilómetros, veinte grados Celsius",
    "50 %": "cincuenta por ciento",
    "612 345 678": "seis uno dos, tres cuatro cinco, seis siete ocho",
    "#3, 5 + 5 = 10": "número tres, cinco más cinco igual a diez",
    "1/2, 3/4, 2½": "un medio, tres cuartos, dos y medio",
}
PORTUGUESE = {
    "1.234.567": ("um milhão duzentos e trinta e quatro mil quinhentos e sessenta e sete"),
    "3,14": "três vírgula catorze",
    "R$ 19,99, 1 €, 200 £": ("dezenove reais e noventa e nove centavos, um euro, duzentas libras"),
    "R$ 3 milhões": "três milhões de reais",
    "30/11/2026, 1 de maio": "trinta de novembro de dois mil e vinte e seis, primeiro de maio",
    "14h05, 2h, 9:30": "catorze e cinco, duas horas, nove e trinta",
    "1º e 2ª": "primeiro e segunda",
    "2 pessoas, 2 dias, 1 hora": "duas pessoas, dois dias, uma hora",
    "5 km, 20 °C, 50 %": "cinco quilômetros, vinte graus Celsius, cinquenta por cento",
    "#3, 5 + 5 = 10": "número três, cinco mais cinco igual a dez",
    "1/2, 3/4": "meio, três quartos",
    "em 1984": "em mil novecentos e oitenta e quatro",
}
ITALIAN = {
    "1.234.567": "un milione duecentotrentaquattromilacinquecentosessantasette",
    "3,14": "tre virgola quattordici",
    "19,99 €, 1 €, 1 £": "diciannove euro e novantanove centesimi, un euro, una sterlina",
    "2 milioni €": "due milioni di euro",
    "30/11/2026, 1 maggio": "trenta novembre duemilaventisei, primo maggio",
    "alle 14:05, alle 14:00": "alle quattordici e cinque, alle quattordici",
    "1º e 2ª": "primo e seconda",
    "1 h, 2 h, 1 km, 21 giorni": "un'ora, due ore, un chilometro, ventuno giorni",
    "20 °C, 50%, 100 km/h": "venti gradi Celsius, cinquanta per cento, cento chilometri orari",
    "#3, 5 + 5 = 10": "numero tre, cinque più cinque uguale a dieci",
    "1/2, 3/4, 2½": "un mezzo, tre quarti, due e mezzo",
    "nel 1984": "nel millenovecentottantaquattro",
    "5 l'altro": "cinque l'altro",
}
DUTCH = {
    "1.234.567": "een miljoen tweehonderdvierendertigduizendvijfhonderdzevenenzestig",
    "3,14": "drie komma veertien",
    "€ 19,99": "negentien euro en negenennegentig cent",
    "1,2 miljoen €": "één komma twee miljoen euro",
    "30-11-2026, 3 mei": "dertig november tweeduizendzesentwintig, drie mei",
    "in 1984, in 1905": "in negentienhonderdvierentachtig, in negentienhonderdvijf",
    "14:05 uur, 9.30 uur, 14:05": "veertien uur vijf, negen uur dertig, veertien uur vijf",
    "1e, 2de, 8ste, 20e": "eerste, tweede, achtste, twintigste",
    "5 km, 20 °C, 2 min": "vijf kilometer, twintig graden Celsius, twee minuten",
    "50%": "vijftig procent",
    "#3, 5 + 5 = 10": "nummer drie, vijf plus vijf is tien",
    "1/2, 2½": "een half, twee en een half",
    "06-12345678": "nul zes, één twee drie vier vijf zes zeven acht",
}
SAMPLES = {
    "en": ENGLISH,
    "fr": FRENCH,
    "de": GERMAN,
    "es": SPANISH,
    "pt": PORTUGUESE,
    "it": ITALIAN,
    "nl": DUTCH,
}
CASES = [(language, *case) for language, table in SAMPLES.items() for case in table.items()]


@pytest.mark.parametrize(("language", "written", "said"), CASES)
def test_what_is_written_is_said_as_people_say_it(language: str, written: str, said: str) -> None:
    """Reported cases 48, 56 and 58."""
    assert normalize(written, language) == said


@pytest.mark.parametrize(("language", "written", "said"), CASES)
def test_what_is_said_already_is_said_the_same(language: str, written: str, said: str) -> None:
    assert normalize(said, language) == said


@pytest.mark.parametrize(
    "text",
    [
        "v2.1.0, 1.2.3 and 10.0.1-rc2",
        "192.168.1.1, 10.0.0.1:8080, 10.0.0.0/8 and fe80::1:2",
        "A4, B2B, MP3, H2O, COVID-19, ISO-9001, 4K, 3D",
        "550e8400-e29b-41d4-a716-446655440000",
        "9f86d081884c7d65, 0x1F4, #a1b2c3",
        "a.b5@example.org, @user5",
        "https://example.org/5?a=6&b=7 and example.com/?q=5&b=6",
        "/usr/lib/5, ~/5.txt, C:\\5\\a, photo5.jpg, 2026.pdf",
        "localhost:8080",
        "C++, C#, y=2x+1, a*b, f(x), parent(s)",
        "<b>bold</b>",
        "12:30:45, 25:61, 2026-13-45T1",
        "3-2, 24/7",
        "[ ] and ( )",
        "&amp;",
    ],
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_versions_addresses_codes_and_files_are_left_alone(text: str, language: str) -> None:
    assert normalize(text, language) == text


@pytest.mark.parametrize(
    ("language", "text"),
    [("de", "1 Apfel"), ("fr", "1 truc"), ("es", "1 árbol"), ("pt", "2 leis"), ("it", "1 zaino")],
)
def test_a_number_whose_gender_is_not_known_is_left_alone(language: str, text: str) -> None:
    assert normalize(text, language) == text


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "text", ["", " ", "Hello there.", "“Well,” he said — “I suppose…”", "a  b\n\nc", "¿Qué? ¡Sí!"]
)
def test_text_without_digits_and_signs_is_left_alone(text: str, language: str) -> None:
    assert normalize(text, language) == text


@pytest.mark.parametrize("text", ["😀", "*", "( )", "™"])
def test_text_with_nothing_to_say_is_left_alone(text: str) -> None:
    assert normalize(text, "en") == text


@pytest.mark.parametrize("language", ["ja", "xx", "", "english"])
def test_text_in_a_language_that_is_not_known_is_left_alone(language: str) -> None:
    assert normalize("5 + 5 = $10 😀", language) == "5 + 5 = $10 😀"


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en-US", "sixteen"),
        ("EN_gb", "sixteen"),
        ("de-CH", "sechzehn"),
        ("pt", "dezesseis"),
        ("pt-BR", "dezesseis"),
        ("pt-PT", "dezasseis"),
        ("pt_pt", "dezasseis"),
    ],
)
def test_a_region_is_heeded_where_its_numbers_differ(language: str, said: str) -> None:
    assert normalize("16", language) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("😀 Great 😀 . Yes 😀", "Great. Yes"),
        ("5😀5", "five five"),
        ("It rained (hard) (very).", "It rained, hard, very."),
        ("Yes. (No.)", "Yes. No."),
        ("50% (half) of it", "fifty percent, half, of it"),
        ("(see below", "see below"),
        ("see below)", "see below)"),
        ('"(hi)" she said :(', '"(hi)" she said :('),
        ("1️⃣ first", "one first"),
        ("* a", "a"),
        ("# Title", "Title"),
        ("| a |", "a"),
    ],
)
def test_blanks_and_commas_are_in_order_around_what_was_left_out(text: str, said: str) -> None:
    assert normalize(text, "en") == said


def test_numbers_that_the_library_cannot_say_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise OverflowError

    monkeypatch.setattr("num2words.num2words", refuse)
    assert normalize("at 98765 km for $98,765", "en") == "at 98765 km for $98,765"


PIECES = st.one_of(
    st.sampled_from([word for _, written, _ in CASES for word in written.split()]),
    st.sampled_from([*"0123456789.,:;/-–−+=&@#$€£%°²½()[]{}<>*'\"~^|\\ _", " ", "\n", "\u00a0"]),
    st.text(max_size=4),
)
TEXTS = st.one_of(st.lists(PIECES, max_size=15).map("".join), st.text(max_size=40))


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.sampled_from([*LANGUAGES, "pt-PT"]))
def test_no_text_is_too_odd(text: str, language: str) -> None:
    said = normalize(text, language)
    assert len(said) <= MAX_GROWTH * len(text)
    assert bool(SPEAKABLE.search(said)) == bool(SPEAKABLE.search(text))


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(categories=["L", "Zs"]), max_size=60), st.sampled_from(LANGUAGES))
def test_letters_and_blanks_are_left_alone(text: str, language: str) -> None:
    assert normalize(text, language) == text


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize(
    "unit", ["1", "1,", "1.", "1-", "1 ", "a-", "a.", "a@a.", "$", "((1", "+1(2) ", "😀", "1/", "/"]
)
def test_the_time_for_a_text_grows_no_faster_than_the_text(unit: str, language: str) -> None:
    normalize("1 km", language)

    def seconds(length: int) -> float:
        text = (unit * length)[:length]
        start = time.thread_time()
        normalize(text, language)
        return time.thread_time() - start

    # What grows with the square of the text takes 256 times as long.
    assert seconds(8_000) < 64 * seconds(500) + 0.05


def test_the_library_is_not_loaded_before_a_number_is_met() -> None:
    code = """
import sys
from intone_server.synthesis.normalizing import normalize
normalize("Hello.", "en")
assert "num2words" not in sys.modules
normalize("5", "en")
assert "num2words" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
