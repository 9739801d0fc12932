"""The geospatial functions that compare two shapes, on columns of Arrow: see `comparisons.call`."""
