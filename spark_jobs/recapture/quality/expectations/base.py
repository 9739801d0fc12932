"""The base of Recapture's expectations: each judges a whole pandas frame and says which of its items fail."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, ClassVar

import pandas as pd
from great_expectations.compatibility.pydantic import Field, root_validator
from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
from great_expectations.expectations.expectation import BatchExpectation
from great_expectations.expectations.model_field_types import MostlyField
from great_expectations.render.components import LegacyRendererType, RenderedStringTemplateContent
from great_expectations.render.renderer.renderer import renderer

from recapture.quality.finding import SHOWN, Finding

Parameter = dict[str, str]
"""Value that the run gives: `{"$PARAMETER": NAME}`."""
Mostly = MostlyField
"""Share of the items that must be as expected, 0 to 1."""
Share = Annotated[float | Parameter, Field(ge=0, le=1)]
NotNegative = Annotated[float | Parameter, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Instant = datetime | Parameter
Columns = list[str]


class FrameExpectation(BatchExpectation, ABC):
    """Base of the expectations that judge a whole pandas frame.

    The result counts the judged items (`element_count`) and the failed ones (`unexpected_count`), with examples. Its
    `details` name the items, and say how many could not be judged and why. If none could be judged, the expectation
    succeeds, which proves nothing.
    """

    metric_dependencies: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def is_abstract(cls) -> bool:
        """Return whether this is a base, which Great Expectations must not register."""
        return cls.__name__.startswith("_") or super().is_abstract()

    @abstractmethod
    def needed_columns(self) -> list[str]:
        """Return the columns that the frame must have."""

    @abstractmethod
    def judge(self, frame: pd.DataFrame) -> Finding:
        """Return what is wrong with a frame that has the needed columns."""

    @root_validator(allow_reuse=True)
    def _require_parameters(cls, values: dict[str, Any]) -> dict[str, Any]:  # noqa: N805, it is a class method
        for name, value in values.items():
            if isinstance(value, dict) and name in cls.success_keys and set(value) != {"$PARAMETER"}:
                raise ValueError(f'{name} must be a value or {{"$PARAMETER": NAME}}')
        return values

    def _validate(
        self, metrics: dict[str, Any], runtime_configuration: dict[str, Any] | None = None, execution_engine: Any = None
    ) -> dict[str, Any]:
        if not isinstance(execution_engine, PandasExecutionEngine):
            raise TypeError("this expectation judges pandas frames: use a pandas data source")
        frame = execution_engine.get_domain_records(self._get_domain_kwargs())
        missing = [name for name in self.needed_columns() if name not in frame.columns]
        if missing:
            raise ValueError(f"the frame has no column {', '.join(missing)}")
        finding = self.judge(frame)
        return {"success": finding.is_met(number(getattr(self, "mostly", 1.0))), "result": _result(finding)}

    @classmethod
    @renderer(renderer_type=LegacyRendererType.PRESCRIPTIVE)
    def _prescriptive_renderer(
        cls, configuration: Any = None, result: Any = None, runtime_configuration: Any = None
    ) -> list[RenderedStringTemplateContent]:
        """Render what is expected, for Data Docs: the first line of the class, and the arguments."""
        configuration = configuration or result.expectation_config
        arguments = {name: value for name, value in configuration.kwargs.items() if name in cls.success_keys}
        sentence = (cls.__doc__ or "").splitlines()[0].rstrip(".")
        listed = ", ".join(f"{name} ${name}" for name in arguments)
        template = {"template": f"{sentence}: {listed}" if listed else f"{sentence}.", "params": arguments}
        return [RenderedStringTemplateContent(content_block_type="string_template", string_template=template)]


def _result(finding: Finding) -> dict[str, Any]:
    examples = [dict(example) for example in finding.examples[:SHOWN]]
    texts = [" ".join(f"{name}={value}" for name, value in example.items()) for example in examples]
    details: dict[str, Any] = {} if finding.item is None else {"item": finding.item}
    if finding.failed and finding.failure:
        details["failure"] = finding.failure
    if finding.unjudged:
        details |= {"unjudged": finding.unjudged, "why_unjudged": finding.why_unjudged}
    return {
        "element_count": finding.judged,
        "unexpected_count": finding.failed,
        "unexpected_percent": finding.failed / finding.judged * 100 if finding.judged else None,
        "partial_unexpected_list": examples,
        "partial_unexpected_counts": [{"value": text, "count": 1} for text in texts],
        "details": details,
    }


def examples(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the first rows of a frame as JSON values."""
    return rows_of(frame.head(SHOWN))


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as JSON values."""
    return [{str(name): _json(value) for name, value in row.items()} for row in frame.to_dict("records")]


def _json(value: Any) -> Any:
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    if hasattr(value, "item"):
        value = value.item()
    return None if pd.isna(value) else value


def number(value: float | Parameter) -> float:
    """Return the value of an argument. Raise ValueError if the run gave no value for its parameter."""
    if isinstance(value, dict):
        raise ValueError(f"no value was given for the parameter {value['$PARAMETER']}")
    return value


def instant(value: Any) -> pd.Timestamp:
    """Return a bound as an aware timestamp; UTC if it has no zone."""
    time = pd.Timestamp(value)
    return time.tz_localize("UTC") if time.tzinfo is None else time


def in_utc(times: pd.Series) -> pd.Series:
    """Return a column of times, or of ISO 8601 strings, as aware timestamps. Raise ValueError if it holds others."""
    if pd.api.types.is_numeric_dtype(times):
        raise ValueError(f"the column {times.name} does not hold times")
    return pd.to_datetime(times, utc=True)


def groups(frame: pd.DataFrame, columns: Iterable[str]) -> pd.Series:
    """Return a number for each row. Rows with equal values in the columns have the same one; without columns all do."""
    columns = list(columns)
    if not columns:
        return pd.Series(0, frame.index)
    return frame.groupby(columns, dropna=False, observed=True, sort=False).ngroup()
