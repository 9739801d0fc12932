"""What is built on top of the engine: reports, advice, inference, coverage, imported jobs and sample blobs."""
