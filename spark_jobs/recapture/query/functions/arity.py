"""How many arguments a function takes."""

from recapture.query.functions.call import Call

MANY = 1_000
"""Number of arguments that no query reaches."""


def takes(call: Call, least: int, most: int | None = None) -> None:
    """Raise DefinitionError unless a call has `least` to `most` arguments; without `most`, exactly `least`."""
    most = most or least
    if not least <= call.count <= most:
        count = f"{least}" if least == most else f"{least} or more" if most == MANY else f"{least} to {most}"
        noun = "argument" if count == "1" else "arguments"
        raise call.error(None, f"{call.name} takes {count} {noun}, but this has {call.count}")
