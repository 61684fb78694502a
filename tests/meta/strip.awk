# Prints "path:line:text" of C sources with comments dropped and strings emptied; include lines stay whole.
FNR == 1 {
	inside = 0
}
{
	line = $0
	out = ""
	if (!inside && line ~ /^[ \t]*#[ \t]*include/) {
		out = line
		line = ""
	}
	while (line != "") {
		if (inside) {
			i = index(line, "*/")
			line = i ? substr(line, i + 2) : ""
			if (i)
				inside = 0
			continue
		}
		if (!match(line, /\/\*|\/\/|["']/)) {
			out = out line
			break
		}
		mark = substr(line, RSTART, RLENGTH)
		out = out substr(line, 1, RSTART - 1)
		line = substr(line, RSTART + RLENGTH)
		if (mark == "/*") {
			inside = 1
			out = out " "
		} else if (mark == "//") {
			line = ""
		} else {
			while (line != "") {
				c = substr(line, 1, 1)
				line = substr(line, c == "\\" ? 3 : 2)
				if (c == mark)
					break
			}
			out = out mark mark
		}
	}
	print FILENAME ":" FNR ":" out
}
