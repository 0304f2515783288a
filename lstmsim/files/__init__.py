"""Files: scenarios, chips, models and traces, read and written; mistakes are reported with line and key path."""
