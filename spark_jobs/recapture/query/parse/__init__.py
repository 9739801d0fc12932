"""The text of a query: its statements as sqlglot trees, its names, windows and declarations."""
