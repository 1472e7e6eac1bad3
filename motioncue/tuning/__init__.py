"""Search for the settings of an algorithm that score best on drives and a platform.

Needs the extra ``tune``.
"""
