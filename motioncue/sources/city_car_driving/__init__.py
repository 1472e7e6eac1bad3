"""City Car Driving."""
