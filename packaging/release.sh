#!/usr/bin/env bash
# Builds all that release $1 has into dist/release: deb and rpm, static binaries, the source, the list of what is in it (SBOM), checksums.
# It builds twice, the second time in another folder with nothing cached, and fails unless both are the same to the bit.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022

version=${1:-}
refuse() { echo "release.sh: $*" >&2; exit 1; }
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || refuse "which release? make release VERSION=0.1.0"
[ -z "$(git status --porcelain)" ] || refuse "the checkout has changes: commit them first"
grep -q "^## $version - " CHANGELOG.md || refuse "CHANGELOG.md has no section '## $version - DATE': rename Unreleased"
go test ./supervisor/testbed/golden -count=1 -run Formats -release "$version" >&2
[ -z "$(git status --porcelain)" ] || refuse "the formats that later versions have to read were not those of this one, and are now: commit them"

# The compiler is go.mod's, also where GOTOOLCHAIN=local: its library is a part of what is shipped.
GOTOOLCHAIN=$(sed -n 's/^toolchain //p' go.mod)
export GOTOOLCHAIN
vulnerable=0
found=$(go tool -modfile=packaging/tools/go.mod govulncheck . 2>&1) || vulnerable=$?
case $vulnerable in
0) echo "govulncheck: no known vulnerability" >&2 ;;
3) refuse "the code calls what is known as vulnerable:"$'\n'"$found" ;;
*) echo "release.sh: NOT CHECKED FOR KNOWN VULNERABILITIES, run govulncheck where its database can be had: ${found##*$'\n'}" >&2 ;;
esac

build() { # into a folder
	local out
	out=$(realpath -m "$1")
	VERSION=$version packaging/build.sh "$out"
	git archive --format=tar --prefix="understudy-$version/" HEAD | gzip -9n >"$out/understudy-$version.tar.gz"
	packaging/repository.sh "$out" "$out/repository"
	(cd "$out" && rm SHA256SUMS && LC_ALL=C find . -type f ! -name .sums -printf '%P\0' | sort -z | xargs -0 sha256sum >.sums && mv .sums SHA256SUMS)
}
elsewhere=$(mktemp -d)
trap 'chmod -R u+w "$elsewhere"; rm -rf "$elsewhere"' EXIT
build dist/release
git clone -q . "$elsewhere/source"
(cd "$elsewhere/source" && export GOCACHE="$elsewhere/cache" && build "$elsewhere/again")
diff -r dist/release "$elsewhere/again" || refuse "two builds differ"
echo "dist/release: $(find dist/release -type f | wc -l) files of $version, the same to the bit in two builds. Next: git tag v$version; make image VERSION=$version"
