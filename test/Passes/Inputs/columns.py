# SPDX-License-Identifier: Apache-2.0
"""Writes a 3 x 5 f32 matrix: columns 1 and 4 are equally large, 2 is the largest, one row of them is negative."""
import struct
import sys

rows = [[1, 5, 9, 0, 5], [1, -5, 9, 0, -5], [1, 5, -9, 0, 5]]
with open(sys.argv[1], "wb") as file:
    for row in rows:
        file.write(struct.pack("<5f", *row))
