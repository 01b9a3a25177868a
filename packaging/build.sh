#!/usr/bin/env bash
# Builds the packages into dist/packages: deb and rpm, for amd64 and arm64. Two builds of one commit are bit-identical.
# VERSION names the version, without it packaging/version.sh; ARCHS may ask for one architecture only.
set -euo pipefail
cd "$(dirname "$0")/.."
unset UNDERSTUDY_ZK # a default of --zk
umask 022

out=${1:-dist/packages}
git() { command git -c safe.directory='*' "$@"; } # the checkout may belong to another user
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
MAINTAINER="Understudy maintainers <maintainers@understudy.invalid>"
PACKAGE_VERSION=${VERSION:-$(packaging/version.sh)}
COMMIT=$(git rev-parse HEAD)
export SOURCE_DATE_EPOCH MAINTAINER PACKAGE_VERSION
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -buildvcs=false"

TREE=$(mktemp -d) # what does not depend on the machine
trap 'rm -rf "$TREE"' EXIT
export TREE
rm -rf "$out"
mkdir -p "$out" "$TREE"/man1

for ARCH in ${ARCHS:-amd64 arm64}; do
	GOARCH=$ARCH go build -trimpath -ldflags "-s -w -buildid= -X main.version=$PACKAGE_VERSION -X understudy/supervisor/cli.commit=$COMMIT" -o "$out/understudy-$ARCH" .
done
host=$(go env GOHOSTARCH)
gen() { go run ./packaging/gen "$1" "$PACKAGE_VERSION" "${@:2}"; }
gen man "$TREE/man1"
gen changelog - >"$TREE/changelog"
gen copyright "$out/understudy-$host" >"$TREE/copyright"
gzip -9n "$TREE"/man?/* "$TREE/changelog"
for shell in bash zsh fish; do
	"$out/understudy-$host" completion $shell >"$TREE/understudy.$shell"
done
find "$TREE" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

for ARCH in ${ARCHS:-amd64 arm64}; do
	export ARCH BINARY="$out/understudy-$ARCH"
	go tool -modfile=packaging/tools/go.mod cyclonedx-gomod bin -json -std -short-purls -noserial -notimestamp -output-version 1.5 \
		-version "$PACKAGE_VERSION" -output "$BINARY.cdx.json" "$BINARY"
	touch --date="@$SOURCE_DATE_EPOCH" "$BINARY" "$BINARY.cdx.json"
	for kind in deb rpm; do
		go tool -modfile=packaging/tools/go.mod nfpm package --config packaging/nfpm.yaml --packager $kind --target "$out" >"$TREE/said" || { cat "$TREE/said" >&2; exit 1; }
	done
done
(cd "$out" && LC_ALL=C && sha256sum -- * >"$TREE/SHA256SUMS" && cp "$TREE/SHA256SUMS" .)
