"""The services of compose.yaml as plain processes, for machines without Docker."""
