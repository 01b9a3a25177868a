#!/usr/bin/env bash
# Makes of the packages in folder $1 what apt and dnf install from, in folder $2, for any web server: apt/, rpm/, and the static binaries.
# SIGN names the gpg key that signs both: its public half lies beside them as understudy.asc. Two runs make the same, but for signatures.
set -euo pipefail
umask 022
packages=$(realpath "$1") out=$2
: "${SOURCE_DATE_EPOCH:=$(git -c safe.directory='*' -C "$(dirname "$0")" log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH

mkdir -p "$out/apt" "$out/rpm"
cp "$packages"/*.deb "$out/apt"
cp "$packages"/*.rpm "$out/rpm"
touch --date="@$SOURCE_DATE_EPOCH" "$out"/rpm/*.rpm
for arch in amd64 arm64; do
	[ ! -e "$packages/understudy-$arch" ] || cp "$packages/understudy-$arch" "$out/understudy_linux_$arch"
done
(
	cd "$out/apt"
	dpkg-scanpackages --multiversion . >Packages 2>/dev/null
	gzip -9nkf Packages
	{
		echo "Origin: Understudy"
		echo "Label: Understudy"
		echo "Date: $(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")"
		echo "Architectures: amd64 arm64"
		echo "SHA256:"
		for f in Packages Packages.gz; do
			echo " $(sha256sum $f | cut -d ' ' -f 1) $(stat -c %s $f) $f"
		done
	} >Release
)
createrepo_c --quiet --no-database --set-timestamp-to-revision --revision "$SOURCE_DATE_EPOCH" "$out/rpm"
rm -f "$out/apt/InRelease" "$out/rpm/repodata/repomd.xml.asc"
if [ -n "${SIGN:-}" ]; then
	gpg --batch --yes --armor --export "$SIGN" >"$out/understudy.asc"
	gpg --batch --yes --local-user "$SIGN" --clearsign --output "$out/apt/InRelease" "$out/apt/Release"
	gpg --batch --yes --local-user "$SIGN" --armor --detach-sign "$out/rpm/repodata/repomd.xml"
fi
(cd "$out" && find . -type f ! -name SHA256SUMS -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum >SHA256SUMS)
