"""Files: scenarios, chips, models and traces, read and written; what is wrong with them is said with its place."""
