# Sourced by the check scripts of this folder; defines where the tree is and how a check reports.
#
# usage of every script: SCRIPT [SRCDIR [BUILDDIR]]     without arguments: $srcdir (make check sets it) and .
# exit 0: the rule holds; 1: broken, one line "path:line: what" each; 77: a tool is absent.
src=${1:-${srcdir:-.}}
build=${2:-.}
here=$(cd "$(dirname "$0")" && pwd)
src=$(cd "$src" && pwd) || exit 1
build=$(cd "$build" && pwd) || exit 1
LC_ALL=C
export LC_ALL

# Every file of the project, relative to $src: what git would track, or in an unpacked release whatever is neither
# generated nor built.
tree()
{
	if [ -e "$src/.git" ] && git -C "$src" ls-files >/dev/null 2>&1; then
		(cd "$src" && git ls-files -co --exclude-standard | while read -r f; do
			[ ! -f "$f" ] || echo "$f"
		done)
	else
		below=${build#"$src"}
		(cd "$src" && find . \( -path ".${below:-/}" -o -name .git -o -name 'build*' -type d -o -name autom4te.cache \
			-o -name m4 -o -name .deps -o -name .libs -o -name target -o -name node_modules \) -prune -o \
			-type f ! -name configure ! -name aclocal.m4 ! -name Makefile ! -name Makefile.in ! -path './config.*' ! -name libtool \
			! -name 'stamp-h*' ! -name '*.o' ! -name '*.l[oa]' ! -name '*.log' ! -name '*.trs' \
			-print | sed 's|^\./||')
	fi | sort
}

# code FOLDER...: the C and C++ files below these folders.
code()
{
	tree | grep -E "^($(echo "$*" | tr ' ' '|'))/.*\.(c|h|cc|cpp|h\.in)$"
}

# Reads paths, writes "path:line:text" without comments and string contents.
strip()
{
	(cd "$src" && xargs -r awk -f "$here/strip.awk")
}

# report TEXT: prints the findings on standard input, and fails if there were any.
report()
{
	found=$(cat)
	if [ -n "$found" ]; then
		printf '%s\n' "$found"
		echo "$(basename "$0"): $(printf '%s\n' "$found" | wc -l) broken: $1"
		exit 1
	fi
	echo "$(basename "$0"): ok"
}
