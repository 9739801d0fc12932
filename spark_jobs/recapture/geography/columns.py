"""How a shape is held in a column of Arrow: GeoJSON as a string, WKT as a struct of one string."""

WKT = "wkt"
"""Field of the struct that holds WKT."""
