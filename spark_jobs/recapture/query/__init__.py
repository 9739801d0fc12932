"""ASAQL, the query language of Azure Stream Analytics, compiled to Spark SQL."""

from recapture.query.compile import compile_query
from recapture.query.model import AsaType, CompiledOutput, CompiledQuery, InputColumn, OutputColumn

__all__ = ["AsaType", "CompiledOutput", "CompiledQuery", "InputColumn", "OutputColumn", "compile_query"]
