"""The report of a run, or of a range of published slices: a JSON document, and the page that is made from it."""
