"""The DAGs of every file in dags/pipelines."""

from recapture_airflow import RecaptureDags

RecaptureDags("pipelines", pools={"spark": "spark", "processes": "processes", "history": "history"})
