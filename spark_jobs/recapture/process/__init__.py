"""What concerns the process and not the data: start-up, environment, streams, logging, compiled code, wording."""
