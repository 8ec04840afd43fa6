"""HTTP: requests, bodies, media types, compression, deadlines."""
