"""evidence: why a result is believed: other roads to it, and the class of each rule."""
