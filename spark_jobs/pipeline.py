"""The pipeline file: what to read, how the job is set, where to publish. Validated when it is loaded."""

import os
import re
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from yaml.reader import ReaderError

from spark_jobs.capture.names import DEFAULT_PATH, CaptureNames
from spark_jobs.errors import DefinitionError
from spark_jobs.query import CompiledQuery, compile_query
from spark_jobs.time_model.policies import Policies
from spark_jobs.time_model.ticks import from_seconds

EARLY_SECONDS = 300
"""ASA's early arrival window (time model, section 2)."""

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Alias = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$")]

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _only_default(path: str) -> str:
    if path != DEFAULT_PATH:
        raise ValueError(f"only the default name format is read so far: {DEFAULT_PATH}")
    return path


class Input(_Section):
    """The Capture container."""

    alias: Alias
    container: str
    path: Annotated[str, AfterValidator(_only_default)] = DEFAULT_PATH
    namespace: Annotated[str, Field(min_length=1)]
    event_hub: Annotated[str, Field(min_length=1)]
    capture_interval_seconds: Annotated[int, Field(ge=60, le=900)] = 300
    arrival_time: Literal["BlobLastModified"] = "BlobLastModified"

    @property
    def names(self) -> CaptureNames:
        return CaptureNames(self.namespace, self.event_hub)


class Job(_Section):
    """Names, meaning, defaults and ranges as in ASA's own job definition (time model, section 2)."""

    policy: Annotated[Literal["Adjust", "Drop"], Field(alias="eventsOutOfOrderPolicy")] = "Adjust"
    out_of_order_seconds: Annotated[int, Field(alias="eventsOutOfOrderMaxDelayInSeconds", ge=0, le=599)] = 0
    late_seconds: Annotated[int, Field(alias="eventsLateArrivalMaxDelayInSeconds", ge=-1, le=1_814_399)] = 5
    """-1: no limit."""
    output_error_policy: Annotated[Literal["Drop", "Stop"], Field(alias="outputErrorPolicy")] = "Drop"
    query: str


class Output(_Section):
    """The published Delta table."""

    alias: Alias
    table: str


class Quality(_Section):
    """The suite that the aggregates must pass."""

    suite: str


class Pipeline(_Section):
    """One pipeline file."""

    name: Name
    input: Input
    job: Job
    output: Output
    quality: Quality | None = None
    slice_hours: Literal[1, 2, 3, 4, 6, 8, 12, 24] = 1
    definition: Annotated[Path, Field(exclude=True)]
    """The file itself."""

    @cached_property
    def query(self) -> CompiledQuery:
        return compile_query(self.job.query, input_alias=self.input.alias, output_alias=self.output.alias)

    @property
    def policies(self) -> Policies | None:
        """None without TIMESTAMP BY: then System.Timestamp is the arrival time and no policy applies."""
        if self.query.timestamp_by is None:
            return None
        late = self.job.late_seconds
        return Policies(
            out_of_order=from_seconds(self.job.out_of_order_seconds),
            late=None if late == -1 else from_seconds(late),
            early=from_seconds(EARLY_SECONDS),
            adjust=self.job.policy == "Adjust",
        )

    @property
    def suite_path(self) -> Path | None:
        """The suite's file: expectations/NAME.json beside the project's dags, or a path beside the pipeline file."""
        if self.quality is None:
            return None
        beside = self.definition.parent / self.quality.suite
        if beside.suffix == ".json":
            return beside
        for folder in self.definition.resolve().parents:
            if (folder / "expectations").is_dir():
                return folder / "expectations" / f"{self.quality.suite}.json"
        return self.definition.parent / "expectations" / f"{self.quality.suite}.json"

    @property
    def warnings(self) -> list[str]:
        """What the definition allows but its author hardly meant."""
        late, interval = self.job.late_seconds, self.input.capture_interval_seconds
        if self.policies is None or late == -1 or late >= interval:
            return []
        return [
            f"{self.definition}: eventsLateArrivalMaxDelayInSeconds is {late}, less than the capture interval of "
            f"{interval}: with the blob's LastModified as arrival time almost every event will be late; "
            f"set at least {interval}"
        ]


def load(path: Path) -> Pipeline:
    """Read and validate a pipeline file, its query included.

    Raises DefinitionError with the file, the line and what to do.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DefinitionError(f"{path}: the pipeline file cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{path}: the pipeline file is not UTF-8 text") from error
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        _require_readable(path, root)
        values = yaml.safe_load(text)
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


def _require_readable(path: Path, node: yaml.Node | None) -> None:
    """Refuse a key that is no word or stands twice in its mapping, and a date or a number that is none."""
    if isinstance(node, yaml.ScalarNode):
        try:
            yaml.SafeLoader("").construct_object(node)
        except ValueError as error:
            where = f"{path}:{node.start_mark.line + 1}"
            reason = "looks like a number or a date and is none: put quotation marks around a text"
            raise DefinitionError(f"{where}: {node.value[:40]} {reason}") from error
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _require_readable(path, item)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            where = f"{path}:{key.start_mark.line + 1}"
            if key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
                raise DefinitionError(f"{where}: unknown key, not even a word: remove it or correct its name")
            if key.value in seen:
                raise DefinitionError(f"{where}: {key.value} stands here twice: remove one")
            seen.add(key.value)
            _require_readable(path, value)


def _checked(pipeline: Pipeline, root: yaml.Node) -> Pipeline:
    from spark_jobs.storage import open_container

    path = pipeline.definition
    for place, url in (
        (("input", "container"), pipeline.input.container),
        (("output", "table"), pipeline.output.table),
        (("job", "query"), None),
    ):
        try:
            if url is None:
                _ = pipeline.query
            else:
                open_container(url)
        except DefinitionError as error:
            told = _without_values(str(error), _written(root, place))
            raise DefinitionError(f"{path}:{_line(root, place)}: {'.'.join(place)}: {told}") from error
    return pipeline


def _with_absolute_places(pipeline: Pipeline) -> Pipeline:
    def absolute(place: str) -> str:
        is_url = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", place)
        return place if is_url else (pipeline.definition.parent / place).resolve().as_uri()

    return pipeline.model_copy(
        update={
            "input": pipeline.input.model_copy(update={"container": absolute(pipeline.input.container)}),
            "output": pipeline.output.model_copy(update={"table": absolute(pipeline.output.table)}),
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
    place = tuple(problem["loc"])
    where = ".".join(map(str, place))
    match problem["type"]:
        case "missing":
            return f"{path}:{_line(root, place[:-1])}: {where} is missing: add it"
        case "extra_forbidden":
            return f"{path}:{_line(root, place)}: {where}: unknown key: remove it or correct its name"
        case "model_type":
            return f"{path}:{_line(root, place)}: {where}: should be a mapping, its keys on lines of their own"
    written = _written(root, place)
    given = repr(written) if isinstance(problem["input"], str) else written or "nothing"
    shown = "" if written is None else f" ({given} given)"
    reason = problem["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{path}:{_line(root, place)}: {where}: {reason}{shown}"


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
