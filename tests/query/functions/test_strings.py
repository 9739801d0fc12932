"""The string functions as in ASA's reference; where it is silent, as in T-SQL's."""

import pyarrow as pa
import pytest

from recapture.errors import DefinitionError, RunError
from recapture.model import AsaType
from recapture.query.analyse.values import Value
from recapture.query.plan.expressions import column
from tests.query.functions.calls import call, check, columns, computed, computed_over_columns, time


def test_substrings_count_from_1_and_a_start_below_1_costs_length() -> None:
    text = "abcdef"
    cases: list[tuple[str | None, int | None, int | None, str | None]] = [
        (text, 1, 3, "abc"),
        (text, 2, 100, "bcdef"),
        (text, 6, 1, "f"),
        (text, 7, 1, ""),
        (text, 1, 0, ""),
        (text, 0, 3, "ab"),
        (text, -1, 3, "a"),
        (text, -5, 3, ""),
        (text, -(2**62), 2**62, ""),
        (text, 2, 2**62, "bcdef"),
        ("a😀茶d", 2, 2, "😀茶"),
        (None, 1, 1, None),
        (text, None, 1, None),
        (text, 1, None, None),
    ]
    check(*[("SUBSTRING", (source, start, length), part) for source, start, length, part in cases])


def test_left_right_and_stuff_cut_and_insert_by_position() -> None:
    check(
        ("LEFT", ("abcdefg", 2), "ab"),
        ("LEFT", ("abc", 9), "abc"),
        ("LEFT", ("abc", 0), ""),
        ("LEFT", ("abc", None), None),
        ("RIGHT", ("abcdefg", 2), "fg"),
        ("RIGHT", ("abc", 2**40), "abc"),
        ("RIGHT", ("abc", 0), ""),
        ("RIGHT", (None, 1), None),
        ("STUFF", ("abcdef", 2, 3, "ijklmn"), "aijklmnef"),
        ("STUFF", ("abcdef", 2, 0, "x"), "axbcdef"),
        ("STUFF", ("abcdef", 0, 2, "x"), "xcdef"),
        ("STUFF", ("abcdef", 7, 2, "x"), ""),
        ("STUFF", ("abcdef", 5, 9, "x"), "abcdx"),
        ("STUFF", ("abcdef", 1, 3, None), "def"),
        ("STUFF", (None, 1, 3, "x"), None),
        ("STUFF", ("abc", None, 3, "x"), None),
    )


def test_positions_count_from_1_and_nowhere_is_0() -> None:
    check(
        ("CHARINDEX", ("us", "a bus, us"), 4),
        ("CHARINDEX", ("us", "a bus, us", 5), 8),
        ("CHARINDEX", ("us", "a bus, us", 9), 0),
        ("CHARINDEX", ("us", "a bus, us", -3), 4),
        ("CHARINDEX", ("US", "a bus"), 0),
        ("CHARINDEX", ("", "abc"), 0),
        ("CHARINDEX", ("", None), None),
        ("CHARINDEX", (None, "abc"), None),
        ("CHARINDEX", ("a", None), None),
        ("CHARINDEX", ("a", "abc", None), None),
        ("CHARINDEX", ("茶", "a😀茶"), 3),
        ("PATINDEX", ("%100%", "AB 100 C"), 4),
        ("PATINDEX", ("%[0-9][^0-9]%", "x12y"), 3),
        ("PATINDEX", ("a%", "ba"), 0),
        ("PATINDEX", ("a%", "ab"), 1),
        ("PATINDEX", ("%b", "abab"), 4),
        ("PATINDEX", ("%b", "aba"), 0),
        ("PATINDEX", ("abc", "abc"), 1),
        ("PATINDEX", ("%_茶%", "a😀茶"), 2),
        ("PATINDEX", ("%b%", "a\nb"), 3),
        ("PATINDEX", ("%.%", "ab"), 0),
        ("PATINDEX", ("%a%", None), None),
        ("REGEXMATCH", ("AB 123", "[0-9][0-9][0-9]"), 4),
        ("REGEXMATCH", ("abc", "B"), 2),
        ("REGEXMATCH", ("äb", "Ä"), 1),
        ("REGEXMATCH", ("xÉ", "[à-ü]"), 2),
        ("REGEXMATCH", ("x漢", "[一-龥]"), 2),
        ("REGEXMATCH", ("xß", "[^a-z]"), 2),
        ("REGEXMATCH", ("abc", "^b"), 0),
        ("REGEXMATCH", ("abc", "^a.c$"), 1),
        ("REGEXMATCH", ("a\nc", "a.c"), 1),
        ("REGEXMATCH", ("abc\n", "c$"), 3),
        ("REGEXMATCH", ("xab ab", r"\bab\b"), 5),
        ("REGEXMATCH", ("a-b&&[", r"[&\[-]+"), 2),
        ("REGEXMATCH", ("a@b", "@"), 2),
        ("REGEXMATCH", ("aab", "(?:a{2}|x)(?=b)"), 1),
        ("REGEXMATCH", ("abc", ""), 1),
        ("REGEXMATCH", (None, "a"), None),
    )


