"""Exit with 0 if a service of compose.yaml is healthy: python check_health.py ADDRESS [PART]

Without PART, a service is healthy if it answers. PART is a part of Airflow that its health check reports.
"""

import json
import sys
from urllib.error import URLError
from urllib.request import urlopen


def is_healthy(address: str, part: str | None) -> bool:
    """Return whether the service at an address answers within five seconds, and reports that a part is healthy."""
    try:
        with urlopen(address, timeout=5) as answer:
            reported = json.load(answer)
    except (URLError, OSError, ValueError):
        return False
    return part is None or bool(reported.get(part, {}).get("status") == "healthy")


if __name__ == "__main__":
    address, *parts = sys.argv[1:]
    sys.exit(not is_healthy(address, parts[0] if parts else None))
