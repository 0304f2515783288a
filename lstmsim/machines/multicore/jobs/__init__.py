"""Recurrent jobs: the products of their cells, their arrays, their traffic, and their program."""
