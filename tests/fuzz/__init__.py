"""Fuzz targets: laws that hold for any bytes, their seeds, and two engines that look for bytes that break them.

python -m tests.fuzz.run TARGET --seconds 60            # atheris where it is installed, else mutation
"""
