"""forms: every form that the executor accepts and Hopper has, asked of a card.

A form is an opcode with modifiers and types; orders, scopes and hints appear once. They
are spelled from the executor's registry, so a new one without a recording is found.
"""
