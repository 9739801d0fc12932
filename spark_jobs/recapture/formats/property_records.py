"""The properties that senders give their events, as records."""

import json

import pyarrow as pa
import pyarrow.compute as pc


def property_records(offsets: pa.Array, names: pa.Array, values: pa.Array) -> pa.Array:
    """Return the properties of every event as a JSON object of strings; `offsets` are those of its first property.

    ["a", "b"], ["x", NULL] => {"a":"x","b":null}
    """
    properties = pc.binary_join_element_wise(_json_of(names), _json_of(values), ":")
    lists = pa.ListArray.from_arrays(offsets, properties)
    return pc.binary_join_element_wise("{", pc.binary_join(lists, ","), "}", "")


def _json_of(strings: pa.Array) -> pa.Array:
    encoded = strings.dictionary_encode()
    texts = pa.array([json.dumps(string, ensure_ascii=False) for string in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices).fill_null("null")
