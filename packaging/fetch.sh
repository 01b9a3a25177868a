#!/usr/bin/env bash
# Fetches what tests run and nobody installs, from Debian's packages or Go's proxy, into a folder that is kept:
# fetch.sh kernel|zookeeper-3.9|litestream. Where that does not work there is nothing in the folder, and the tests say so.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin

kept=${XDG_CACHE_HOME:-$HOME/.cache}/understudy
kernel() { # Debian's: a virtual machine boots what stays of it
	apt-get -qq download "$(apt-cache depends linux-image-amd64 | awk '$1 == "Depends:" {print $2}')" &&
		dpkg-deb --fsys-tarfile ./*.deb | tar -x --wildcards './boot/vmlinuz-*' '*/watchdog.ko*' '*/i6300esb.ko*' '*/e1000.ko*' && rm ./*.deb
}
zookeeper() { # Debian 13's jars, which run with the others of this Debian
	mkdir -p apt/lists/partial && : >apt/status &&
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" >apt/sources &&
		printf '%s;\n' "Dir::Etc::SourceList \"$PWD/apt/sources\"" 'APT::Sandbox::User "root"' 'Dir::Etc::SourceParts "/dev/null"' "Dir::State::Lists \"$PWD/apt/lists\"" \
			"Dir::State::Status \"$PWD/apt/status\"" "Dir::Cache \"$PWD/apt\"" 'Acquire::Languages "none"' >apt/conf && export APT_CONFIG=$PWD/apt/conf &&
		apt-get -qq update && apt-get -qq download libzookeeper-java &&
		dpkg-deb --fsys-tarfile ./*.deb | tar -x --strip-components=4 ./usr/share/java && rm -r apt ./*.deb
}
litestream() { # two minutes on two processors, with the Go that is there
	GOTOOLCHAIN=local GOBIN=$PWD go install -ldflags '-s -w' github.com/benbjohnson/litestream/cmd/litestream@v0.5.18
}
case $1 in
kernel) how=kernel ;;
zookeeper-3.9) how=zookeeper ;;
litestream) how=litestream ;;
*) echo "fetch.sh: it does not know $1" >&2; exit 2 ;;
esac
[ ! -e "$kept/$1" ] || exit 0
new=$kept/$1.new
rm -rf "$new" && mkdir -p "$new" && (cd "$new" && $how) >/dev/null && mv -T "$new" "$kept/$1" || true
