"""How a shape is held in a column of Arrow.

A string holds GeoJSON if it begins with a brace, else WKT. A text that can only be WKT, and a point of CreatePoint, are
structs.
"""

WKT = "wkt"
"""Field of the struct that holds WKT."""
LONGITUDE, LATITUDE = "longitude", "latitude"
"""Fields of the struct that holds a point, as floats."""
