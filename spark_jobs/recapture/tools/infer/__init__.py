"""CREATE TABLE of an input, from a sample of its archive and from what the query reads."""
