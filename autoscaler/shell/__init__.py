"""What touches the world: process, the API server's side (`cluster`), the provider's side (`provider`)."""
