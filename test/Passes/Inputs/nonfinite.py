# SPDX-License-Identifier: Apache-2.0
"""Writes three 3 x 5 f32 matrices: one with NaN and an infinity, one with an infinity, one that is finite."""
import math
import struct
import sys

matrices = [[0.5] * 15, [0.5] * 15, [0.5] * 15]
matrices[0][7] = math.nan
matrices[0][12] = -math.inf
matrices[1][0] = math.inf
with open(sys.argv[1], "wb") as file:
    for matrix in matrices:
        file.write(struct.pack("<15f", *matrix))