def test_lengths_ignore_blanks_at_the_end() -> None:
    check(
        ("LEN", (" ab  ",), 3),
        ("LEN", ("ab\t",), 3),
        ("LEN", ("   ",), 0),
        ("LEN", ("a😀",), 2),
        ("LEN", (None,), None),
    )


def test_trims_remove_every_kind_of_white_space() -> None:
    text = "\u3000\t a\u00a0b \u2028\r\n"
    check(
        ("TRIM", (text,), "a\u00a0b"),
        ("LTRIM", (text,), "a\u00a0b \u2028\r\n"),
        ("RTRIM", (text,), "\u3000\t a\u00a0b"),
        ("TRIM", (None,), None),
    )


def test_strings_are_put_together() -> None:
    check(
        ("CONCAT", ("a", None, "b"), "ab"),
        ("CONCAT", (None, None), ""),
        ("CONCAT", ("n", 7, " ", 21.0, " ", True), "n7 21 true"),
        ("CONCAT", (time("2026-03-01T10:00:00.1234567Z"), ""), "2026-03-01T10:00:00.1234567Z"),
        ("CONCAT_WS", (", ", "1 Way", None, "Redmond", "WA"), "1 Way, Redmond, WA"),
        ("CONCAT_WS", (", ", None, None), ""),
        ("CONCAT_WS", (", ", "", "a"), ", a"),
        ("CONCAT_WS", (None, "a", "b"), "ab"),
        ("REPLICATE", ("0", 3), "000"),
        ("REPLICATE", ("0", 0), ""),
        ("REPLICATE", ("0", -1), None),
        ("REPLICATE", (None, 3), None),
        ("SPACE", (2,), "  "),
        ("SPACE", (-1,), None),
    )


def test_strings_are_changed() -> None:
    check(
        ("REPLACE", ("abcde", "cd", "xx"), "abxxe"),
        ("REPLACE", ("cdabcd", "cd", "x"), "xabx"),
        ("REPLACE", ("abcde", "gh", "xx"), "abcde"),
        ("REPLACE", ("abcde", "cde", ""), "ab"),
        ("REPLACE", ("abcde", "", "xxx"), "abcde"),
        ("REPLACE", ("", "cde", "xxx"), ""),
        ("REPLACE", ("abcde", "CD", "x"), "abcde"),
        ("REPLACE", (None, "cde", "xxx"), None),
        ("REPLACE", ("abcde", None, "xxx"), None),
        ("REPLACE", ("abcde", "cde", None), None),
        ("TRANSLATE", ("2*[3+4]/{7-2}", "[]{}", "()()"), "2*(3+4)/(7-2)"),
        ("TRANSLATE", ("aba", "ab", "ba"), "bab"),
        ("TRANSLATE", ("a", None, "b"), None),
        ("REVERSE", ("a😀b",), "b😀a"),
        ("UPPER", ("ab1é",), "AB1É"),
        ("LOWER", ("AB1É",), "ab1é"),
        ("UPPER", (None,), None),
    )


