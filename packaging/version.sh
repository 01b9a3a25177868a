#!/bin/sh
# Prints the version of the checkout. v1.2.3 is 1.2.3, and five commits after it 1.2.3+5.g1a2b3c4; before the first tag it is 0~, the
# number of commits and the newest one: later versions sort later. Fails outside a repository.
set -eu
cd "$(dirname "$0")/.."

in_git() { git -c safe.directory='*' "$@"; } # the checkout may belong to another user
if version=$(in_git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null); then
	echo "${version#v}" | sed -E 's/-([0-9]+)-g/+\1.g/; s/-dirty/+dirty/; s/-/~/g'
else
	count=$(in_git rev-list --count HEAD)
	commit=$(in_git describe --always --dirty)
	echo "0~$count.g$commit" | sed 's/-dirty/+dirty/'
fi
