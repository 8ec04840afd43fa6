"""How conditions observe: their base, the leader and the world that they read."""
