"""What the rows of a query rely on although Microsoft's pages do not say it, where other readings give other rows."""

from collections.abc import Iterator

from recapture.query.model import CompiledQuery
from recapture.query.plan.matches import MatchedTable


def undocumented(query: CompiledQuery) -> Iterator[str]:
    """Yield a warning for each such rule that touches a query."""
    for output in query.outputs:
        if any(isinstance(table, MatchedTable) and table.automaton.goes_on for table in output.plan.steps):
            yield (
                f"output {output.alias}: the pattern of MATCH_RECOGNIZE can match again with further events. Each "
                "match gives a row, as in Trill; Microsoft's page does not say so: compare some rows with the job's"
            )
