"""ASAQL, the query language of Azure Stream Analytics, compiled to relations: see `compile.compile_query`.

Nothing is imported here, so that code that needs `query.model` only, such as the ordering of events, does not load the
compiler.
"""
