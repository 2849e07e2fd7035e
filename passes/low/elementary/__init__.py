"""Elementary functions as polynomial code, written with `lanes.Lanes`."""
