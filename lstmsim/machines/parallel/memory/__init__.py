"""What accesses cost: sectors, lines, banks; what L1 and L2 hold."""
