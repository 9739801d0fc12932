"""The command line of `make chaos`."""

from tests.chaos.__main__ import TABLES, parser


def test_without_an_argument_every_table_is_printed() -> None:
    assert parser().parse_args([]).what == "all"


def test_each_table_can_be_printed_alone() -> None:
    assert [parser().parse_args([table]).what for table in TABLES] == list(TABLES)
