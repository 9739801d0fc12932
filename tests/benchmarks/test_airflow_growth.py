"""What the update benchmark says of the growth of Airflow's needs."""

from benchmarks.airflow_growth import per_run


def test_a_growth_is_the_slope_of_all_samples() -> None:
    samples = [
        (10, {"rows": 100.0, "files": 7.0}),
        (20, {"rows": 150.0, "files": 8.0}),
        (30, {"rows": 200.0, "files": 7.0}),
    ]
    assert per_run(samples) == {"rows": 5.0, "files": 0.0}


def test_a_need_that_is_new_has_no_growth() -> None:
    assert per_run([(1, {"rows": 1.0}), (2, {"rows": 1.0, "new": 5.0})]) == {"rows": 0.0}
