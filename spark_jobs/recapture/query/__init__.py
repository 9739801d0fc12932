"""ASAQL, the query language of Azure Stream Analytics, compiled to Spark SQL."""

from recapture.query.compile import compile_query
from recapture.query.model import CompiledOutput, CompiledQuery

__all__ = ["CompiledOutput", "CompiledQuery", "compile_query"]
