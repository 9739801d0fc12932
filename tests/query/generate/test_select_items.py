"""Select items: how they are written, and what a query over them selects."""

from sqlglot import exp

from recapture.query.generate import trees
from recapture.query.generate.select_items import SelectItem, column, columns, select_list, struct


def test_an_item_has_its_expression_and_its_name() -> None:
    assert SelectItem("n", trees.spark_call("count", exp.Star())).sql == "count(*) AS `n`"


def test_a_column_under_its_own_name_needs_no_alias() -> None:
    assert column("a b").sql == "`a b`"
    assert SelectItem("x", trees.column("x")) == column("x")
    assert not SelectItem("X", trees.column("x")).is_column
    assert not SelectItem("x", trees.column("x", "t")).is_column


def test_names_and_texts_are_quoted() -> None:
    one = exp.Literal.number(1)
    assert select_list([SelectItem("odd ` name", one), column("k")]) == "1 AS `odd `` name`, `k`"
    written = trees.render(struct([SelectItem("it's", one), SelectItem("k", trees.column("k"))]))
    assert written == r"named_struct('it\'s', 1, 'k', `k`)"


def test_a_query_over_items_keeps_their_names() -> None:
    assert columns([SelectItem("n", trees.column("m"))]) == [column("n")]
