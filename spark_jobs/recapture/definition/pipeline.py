"""The pipeline file: what to read, how the job is set, where to publish. Validated when it is loaded."""

import os
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field, ValidationError
from yaml.reader import ReaderError

from recapture.archive.manifest import ArrivalTime
from recapture.errors import DefinitionError
from recapture.formats.base import Number, Section, reject_bool
from recapture.formats.events import Reader
from recapture.formats.sections import DEFAULT_FORMAT, Input, formats_with
from recapture.model import fields
from recapture.query import CompiledOutput, CompiledQuery, compile_query
from recapture.storage.address import AzureAddress, parse, spelling
from recapture.time_model.policies import EARLY_SECONDS, Policies
from recapture.time_model.ticks import from_seconds

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Seconds = Annotated[int, Field(ge=0, le=1_814_399)]
"""Up to three weeks, as ASA's late tolerance."""
Alias = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$")]

LARGEST_FILE = 256 * 1024
"""Bytes of a pipeline file; real ones have a few thousand."""
DEEPEST = 50
MOST_VALUES = 10_000
"""Values in a pipeline file, each alias replaced by what it stands for."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Job(Section):
    """Names, meaning, defaults and ranges as in ASA's own job definition, then ours (time model, section 2)."""

    policy: Annotated[Literal["Adjust", "Drop"], Field(alias="eventsOutOfOrderPolicy")] = "Adjust"
    out_of_order_seconds: Annotated[Number, Field(alias="eventsOutOfOrderMaxDelayInSeconds", ge=0, le=599)] = 0
    late_seconds: Annotated[Number, Field(alias="eventsLateArrivalMaxDelayInSeconds", ge=-1, le=1_814_399)] = 5
    """-1: no limit."""
    output_error_policy: Annotated[Literal["Drop", "Stop"], Field(alias="outputErrorPolicy")] = "Drop"
    early_arrival_seconds: Annotated[
        Seconds | None, reject_bool("write a number of seconds, or null for no early window")
    ] = EARLY_SECONDS
    """None: no early window."""
    early_policy: Literal["Drop", "Adjust"] = "Drop"
    query: str


class Quality(Section):
    """The suite that the aggregates must pass."""

    suite: str


class Output(Section):
    """A published Delta table."""

    alias: Alias
    table: str
    quality: Quality | None = None

    @property
    def metrics_table(self) -> str:
        """The table beside it that holds the metrics of its slices."""
        return f"{self.table.rstrip('/')}_metrics"

    @property
    def publications_table(self) -> str:
        """The table that says which run each slice holds, if this is the first output."""
        return f"{self.table.rstrip('/')}_publications"

    @property
    def quarantine_table(self) -> str:
        """The table beside it that holds what was set aside, where it is the first output."""
        return f"{self.table.rstrip('/')}_quarantine"


def _listed(outputs: object) -> object:
    """One output stands for a list of one."""
    if outputs == []:
        raise ValueError("name at least one output, with its alias and its table")
    return outputs if isinstance(outputs, list) else [outputs]


