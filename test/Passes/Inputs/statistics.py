# SPDX-License-Identifier: Apache-2.0
"""Writes a file of statistics for weight @w, of 5 channels: mean |x| is 1, 8, 0.25, 1, 4, and values lie from -1 to 3."""
import json
import struct
import sys

channels, rows = 5, 2
absolute = [1, 8, 0.25, 1, 4]
moments = [0.0] * channels + [rows * a for a in absolute] + [rows * a * a for a in absolute] + [-1.0] * channels + [3.0] * channels
histogram = [0] * 4096
for value in [-1.0, -0.5, 0.5, 1.0, 2.0, 2.5, 2.75, 3.0, 3.0, 3.0]:
    histogram[struct.unpack("<I", struct.pack("<f", value))[0] >> 20] += 1
tensors = [("w/rows", "I64", [1], struct.pack("<q", rows)), ("w/moments", "F64", [5, channels], struct.pack("<25d", *moments)),
           ("w/histogram", "I64", [4096], struct.pack("<4096q", *histogram)), ("w/products", "F32", [15], struct.pack("<15f", *[1.0] * 15))]
header, data = {"__metadata__": {"format": "otf-calibration-1", "model": "0", "weights": json.dumps({"w": "w"})}}, b""
for name, dtype, shape, content in tensors:
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
    data += content
text = json.dumps(header)
text += " " * (-len(text) % 8)
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text.encode() + data)
