"""What has to be done to bring a pipeline's tables up to date: which slices are due, and why."""
