"""What is computed: cells, models, jobs. Knows no hardware."""
