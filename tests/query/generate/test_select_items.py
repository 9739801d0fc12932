"""Select items: how they are written, and what a query over them adopts."""

from recapture.query.generate.select_items import SelectItem, column, columns, select_list, struct


def test_an_item_has_its_expression_and_its_name() -> None:
    assert SelectItem("n", "count(1)").sql == "count(1) AS `n`"


def test_an_adopted_column_needs_no_name() -> None:
    assert column("a b").sql == "`a b`"
    assert SelectItem("x", "`x`") == column("x")
    assert not SelectItem("X", "`x`").is_column


def test_names_and_texts_are_quoted() -> None:
    assert select_list([SelectItem("odd ` name", "1"), column("k")]) == "1 AS `odd `` name`, `k`"
    assert struct([SelectItem("it's", "1"), SelectItem("k", "`k`")]) == r"named_struct('it\'s', 1, 'k', `k`)"


def test_a_query_over_items_adopts_their_names() -> None:
    """An expression may contain ` AS `; its name does not begin there."""
    assert columns([SelectItem("n", "concat(' AS `m`', `k`)")]) == [column("n")]
