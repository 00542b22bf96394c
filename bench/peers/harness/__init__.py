"""What bench/peers/run is made of. Python's standard library only."""
