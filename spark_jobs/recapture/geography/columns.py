"""How a shape is held in a column of Arrow.

A string holds GeoJSON if it begins with a brace, otherwise WKT. A text that can only be WKT is a struct, and so is a
point of CreatePoint.
"""

WKT = "wkt"
"""Field of the struct that holds WKT."""
LONGITUDE, LATITUDE = "longitude", "latitude"
"""Fields of the struct that holds a point, as floats."""
