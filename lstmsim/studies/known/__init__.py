"""Everything that has a name: models, chips, machines, keys of files ... (`lstmsim list`)."""
