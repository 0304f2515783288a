"""What published networks are for: everything around their recurrent layers, so that outputs can be judged."""
