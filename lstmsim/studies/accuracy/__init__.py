"""Uses of published networks: everything around their recurrent layers, so that their outputs can be judged."""
