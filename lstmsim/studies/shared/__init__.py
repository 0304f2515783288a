"""What several studies need: scenarios, chips and models as users give them; checks of arguments."""
