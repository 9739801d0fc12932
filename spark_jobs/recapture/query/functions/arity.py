"""How many arguments a function takes."""

from recapture.query.functions.call import Call

MANY = 1_000
"""No limit that a query would meet."""


def takes(call: Call, least: int, most: int | None = None) -> None:
    """Refuse a call with fewer arguments than `least` or more than `most`; without `most`, with other than `least`."""
    most = most or least
    if not least <= call.count <= most:
        count = f"{least}" if least == most else f"{least} or more" if most == MANY else f"{least} to {most}"
        noun = "argument" if count == "1" else "arguments"
        raise call.refuse(None, f"{call.name} takes {count} {noun}, and this has {call.count}")
