"""The judge of a design loop: one race which every candidate joins, and what frameworks call.

May import coordinator and what it may import; nothing but the public names imports it.
"""
