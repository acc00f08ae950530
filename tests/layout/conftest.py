from hypothesis import settings

# A slow shared machine is no reason to fail.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
