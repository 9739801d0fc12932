"""JSON bodies as typed columns: `decoder.JsonBodies` is the front door."""
