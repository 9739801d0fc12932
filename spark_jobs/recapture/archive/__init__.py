"""Which blobs a run reads: their names, the listing, the manifest."""
