#!/usr/bin/env python3
"""Writes the table of crates/repair/src/lex/entities.rs from the copy of the HTML standard in Python."""
import html.entities
import pathlib
import re

path = pathlib.Path(__file__).parent.parent / "crates/repair/src/lex/entities.rs"
names = sorted((name[:-1], text) for name, text in html.entities.html5.items() if name.endswith(";"))
lines, line = [], "   "
for name, text in names:
    item = ' ("%s", "%s"),' % (name, "".join("\\u{%x}" % ord(c) for c in text))
    if len(line) + len(item) > 108:
        lines.append(line)
        line = "   "
    line += item
lines.append(line)
source = path.read_text()
table = "static TABLE: &[(&str, &str)] = &[\n" + "\n".join(lines) + "\n];\n"
path.write_text(re.sub(r"static TABLE: .*\];\n", lambda _: table, source, flags=re.S))
