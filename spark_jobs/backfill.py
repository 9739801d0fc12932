"""The application of a planned run: spark-submit spark_jobs/backfill.py PIPELINE RUN"""

from recapture.execute.spark.application import run

if __name__ == "__main__":
    run()
