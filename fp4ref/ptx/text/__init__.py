"""text: PTX as it is written, and one entry of it laid out to be executed."""
