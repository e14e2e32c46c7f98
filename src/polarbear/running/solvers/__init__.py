"""What users define: solvers, commands, instances, limits and race files.

May import racing and data.
"""
