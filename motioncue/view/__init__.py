"""The view in a browser: a server beside the engine, and its page.

`watched` is what the terminal's view and the page have in common.
"""
