"""How a shape is held in a column of Arrow: GeoJSON as a string, WKT and the points of CreatePoint as structs."""

WKT = "wkt"
"""Field of the struct that holds WKT."""
LONGITUDE, LATITUDE = "longitude", "latitude"
"""Fields of the struct that holds a point, as floats."""