class Pipeline(Section):
    """One pipeline file."""

    name: Name
    input: Input
    job: Job
    outputs: Annotated[tuple[Output, ...], Field(alias="output"), BeforeValidator(_listed)]
    """At least one; in the first one's folder lies what is kept of a run."""
    quality: Quality | None = None
    """Of the only output."""
    slice_hours: Literal[1, 2, 3, 4, 6, 8, 12, 24] = 1
    definition: Annotated[Path, Field(exclude=True)]
    """The file itself."""

    @cached_property
    def query(self) -> CompiledQuery:
        aliases = [output.alias for output in self.outputs]
        return compile_query(
            self.job.query,
            input_alias=self.input.alias,
            output_aliases=aliases,
            input_metadata=self.input.metadata,
        )

    def compiled(self, output: Output) -> CompiledOutput:
        """What the query writes into an output."""
        return next(each for each in self.query.outputs if each.alias.lower() == output.alias.lower())

    def reader(self) -> Reader:
        """Return the reader of the input's blobs. It travels to the executors."""
        return self.input.reader((*self.query.body_columns, *fields(self.query.timestamp_by)))

    def input_holds(self, folder: str) -> bool:
        """Whether the files of a table in this folder, in its `spelling`, would be blobs of the input."""
        container = f"{spelling(self.input.container)}/"
        inside = f"{folder}/a/b.parquet"
        return inside.startswith(container) and self.input.names.parse(inside.removeprefix(container)) is not None

    @property
    def policies(self) -> Policies | None:
        """None without TIMESTAMP BY: then System.Timestamp is the arrival time and no policy applies."""
        if self.query.timestamp_by is None:
            return None
        late, early = self.job.late_seconds, self.job.early_arrival_seconds
        return Policies(
            out_of_order=from_seconds(self.job.out_of_order_seconds),
            late=None if late == -1 else from_seconds(late),
            early=None if early is None else from_seconds(early),
            adjust=self.job.policy == "Adjust",
            adjust_early=self.job.early_policy == "Adjust",
        )

    def suite_path(self, output: Output) -> Path | None:
        """An output's suite: expectations/NAME.json beside the project's dags, or a path beside the pipeline file."""
        quality = output.quality or self.quality
        if quality is None:
            return None
        beside = self.definition.parent / quality.suite
        if beside.suffix == ".json":
            return beside
        for folder in self.definition.resolve().parents:
            if (folder / "expectations").is_dir():
                return folder / "expectations" / f"{quality.suite}.json"
        return self.definition.parent / "expectations" / f"{quality.suite}.json"

    @property
    def warnings(self) -> list[str]:
        """What the definition allows but its author hardly meant."""
        if self.policies is None:
            return []
        return [f"{self.definition}: {warning}" for warning in (*self._late_warnings(), *self._early_warnings())]

    def _late_warnings(self) -> Iterator[str]:
        late, interval = self.job.late_seconds, self.input.interval_seconds
        by_blob = self.input.arrival_time is ArrivalTime.BLOB_LAST_MODIFIED
        if late == -1:
            yield (
                "eventsLateArrivalMaxDelayInSeconds is -1: every later arrival counts, so a slice is read up to the "
                "newest blob and is never final; its verdicts depend on where reading began"
            )
        elif late < interval and by_blob and self.input.names.on_schedule:
            yield (
                f"eventsLateArrivalMaxDelayInSeconds is {late}, less than the {self.input.interval_name} of "
                f"{interval}: with the blob's LastModified as arrival time almost every event will be late; set at "
                f"least {interval}"
            )

    def _early_warnings(self) -> Iterator[str]:
        early = self.job.early_arrival_seconds
        if early is None:
            yield (
                "the early window is off: runs do not repeat what the live job did, and no slice can be computed on "
                "its own: what it holds depends on where reading began; set early_arrival_seconds to "
                f"{EARLY_SECONDS}"
            )
        elif early != EARLY_SECONDS:
            yield (
                f"early_arrival_seconds is {early}, in ASA it is {EARLY_SECONDS}: runs do not repeat what the live job "
                "did"
            )
        if early is not None and self.job.early_policy == "Adjust":
            yield "early_policy is Adjust, ASA drops early events: runs do not repeat what the live job did"


def load(path: Path) -> Pipeline:
    """Read and validate a pipeline file, its query included.

    Raises DefinitionError with the file, the line and what to do.
    """
    text = _text(path)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        _require_readable(path, root)
        values = None if root is None else yaml.SafeLoader("").construct_document(root)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise DefinitionError(f"{path}:{line}: not YAML: {error.problem}") from error
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise DefinitionError(f"{path}:{line}: not YAML: a character that may not stand in a text") from error
    except RecursionError:
        raise DefinitionError(f"{path}: the pipeline file is nested too deep") from None
    if not isinstance(values, dict) or root is None:
        raise DefinitionError(f"{path}:1: a pipeline file is a mapping with name, input, job and output")
    if "definition" in values:
        raise DefinitionError(f"{path}:{_line(root, ('definition',))}: definition: unknown key")
    values = _with_environment(path, root, values, ())
    try:
        pipeline = Pipeline(**values, definition=path.absolute())
    except ValidationError as error:
        raise DefinitionError("; ".join(_sentence(path, root, dict(problem)) for problem in error.errors())) from error
    return _checked(_with_absolute_places(pipeline), root)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise DefinitionError(f"{path}: the pipeline file is larger than {LARGEST_FILE // 1024} KiB: shorten it")
        return content.decode()
    except OSError as error:
        raise DefinitionError(f"{path}: the pipeline file cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{path}: the pipeline file is not UTF-8 text") from error


