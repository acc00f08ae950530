"""walk: the main job."""
