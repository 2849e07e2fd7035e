"""Elementary functions as polynomial code on lanes: one file a family, written with `lanes.Lanes`."""