def _require_readable(path: Path, root: yaml.Node | None) -> None:
    """Raise DefinitionError unless every value can be read, and aliases do not make a small file large or endless."""
    measured: dict[int, tuple[int, int]] = {}
    """By node, the levels and the values that it stands for; none of either while they are being counted."""

    def measure(node: yaml.Node, level: int) -> tuple[int, int]:
        if id(node) not in measured and level <= DEEPEST:
            measured[id(node)] = (0, 0)
            inner = [measure(child, level + 1) for child in _readable(path, node)]
            levels = 1 + max((levels for levels, _ in inner), default=0)
            measured[id(node)] = (levels, 1 + sum(values for _, values in inner))
        levels, values = measured.get(id(node), (0, 0))
        if not 0 < levels <= DEEPEST:
            raise DefinitionError(
                f"{path}:{_line_of(node)}: the file is nested deeper than {DEEPEST} levels: flatten it"
            )
        if values > MOST_VALUES:
            raise DefinitionError(
                f"{path}:{_line_of(node)}: aliases stand for more than {MOST_VALUES:,} values: use fewer"
            )
        return levels, values

    if root is not None:
        measure(root, 1)


def _line_of(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _readable(path: Path, node: yaml.Node) -> list[yaml.Node]:
    """Return the values in a node.

    Raises DefinitionError for a key that is not a string or stands twice, and for a date or a number that is not one.
    """
    if isinstance(node, yaml.ScalarNode):
        try:
            yaml.SafeLoader("").construct_object(node)
        except ValueError as error:
            where = f"{path}:{node.start_mark.line + 1}"
            reason = "looks like a number or a date and is none: put quotation marks around a text"
            raise DefinitionError(f"{where}: {node.value[:40]} {reason}") from error
        return []
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, _ in node.value:
            where = f"{path}:{key.start_mark.line + 1}"
            if key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
                raise DefinitionError(f"{where}: keys must be strings: quote or remove this key")
            if key.value in seen:
                raise DefinitionError(f"{where}: {key.value} stands here twice: remove one")
            seen.add(key.value)
        return [value for _, value in node.value]
    return list(node.value)


def _checked(pipeline: Pipeline, root: yaml.Node) -> Pipeline:
    def refuse(place: tuple[str | int, ...], reason: str) -> DefinitionError:
        place = _as_written(root, place)
        told = _without_values(reason, _written(root, place))
        return DefinitionError(f"{pipeline.definition}:{_line(root, place)}: {'.'.join(map(str, place))}: {told}")

    tables = [(("output", place, "table"), output.table) for place, output in enumerate(pipeline.outputs)]
    for place, url in [(("input", "container"), pipeline.input.container), *tables]:
        try:
            parse(url)
        except DefinitionError as error:
            raise refuse(place, str(error)) from error
    try:
        _ = pipeline.input.names
    except DefinitionError as error:
        raise refuse(("input", "path"), str(error)) from error
    for key, reason in pipeline.input.conflicts():
        raise refuse(("input", key), reason)
    for place, reason in _outputs_conflicts(pipeline):
        raise refuse(place, reason)
    try:
        _ = pipeline.query
    except DefinitionError as error:
        raise refuse(("job", "query"), str(error)) from error
    return pipeline


def _outputs_conflicts(pipeline: Pipeline) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """What is wrong between the outputs: the place in the file, and the reason."""
    if pipeline.quality is not None and len(pipeline.outputs) > 1:
        yield ("quality",), "there are several outputs: write quality under each output that has a suite"
    elif pipeline.quality is not None and pipeline.outputs[0].quality is not None:
        yield ("quality",), "the output has a suite of its own: write quality here or there"
    taken: list[tuple[Output, tuple[str, ...]]] = []
    for number, output in enumerate(pipeline.outputs):
        address = parse(output.table)
        if isinstance(address, AzureAddress) and not address.prefix:
            reason = "a table needs a name in its container: its metrics lie beside it, in the table NAME_metrics"
            yield ("output", number, "table"), reason
        folders = _folders(output)
        if any(map(pipeline.input_holds, folders)):
            reason = "the input would read this table's own files: choose another place, or set input.path"
            yield ("output", number, "table"), reason
        for other, its_folders in taken:
            if output.alias.lower() == other.alias.lower():
                yield ("output", number, "alias"), f"another output is named {other.alias} too: rename one"
            if any(_overlap(one, two) for one in folders for two in its_folders):
                reason = f"it shares a folder with the table of {other.alias}, or with one beside it: choose another"
                yield ("output", number, "table"), reason
        taken.append((output, folders))


def _folders(output: Output) -> tuple[str, ...]:
    """Where the output's tables lie, each in its `spelling`."""
    tables = (output.table, output.metrics_table, output.quarantine_table, output.publications_table)
    return tuple(map(spelling, tables))


def _overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _with_absolute_places(pipeline: Pipeline) -> Pipeline:
    def absolute(place: str) -> str:
        is_url = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", place)
        return place if is_url else (pipeline.definition.parent / place).resolve().as_uri()

    return pipeline.model_copy(
        update={
            "input": pipeline.input.model_copy(update={"container": absolute(pipeline.input.container)}),
            "outputs": tuple(
                output.model_copy(update={"table": absolute(output.table)}) for output in pipeline.outputs
            ),
        }
    )


def _with_environment(path: Path, root: yaml.Node, value: Any, place: tuple[str | int, ...]) -> Any:
    """The value with every ${NAME} replaced by that environment variable; the query is left as it is."""
    if isinstance(value, dict):
        return {key: _with_environment(path, root, item, (*place, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_environment(path, root, item, (*place, index)) for index, item in enumerate(value)]
    if not isinstance(value, str) or place == ("job", "query"):
        return value

    def variable(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            where = ".".join(map(str, place))
            raise DefinitionError(
                f"{path}:{_line(root, place)}: {where}: the environment variable {match[1]} is not set: set it"
            )
        return os.environ[match[1]]

    return _VARIABLE.sub(variable, value)


def _without_values(message: str, written: str | None) -> str:
    """The message, with ${NAME} where the value of that variable would show: it may be a secret."""
    for name in _VARIABLE.findall(written or ""):
        if os.environ[name]:
            message = re.sub(re.escape(os.environ[name]), rf"${{{name}}}", message, flags=re.IGNORECASE)
    return message


def _sentence(path: Path, root: yaml.Node, problem: dict[str, Any]) -> str:
    """What pydantic found, and where; behind `input` it names the format, which is no key."""
    section, *rest = problem["loc"]
    place = _as_written(root, (section, *(rest[1:] if section == "input" else rest)))
    where = ".".join(map(str, place))
    match problem["type"]:
        case "union_tag_invalid":
            place = ("input", "format")
            where, problem = (
                "input.format",
                problem | {"msg": f"should be {problem['ctx']['expected_tags']}", "input": ""},
            )
        case "missing":
            return f"{path}:{_line(root, place[:-1])}: {where} is missing: add it"
        case "extra_forbidden":
            reason = _of_another_format(root, place) or "unknown key: remove it or correct its name"
            return f"{path}:{_line(root, place)}: {where}: {reason}"
        case "model_type" | "model_attributes_type":
            return f"{path}:{_line(root, place)}: {where}: should be a mapping, its keys on lines of their own"
    written = _written(root, place)
    given = repr(written) if isinstance(problem["input"], str) else written or "nothing"
    shown = "" if written is None else f" ({given} given)"
    reason = problem["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{path}:{_line(root, place)}: {where}: {reason}{shown}"


def _of_another_format(root: yaml.Node, place: tuple[str | int, ...]) -> str | None:
    """What is wrong with a key that inputs of other formats have; None where it is no such key."""
    formats = formats_with(str(place[-1])) if place[0] == "input" and len(place) == 2 else []
    if not formats:
        return None
    own = _written(root, ("input", "format")) or DEFAULT_FORMAT
    return f"a key of {' and '.join(formats)}, and this input's format is {own}: remove it, or correct input.format"


def _as_written(root: yaml.Node, place: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The place in the file: an output that stands alone has no number."""
    alone = place[:2] == ("output", 0) and not isinstance(_found(root, ("output",))[1], yaml.SequenceNode)
    return ("output", *place[2:]) if alone else place


def _line(root: yaml.Node, place: tuple[str | int, ...]) -> int:
    """The line of the key at this place, or of the innermost one that exists."""
    return _found(root, place)[0]


def _written(root: yaml.Node, place: tuple[str | int, ...]) -> str | None:
    """The text at this place as the file has it, variables included; None where it is no scalar."""
    node = _found(root, place)[1]
    return str(node.value) if isinstance(node, yaml.ScalarNode) else None


def _found(root: yaml.Node, place: tuple[str | int, ...]) -> tuple[int, yaml.Node]:
    """The innermost key on the way to a place: its line, and its value."""
    node, line = root, root.start_mark.line + 1
    for step in place:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == step), None)
            if found is None:
                break
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
            line = node.start_mark.line + 1
    return line, node
