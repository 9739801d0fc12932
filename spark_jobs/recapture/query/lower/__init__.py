"""The operations of `plan` in the language of each engine."""
