"""Check a query without a pipeline, with the inputs that its names suggest.

Each statement is compiled by itself, so that one refusal does not hide the others. If all compile, they are compiled
together, because they may contradict each other, such as on the type of a field. Not so if the query calls JavaScript
functions: each may return another type, and with wrong ones, statements that run would be refused.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recapture.errors import DefinitionError
from recapture.formats.event_hubs import CaptureInput
from recapture.formats.iot_hub import IotHubInput
from recapture.model import AsaType, InputMetadata, JavaScriptFunction
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery
from recapture.query.parse.asaql import parse
from recapture.tools.check_query.statements import Names, Statement, names_of, statements_of, together

_PLACE = re.compile(r"query, line (\d+), column (\d+): (.*)", re.DOTALL)
_RESULTS = (AsaType.STRING, AsaType.FLOAT, AsaType.BIGINT, AsaType.DATETIME, AsaType.RECORD, AsaType.ARRAY)
"""Types that the functions of a query may return: the first with which it compiles."""
_SCALAR = "function main() { return null; }"
_AGGREGATE = """
function main() {
    this.init = function () {}; this.accumulate = function () {}; this.computeResult = function () { return null; };
}
"""


@dataclass(frozen=True)
class Refusal:
    """Why some statements do not run."""

    line: int | None
    """Line in the query, from 1; None if the reason has no place."""
    column: int | None
    what: str
    """What is wrong and what to write instead, with the line of the query."""
    outputs: tuple[str, ...]
    """Outputs that are not written; none if the statements contradict each other."""


@dataclass(frozen=True)
class CheckedOutput:
    """An output of a statement that runs."""

    alias: str
    columns: dict[str, str]
    """Types of the published columns, by name."""


@dataclass(frozen=True)
class CheckedInput:
    """An input as the statements that run read it."""

    alias: str
    is_reference: bool
    fields: dict[str, str]
    """Types of the fields that are read, by name with dots."""


@dataclass(frozen=True)
class CheckedQuery:
    """What runs of a query, and what does not."""

    inputs: tuple[CheckedInput, ...]
    outputs: tuple[CheckedOutput, ...]
    refusals: tuple[Refusal, ...]
    assumed: tuple[str, ...]
    """What the check assumes, in sentences."""

    @property
    def runs(self) -> bool:
        """Whether all of the query runs."""
        return not self.refusals


def check(text: str) -> CheckedQuery:
    """Return what runs of a query, and what does not."""
    try:
        script = parse(text)
        names = names_of(script)
        statements = list(statements_of(script))
    except DefinitionError as error:
        return CheckedQuery((), (), (_refusal(error, ()),), ())
    compiled: list[CompiledQuery] = []
    refused: dict[str, Refusal] = {}
    for statement in statements:
        try:
            compiled.append(_compiled(statement, names_of(parse(statement.text))))
        except DefinitionError as error:
            before = refused.get(str(error))
            outputs = (*(before.outputs if before else ()), *statement.outputs)
            refused[str(error)] = _refusal(error, tuple(dict.fromkeys(outputs)))
    if not refused and len(statements) > 1 and not (names.functions or names.aggregates):
        try:
            compiled = [_compiled(together(script), names)]
        except DefinitionError as error:
            compiled = []  # what runs alone does not run in this query
            refused[str(error)] = _refusal(error, ())
    ordered = sorted(refused.values(), key=lambda refusal: (refusal.line or 0, refusal.column or 0))
    return CheckedQuery(
        tuple(_inputs(compiled, names)), tuple(_outputs(compiled)), tuple(ordered), tuple(_assumed(names, statements))
    )


def _compiled(statement: Statement, names: Names) -> CompiledQuery:
    """Return a statement, compiled with the first inputs and functions that suit it.

    Raise the DefinitionError of the attempt that got furthest in the text.
    """
    furthest: DefinitionError | None = None
    for inputs, functions in itertools.product(_possible_inputs(names), _possible_functions(names)):
        try:
            return compile_query(statement.text, inputs=inputs, output_aliases=statement.outputs, functions=functions)
        except DefinitionError as error:
            furthest = error if furthest is None or _place(error) > _place(furthest) else furthest
    assert furthest is not None
    raise furthest


def _possible_inputs(names: Names) -> Iterator[Mapping[str, InputMetadata | None]]:
    """Yield what the inputs may be: reference data, and events of an event hub or an IoT hub."""
    for metadata in (CaptureInput.metadata, IotHubInput.metadata):
        yield {alias: None if alias.lower() in names.references else metadata for alias in names.inputs}


def _possible_functions(names: Names) -> Iterator[Sequence[JavaScriptFunction]]:
    for kind in _RESULTS if names.functions or names.aggregates else _RESULTS[:1]:
        scalars = [JavaScriptFunction(name, _SCALAR, kind) for name in names.functions]
        yield [*scalars, *(JavaScriptFunction(name, _AGGREGATE, kind, (None,), True) for name in names.aggregates)]


def _inputs(compiled: Sequence[CompiledQuery], names: Names) -> Iterator[CheckedInput]:
    fields: dict[tuple[str, bool], dict[str, str]] = {}
    for query in compiled:
        read = [(input_.alias, False, input_.body_columns) for input_ in query.inputs]
        read += [(reference.alias, True, reference.body_columns) for reference in query.references]
        for alias, is_reference, columns in read:
            known = fields.setdefault((alias, is_reference), {})
            # a column of values comes last: it replaces that of their types
            by_kind = sorted(columns, key=lambda column: not column.is_kind)
            paths = {".".join(column.path): column for column in by_kind if column.path}
            known |= {path: str(column.type) for path, column in paths.items() if path.lower() not in names.strings}
    for (alias, is_reference), known in fields.items():
        yield CheckedInput(alias, is_reference, known)


def _outputs(compiled: Sequence[CompiledQuery]) -> Iterator[CheckedOutput]:
    for query in compiled:
        for output in query.outputs:
            columns = {column.name: str(column.type) for column in output.columns}
            yield CheckedOutput(output.alias, columns)


def _assumed(names: Names, statements: Sequence[Statement]) -> Iterator[str]:
    called = [f"udf.{name}" for name in names.functions] + [f"uda.{name}" for name in names.aggregates]
    for name in called:
        yield f"{name} is a JavaScript function: its script and its output_type are not checked"
    if called and len(statements) > 1:
        yield "it is not checked whether the statements contradict each other, because they call JavaScript functions"


def _refusal(error: DefinitionError, outputs: tuple[str, ...]) -> Refusal:
    match = _PLACE.fullmatch(str(error.args[0]))
    if match is None:
        return Refusal(None, None, str(error), outputs)
    return Refusal(int(match[1]), int(match[2]), match[3], outputs)


def _place(error: DefinitionError) -> tuple[int, int]:
    refusal = _refusal(error, ())
    return refusal.line or 0, refusal.column or 0


def as_document(checked: CheckedQuery) -> dict[str, Any]:
    """Return what `recapture check-query --json` prints."""
    return {
        "runs": checked.runs,
        "inputs": [vars(input_) for input_ in checked.inputs],
        "outputs": [vars(output) for output in checked.outputs],
        "refusals": [{**vars(refusal), "outputs": list(refusal.outputs)} for refusal in checked.refusals],
        "assumed": list(checked.assumed),
    }