def test_unicode_and_nchar_convert_between_characters_and_code_points() -> None:
    check(
        ("UNICODE", ("茶b",), 33590),
        ("UNICODE", ("😀",), 128512),
        ("UNICODE", ("",), None),
        ("UNICODE", (None,), None),
        ("NCHAR", (33590,), "茶"),
        ("NCHAR", (128512,), "😀"),
        ("NCHAR", (65,), "A"),
        ("NCHAR", (-1,), None),
        ("NCHAR", (1114112,), None),
        ("NCHAR", (None,), None),
    )


def test_quotes_dollars_and_backslashes_mean_themselves() -> None:
    odd = "it's ${env:HOME} \\ $1"
    check(
        ("REPLACE", ("a", "a", odd), odd),
        ("CHARINDEX", ("\\ $1", odd), 18),
        ("PATINDEX", ("%\\ $1", odd), 18),
        ("CONCAT", (odd, odd), odd + odd),
    )


def test_each_row_may_have_its_own_pattern() -> None:
    rows = pa.table({"x": ["ab", "ab", None, "a1", "b%"], "p": ["%b", None, "%", "%[0-9]%", "%[%]"]})
    text, pattern = (Value(column(name), AsaType.STRING) for name in ("x", "p"))
    assert columns([call("PATINDEX", pattern, text).node], rows)[0].to_pylist() == [2, None, None, 2, 2]
    patterns = pa.table({"x": ["aB", "ab"], "p": ["b", "^b"]})
    assert columns([call("REGEXMATCH", text, pattern).node], patterns)[0].to_pylist() == [2, 0]


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [("PATINDEX", ("%[a", "a"), r"PATINDEX: '%\[a': `\[` opens a set"), ("REGEXMATCH", ("a", "(a"), "cannot use this")],
)
def test_a_computed_pattern_that_is_not_supported_stops_the_run(
    name: str, given: tuple[str, str], message: str
) -> None:
    with pytest.raises(RunError, match=message):
        computed_over_columns([(name, given, None)])


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("SUBSTRING", ("abc", 1, -1), "SUBSTRING: the length is negative"),
        ("LEFT", ("abc", -1), "LEFT: the length is negative"),
        ("RIGHT", ("abc", -1), "RIGHT: the length is negative"),
        ("STUFF", ("abc", 1, -1, "x"), "STUFF: the length is negative"),
        ("TRANSLATE", ("abc", "ab", "x"), "TRANSLATE: the two lists of characters are not equally long"),
    ],
)
def test_what_t_sql_calls_an_error_stops_the_run(name: str, given: tuple[str | int, ...], message: str) -> None:
    with pytest.raises(RunError, match=message):
        computed([call(name, *given).node])


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("LEN", (), r"LEN takes 1 argument, but this has 0"),
        ("SUBSTRING", ("a", 1), r"SUBSTRING takes 3 arguments, but this has 2"),
        ("CHARINDEX", ("a",), r"CHARINDEX takes 2 to 3 arguments, but this has 1"),
        ("CONCAT", ("a",), r"CONCAT takes 2 or more arguments, but this has 1"),
        ("UPPER", (5,), r"UPPER takes nvarchar\(max\) here, but this is bigint: write CAST\(… AS nvarchar\(max"),
        ("PATINDEX", ("%[a%", "a"), r"column 17: `\[` opens a set that is never closed"),
        ("REGEXMATCH", ("a", "(a"), "column 24: REGEXMATCH cannot use this pattern"),
        ("REGEXMATCH", ("a", "(?<n>a)"), "cannot use this pattern"),
        ("REGEXMATCH", ("a", "a++"), "cannot use this pattern"),
        (
            "REGEXMATCH",
            ("a", "Straße"),
            "it is not known which letters are equal to ß in ASA: write `.` for it",
        ),
        ("REGEXMATCH", ("a", "[À-ÿ]"), "À-ÿ: REGEXMATCH ignores case"),
        ("REGEXMATCH", ("a", r"(a)\1"), r"`\\1` is not supported"),
        ("REGEXMATCH", ("a", r"\p{L}"), "cannot use this pattern"),
        ("REGEXMATCH", ("a", "[]"), "cannot use this pattern"),
    ],
)
def test_an_impossible_call_is_refused(name: str, given: tuple[str | int, ...], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        call(name, *given)
