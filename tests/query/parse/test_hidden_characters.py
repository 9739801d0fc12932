"""Characters that an editor does not show, in the text of a query."""

import pytest

from recapture.errors import DefinitionError
from recapture.run.plan_relations import plan_relations
from tests.query.small_stream import at, compiled, rows

NO_WIDTH = ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff"]
BLANKS = ["\u00a0", "\u2007", "\u202f", "\u3000", "\u2028", "\u0085"]


@pytest.mark.parametrize("hidden", [*NO_WIDTH, *BLANKS])
def test_a_hidden_character_between_words_and_signs_is_a_blank(hidden: str) -> None:
    text = f"{hidden}SELECT id,{hidden} MAX(v){hidden} AS v INTO out FROM telemetry GROUP BY id, Tumbling(s, 1){hidden}"
    plain = "SELECT id, MAX(v) AS v INTO out FROM telemetry GROUP BY id, Tumbling(s, 1)"
    assert compiled(text) == compiled(plain)


def test_a_zero_width_space_after_a_comma_does_not_become_a_column() -> None:
    assert rows("SELECT id,\u200b v INTO out FROM telemetry", [at(1, id="a", v="b")]) == [[{"id": "a", "v": "b"}]]


@pytest.mark.parametrize("blank", BLANKS)
def test_a_no_break_space_divides_words(blank: str) -> None:
    assert compiled(f"SELECT{blank}id{blank}INTO out FROM telemetry") == compiled("SELECT id INTO out FROM telemetry")


@pytest.mark.parametrize(
    ("text", "column", "name"),
    [
        ("SELECT device\u200bId INTO out FROM telemetry", 14, "U+200B ZERO WIDTH SPACE"),
        ("SELECT device\ufeff\u200bId INTO out FROM telemetry", 14, "U+FEFF ZERO WIDTH NO-BREAK SPACE"),
        ("SELECT v + 1\u20600 AS v INTO out FROM telemetry", 13, "U+2060 WORD JOINER"),
        ("SELECT id,\u202e v INTO out FROM telemetry", 11, "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("SELECT device\u00adId INTO out FROM telemetry", 14, "U+00AD SOFT HYPHEN"),
        ("SELECT id, \u3164 v INTO out FROM telemetry", 12, "U+3164 HANGUL FILLER"),
        ("SELECT id, \ufe0f v INTO out FROM telemetry", 12, "U+FE0F VARIATION SELECTOR-16"),
        ("SELECT id, \u2800 v INTO out FROM telemetry", 12, "U+2800 BRAILLE PATTERN BLANK"),
        ("SELECT id, \x07 v INTO out FROM telemetry", 12, "U+0007"),
    ],
)
def test_any_other_hidden_character_is_refused_by_name(text: str, column: int, name: str) -> None:
    with pytest.raises(DefinitionError) as error:
        compiled(f"-- a comment\n{text}")
    message = f"query, line 2, column {column}: the hidden character {name} is not supported here: remove it"
    assert str(error.value).split("\n")[0] == message


@pytest.mark.parametrize("hidden", [*NO_WIDTH, "\u00a0", "\u00ad", "\u202e", "\u3164"])
def test_strings_quoted_names_and_comments_keep_hidden_characters(hidden: str) -> None:
    name = f"device{hidden}Id"
    columns = f"[{name}], telemetry.\"{name}\" AS other, 'a{hidden}b' AS s"
    text = f"SELECT {columns} INTO out FROM telemetry -- {hidden}\n/*{hidden}*/"
    [read] = compiled(text).inputs
    [column] = [column for column in read.columns if not column.is_kind]
    assert column.path == (name,)
    assert f"s = {f'a{hidden}b'!r}" in "\n".join(plan_relations(compiled(text)))


def test_hidden_blanks_do_not_change_the_definition_of_a_run() -> None:
    text = "SELECT id,{} v INTO out FROM telemetry"
    assert compiled(text.format("\u200b")).canonical == compiled(text.format("")).canonical
