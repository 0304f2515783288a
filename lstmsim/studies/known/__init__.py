"""What has a name (`lstmsim list`)."""
