"""Default schedules: rules that schedule the functions that no user scheduled (`docs/default-schedules.md`)."""
