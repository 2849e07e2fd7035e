"""Default schedules: rules that read what a program computes and the target, and schedule it when no user did."""
