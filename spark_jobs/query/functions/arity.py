"""How many arguments a function takes."""

from spark_jobs.query.functions.call import Call


def takes(call: Call, least: int, most: int | None = None) -> None:
    """Refuse a call with fewer arguments than `least` or more than `most`, which is `least` unless given."""
    most = least if most is None else most
    if not least <= call.count <= most:
        count = f"{least}" if least == most else f"{least} to {most}" if most < MANY else f"{least} or more"
        noun = "argument" if count == "1" else "arguments"
        raise call.refuse(None, f"{call.name} takes {count} {noun}, and this has {call.count}")


MANY = 1_000
