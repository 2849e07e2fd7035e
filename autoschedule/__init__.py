"""Default schedules: rules that schedule the functions that no user scheduled."""
