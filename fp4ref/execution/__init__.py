"""execution: how a problem is run: on the emulator, by PTX, or on a device."""
