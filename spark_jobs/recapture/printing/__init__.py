"""What the command prints on a terminal."""

from recapture.printing.comparisons import print_comparison, print_difference, print_report, print_trend
from recapture.printing.consoles import PIPE_WIDTH, console, error_console, print_error, print_warnings
from recapture.printing.definitions import FINDINGS, print_advice, print_checked_query, print_import, print_proposal
from recapture.printing.events import SHOWN_EVENTS, print_explanation, print_found, print_lineage
from recapture.printing.runs import (
    REASONS_SHOWN,
    SHOWN_ROWS,
    print_cost,
    print_plan,
    print_published,
    print_rows,
    print_run,
    print_staged,
    print_staged_rows,
    print_waiting,
)
from recapture.printing.slices import print_check, print_requests, print_rollback, print_status, print_update

__all__ = [
    "FINDINGS",
    "PIPE_WIDTH",
    "REASONS_SHOWN",
    "SHOWN_EVENTS",
    "SHOWN_ROWS",
    "console",
    "error_console",
    "print_advice",
    "print_check",
    "print_checked_query",
    "print_comparison",
    "print_cost",
    "print_difference",
    "print_error",
    "print_explanation",
    "print_found",
    "print_import",
    "print_lineage",
    "print_plan",
    "print_proposal",
    "print_published",
    "print_report",
    "print_requests",
    "print_rollback",
    "print_rows",
    "print_run",
    "print_staged",
    "print_staged_rows",
    "print_status",
    "print_trend",
    "print_update",
    "print_waiting",
    "print_warnings",
]
