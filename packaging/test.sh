#!/usr/bin/env bash
# Runs tests with gotestsum (packaging/tools). First it installs what they need and this machine lacks, on Debian and its kin, as root
# or with sudo that asks for no password. A test that needs anything else that is missing (packaging/need) is skipped; with CI=true it fails.
#
#	test.sh            each promise: all packages, then supervisor/testbed/promises on real ZooKeeper servers in network namespaces
#	test.sh rest       the rest of supervisor/testbed: operators, wrong uses, real programs, a browser, a machine with a watchdog; ZooKeeper 3.9
#	test.sh packages   deb and rpm, on machines that boot; the image, in containers
#	test.sh install    runs nothing: installs what all of these need
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/sbin:/sbin

part=${1:-promises}
basic="zookeeper libslf4j-java iproute2 nftables gcc libc6-dev spin"
rest="python3-kazoo python3-celery curl systemd prometheus haproxy pgbouncer mariadb-server nginx-light bash bash-completion zsh fish chromium redis-server redis-tools iputils-arping python3 postgresql
	openssh-server openssh-client fence-agents resource-agents qemu-system-x86 busybox-static xz-utils xfsprogs"
packaged="dpkg-dev gpg gpg-agent lintian man-db rpm rpmlint dnf createrepo-c qemu-user systemd-container mmdebstrap buildah runc golang-github-containers-common ansible-core"
case $part in
promises) debs=$basic ;;
rest) debs="$basic $rest" ;;
packages) debs="$basic $packaged" ;;
install) debs="$basic $rest $packaged" ;;
*) echo "test.sh: there is no part $part" >&2; exit 2 ;;
esac

as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi; }
missing=
for deb in $debs; do
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$deb" 2>/dev/null)" = installed ] || missing="$missing $deb"
done
if [ -n "$missing" ] && ! { command -v apt-get && as_root true; } >/dev/null 2>&1; then
	echo "test.sh: what needs these packages of Debian's, or the like, is skipped unless it is there:$missing" >&2
elif [ -n "$missing" ]; then
	echo "test.sh: installing$missing" >&2
	as_root apt-get -qq update
	# What is installed for the tests is not to run on its own: Debian's scripts ask this file before they start anything.
	policy=/usr/sbin/policy-rc.d
	[ ! -e $policy ] || policy=
	[ -z "$policy" ] || printf '#!/bin/sh\nexit 101\n' | as_root install -m 755 /dev/stdin "$policy"
	# shellcheck disable=SC2086 # words
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 install $missing >/dev/null
	[ -z "$policy" ] || as_root rm -f "$policy"
	as_root systemd-machine-id-setup >/dev/null 2>&1 || true
fi
case $part in rest | install) packaging/fetch.sh kernel; packaging/fetch.sh litestream ;; esac
case $part in promises | rest | install) packaging/fetch.sh zookeeper-3.9 ;; esac

status=0
run() { # name, gotestsum's format, go test's words; in the module of this folder, whose path is $top from there
	mkdir -p "$top/dist/tests"
	go tool -modfile="$top/packaging/tools/go.mod" gotestsum --format "$2" --hide-summary skipped --junitfile "$top/dist/tests/$1.xml" -- "${@:3}" || status=1
}
top=$PWD
testbed=./supervisor/testbed
case $part in
promises)
	race=-race
	command -v "$(go env CC)" >/dev/null || { race=; echo "test.sh: without the race detector, which needs gcc" >&2; }
	# Go's race detector crashes when two threads of a synctest bubble fire timers at once, hence one processor (https://go.dev/issue/78156).
	(cd $testbed/page && go vet ./...) || status=1 # a module of its own, which "./..." leaves out; its tests run much later
	# Tests of child stop threads, and need more of them.
	packages=$(go list ./... | grep -v '/packaging/e2e$\|/testbed/\|/supervisor/child$' && go list $testbed/sim)
	# shellcheck disable=SC2086 # words
	run packages pkgname $race -cpu 1 -timeout 20m $packages
	run child pkgname $race -timeout 20m ./supervisor/child
	run promises testname -count=1 -p 1 -timeout 30m $testbed/golden $testbed/promises
	;;
rest)
	# Two packages at once: they wait most of the time, and each has hosts, servers and addresses of its own.
	run rest testname -count=1 -p 2 -timeout 40m $testbed/{kit/...,zktest,mistakes,e2e,programs,watchdog}
	cd $testbed/page # which is a module of its own
	run page testname -count=1 -p 1 -timeout 40m ./...
	cd "$top"
	newer=${XDG_CACHE_HOME:-$HOME/.cache}/understudy/zookeeper-3.9
	[ ! -e "$newer" ] || ZOOKEEPER_JARS=$newer run newer testname -count=1 -p 1 -timeout 20m \
		-run 'Contract|RealServers|KilledSupervisor|LossOfAll' $testbed/zkfaults ./supervisor/control/ensemble $testbed/promises
	;;
packages) run installed testname -count=1 -timeout 30m ./packaging/e2e ;;
esac
exit $status
