"""What every result is shown with: its forms, tables of text, marks of HTML, and what pictures share."""
