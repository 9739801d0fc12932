"""The application of a planned run: spark-submit spark_jobs/backfill.py PIPELINE RUN"""

import sys

from recapture.execute.spark.compute import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
