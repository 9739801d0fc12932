"""Programs that the services of compose.yaml run, in addition to Airflow and Spark."""
