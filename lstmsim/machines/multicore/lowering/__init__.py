"""How steps become a program, and what its run came to."""
