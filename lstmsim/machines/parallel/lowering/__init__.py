"""From priced kernels to a program, and from the totals of its run to what came of them."""
