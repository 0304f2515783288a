"""From a trace to what people read: accounts, reports, timelines."""
