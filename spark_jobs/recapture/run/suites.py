"""The suites of a pipeline's outputs, with the parameters of a run."""

import math
from collections.abc import Mapping
from types import MappingProxyType

from recapture.definition.pipeline import Pipeline
from recapture.definition.sections import Quality
from recapture.errors import DefinitionError
from recapture.process.wording import did_you_mean
from recapture.quality import suites
from recapture.quality.suites import ParameterValue
from recapture.table.schema import SLICE_COLUMN

Parameters = Mapping[str, ParameterValue]
"""Values that a run gives to the parameters of suites, by name; a number may also be a text."""
NONE_GIVEN: Parameters = MappingProxyType({})


def load_suites(pipeline: Pipeline, parameters: Parameters = NONE_GIVEN) -> dict[str, suites.Suite]:
    """Return the outputs' own suites, by alias; the built-in checks always run as well.

    `parameters` are the values that the run gives; the pipeline file has the others. Raise DefinitionError for a name
    that it does not have, and for a value of another kind.
    """
    _require_declared(pipeline, parameters)
    loaded = {}
    for output in pipeline.outputs:
        path, quality = pipeline.suite_path(output), pipeline.quality_of(output)
        if path is not None and quality is not None:
            columns = [column.name for column in pipeline.compiled(output).columns]
            loaded[output.alias] = suites.load(path, [*columns, SLICE_COLUMN], _resolved(pipeline, quality, parameters))
    return loaded


def parse_parameters(arguments: list[str]) -> dict[str, str]:
    """Return the parameters of arguments such as "max_late=0.1". Raise DefinitionError if one has another form."""
    parameters: dict[str, str] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals or not name:
            raise DefinitionError(f"--parameter {argument}: write NAME=VALUE, such as max_late=0.1")
        if name in parameters:
            raise DefinitionError(f"--parameter {name} is given twice: remove one of them")
        parameters[name] = value
    return parameters


def _resolved(pipeline: Pipeline, quality: Quality, parameters: Parameters) -> dict[str, ParameterValue]:
    """Return the value of every parameter of a suite. Raise DefinitionError if a given value is of another kind."""
    values = dict(quality.parameters)
    for name in parameters.keys() & values.keys():
        value = parameters[name]
        if isinstance(values[name], str) is isinstance(value, str):
            values[name] = value
        elif isinstance(value, str) and (number := _number(value)) is not None:
            values[name] = number
        else:
            kind = "a string" if isinstance(values[name], str) else "a number"
            raise DefinitionError(f"the parameter {name} must be {kind}, as in {pipeline.file}; {value!r} was given")
    return values


def _number(text: str) -> float | None:
    """Return the number in a text; None for an infinity, and for what is not a number."""
    try:
        number = int(text) if text.lstrip("+-").isdecimal() else float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _require_declared(pipeline: Pipeline, parameters: Parameters) -> None:
    """Raise DefinitionError unless the pipeline file has every given parameter."""
    qualities = [quality for output in pipeline.outputs if (quality := pipeline.quality_of(output))]
    declared = [name for quality in qualities for name in quality.parameters]
    for name in parameters:
        if name not in declared:
            advice = did_you_mean(name, declared) or f"{pipeline.file} has {', '.join(declared) or 'none'}"
            raise DefinitionError(f"unknown parameter {name}; {advice}")
