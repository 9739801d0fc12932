"""What a running Airflow needs, and how much of that grows with the number of its DAG runs."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import psycopg2
from psycopg2 import sql

from embedded import session
from embedded.airflow import Airflow

MEBIBYTE, KIBIBYTE = 1 << 20, 1 << 10

Needs = dict[str, float]
"""What is needed at a time, by its name with its unit."""


def needs(airflow: Airflow, folders: Mapping[str, Path]) -> Needs:
    """Return what Airflow needs now: its servers, each table of its database, and the files in these folders.

    No task should be running. The memory of a server is its proportional set size, in which shared pages count once.
    """
    measured: Needs = {}
    for name, processes in _servers(airflow).items():
        memory, files, threads = 0, 0, 0
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                memory += process.memory_full_info().pss
                files += process.num_fds()
                threads += process.num_threads()
        measured |= {f"{name}: MiB": round(memory / MEBIBYTE, 1), f"{name}: files": files, f"{name}: threads": threads}
    for table, (rows, size) in _tables(airflow).items():
        measured |= {f"table {table}: rows": rows, f"table {table}: KiB": size / KIBIBYTE}
    measured["database: KiB"] = sum(value for name, value in measured.items() if name.endswith(": KiB"))
    for name, folder in folders.items():
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        measured |= {f"{name}: number": len(sizes), f"{name}: KiB": round(sum(sizes) / KIBIBYTE, 1)}
    return measured


def per_run(samples: Sequence[tuple[int, Needs]]) -> Needs:
    """Return by how much each need grows with a DAG run: the slope of the least squares line.

    `samples` are (number of DAG runs, needs); the numbers differ. A need that is not in all samples is left out.
    """
    runs = [number for number, _ in samples]
    names = [name for name in samples[0][1] if all(name in needed for _, needed in samples)]
    slopes = {name: float(np.polyfit(runs, [needed[name] for _, needed in samples], 1)[0]) for name in names}
    return {name: round(slope, 4) for name, slope in slopes.items()}


def _servers(airflow: Airflow) -> dict[str, list[psutil.Process]]:
    servers = {name: session.members(server._process.pid) for name, server in airflow._servers.items()}
    assert airflow._database._server is not None
    postgres = psutil.Process(airflow._database._server._process.pid)
    return servers | {"postgres": postgres.children(recursive=True)}  # each connection has a session of its own


def _tables(airflow: Airflow) -> dict[str, tuple[int, int]]:
    """Return the number of rows and the size in bytes, with indexes, of each table."""
    with psycopg2.connect(airflow._database.url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT relname, pg_total_relation_size(relid) FROM pg_stat_user_tables ORDER BY relname")
        sizes = dict(cursor.fetchall())
        tables = {}
        for table, size in sizes.items():
            cursor.execute(sql.SQL("SELECT COUNT(*) FROM {}").format(sql.Identifier(table)))
            tables[table] = cursor.fetchone()[0], size
    return tables
