"""The script that spark-submit runs. It has a folder of its own, because Spark puts that folder on Python's path."""
