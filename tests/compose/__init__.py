"""docker/Dockerfile and docker/compose.yaml without Docker: the image as a folder, its services as plain processes."""
