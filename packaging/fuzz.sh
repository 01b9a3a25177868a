#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME each, one on each processor. They are looked for in the source, so none
# is forgotten, and each has a corpus that is kept. What is found is kept there too: commit it with its fix.
set -euo pipefail
cd "$(dirname "$0")/.."
export FUZZTIME="${FUZZTIME:-20s}"

fuzz() { # folder target
	local dir=$1 target=$2 log
	if [ -z "$(ls -A "$dir/testdata/fuzz/$target" 2>/dev/null)" ]; then
		echo "$dir $target: no corpus: keep one in testdata/fuzz/$target"
		return 1
	fi
	log=$(go test -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 10x -parallel 1 "$dir" 2>&1) &&
		! grep -q 'no fuzz tests to fuzz' <<<"$log" || { printf '%s %s\n%s\n' "$dir" "$target" "$log"; return 1; }
	echo "$dir $target: $(grep -o 'execs: [0-9]*' <<<"$log" | tail -1)"
}
export -f fuzz

grep -roE --include='*_test.go' '^func Fuzz[A-Z][A-Za-z0-9_]*' . | sort -u |
	sed -E 's|/[^/]*:func | |' | xargs -P "$(nproc)" -L 1 bash -c 'fuzz "$@"' fuzz
