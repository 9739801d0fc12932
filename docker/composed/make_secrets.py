"""Make the secrets of a compose project, in files that only its services can read: python make_secrets.py FOLDER

A file that exists is kept, so that the database and what Airflow encrypted can be read after a restart.
"""

import base64
import json
import os
import secrets
import sys
from pathlib import Path

OWNER, GROUP = 50000, 0
"""User of the image. PostgreSQL reads its password as root."""


def make_secrets(folder: Path) -> None:
    """Write the files that are missing. The urls have the password of the database."""
    password = _kept(folder / "database_password", secrets.token_urlsafe(24))
    for driver in ("psycopg2", "asyncpg"):
        _kept(folder / f"database_url_{driver}", f"postgresql+{driver}://airflow:{password}@127.0.0.1:5432/airflow")
    _kept(folder / "fernet_key", base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())
    _kept(folder / "jwt_secret", secrets.token_urlsafe(64))
    _kept(folder / "api_secret_key", secrets.token_urlsafe(32))
    _kept(folder / "passwords.json", json.dumps({"admin": secrets.token_urlsafe(12)}))


def _kept(file: Path, content: str) -> str:
    """Return the content of a file, which is written if the file does not exist."""
    if not file.exists():
        unfinished = file.with_suffix(".new")
        unfinished.touch(mode=0o640)
        unfinished.write_text(content, encoding="utf-8")
        os.chown(unfinished, OWNER, GROUP)
        unfinished.replace(file)
    return file.read_text(encoding="utf-8")


if __name__ == "__main__":
    make_secrets(Path(sys.argv[1]))
