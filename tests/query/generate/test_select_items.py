"""Select items: how they are written, and what a query over them selects."""

from recapture.query.generate.select_items import SqlItem, column, columns, select_list, struct, takes_over


def test_an_item_has_its_value_and_its_name() -> None:
    assert select_list([SqlItem("n", "count(*)"), SqlItem("b", "TRUE")]) == "count(*) AS `n`, TRUE AS `b`"


def test_a_column_under_its_own_name_needs_no_alias() -> None:
    assert select_list([column("a b")]) == "`a b`"
    assert SqlItem("x", "`x`") == column("x")
    assert not takes_over(SqlItem("X", "`x`"))
    assert not takes_over(SqlItem("x", "`t`.`x`"))


def test_names_are_quoted() -> None:
    assert select_list([SqlItem("odd ` name", "1"), column("k")]) == "1 AS `odd `` name`, `k`"
    assert struct([SqlItem("it's", "1"), column("k")]) == r"named_struct('it\'s', 1, 'k', `k`)"


def test_a_query_over_items_keeps_their_names() -> None:
    assert columns([SqlItem("n", "`m`")]) == [column("n")]
