"""Evaluates the relations of a compiled query over the ordered events of one slice, without Spark."""
