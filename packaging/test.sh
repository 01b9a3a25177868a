#!/usr/bin/env bash
# Runs tests, on any system that has Go and bash:
#
#	test.sh            what a promise rests on: all packages, and supervisor/testbed/promises on real ZooKeeper and network namespaces
#	test.sh rest       the rest of supervisor/testbed: operators, real programs, a browser, a machine with a watchdog
#	test.sh packages   deb and rpm, on machines that boot
#	test.sh install    runs nothing: installs what all of these need
#	test.sh again      once more, one by one, the tests that UNDERSTUDY_LATE names
#
# A test that failed by a bound on time alone is run once more, by itself, and `repeated: N` names it: at the end of this script; or, where
# the environment names a file as UNDERSTUDY_LATE, by the caller with `test.sh again`, when nothing else runs. Nothing else is ever repeated.
#
# What they need and this machine lacks is installed on Debian and its kin, as root or with sudo that asks for no password: by the first
# no more than ZooKeeper with its Java, iproute2 and nftables. What stays missing is left out, and named at the end; with CI=true it is an
# error instead. Tests hear of what there is by UNDERSTUDY_TESTS (packaging/need).
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/sbin:/sbin

part=${1:-promises}
basic="root zookeeper namespaces cgroup pidns fuse"
more="kazoo systemd-notify prometheus haproxy nginx shells chromium programs sshd fence-agents machine"
packaged="packages lintian rpm dnf qemu nspawn"
case $part in
promises) needed=$basic also=$more ;; # uses what else there is, and misses none of it
rest) needed="$basic $more" also= ;;
packages) needed="root zookeeper namespaces $packaged" also= ;;
install | again) needed="$basic $more $packaged" also= ;;
*) echo "test.sh: there is no part $part" >&2; exit 2 ;;
esac

kernel=${XDG_CACHE_HOME:-$HOME/.cache}/understudy/kernel
cgroup_works() {
	local mount probe
	mount=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)
	probe="$mount$(sed -n 's/^0:://p' /proc/self/cgroup)/understudy-probe-$$"
	[ -n "$mount" ] && mkdir "$probe" && [ -e "$probe/cgroup.kill" ] && rmdir "$probe"
}
have() { local name; for name; do command -v "$name" || return; done; }
is_there() { # thing
	case $1 in
	root) [ "$(id -u)" -eq 0 ] ;;
	zookeeper) have java && [ -e /usr/share/java/zookeeper.jar ] && [ -e /usr/share/java/slf4j-simple.jar ] ;;
	namespaces) have ip nft nsenter && unshare --net --mount true ;;
	cgroup) cgroup_works ;;
	pidns) unshare --pid --fork --mount-proc true ;;
	fuse) [ "$(id -u)" -eq 0 ] && [ -c /dev/fuse ] ;;
	kazoo) /usr/bin/python3 -c 'import kazoo' ;; # Debian's, whatever else comes first in PATH
	prometheus) have promtool ;;
	shells) have bash zsh fish ;;
	programs) have redis-server redis-cli nginx arping && [ -x /usr/bin/python3 ] && compgen -G '/usr/lib/postgresql/*/bin/postgres' ;;
	sshd) have sshd ssh-keygen ;;
	fence-agents) have fence_dummy ;;
	machine) # a PC that is emulated, and what runs on it, where there are no libraries
		have qemu-system-x86_64 xz busybox && ! ldd "$(command -v busybox)" && compgen -G "$kernel/boot/vmlinuz-*" ;;
	packages) true ;;
	lintian) have lintian man ;;
	rpm) have rpm rpmlint ;;
	dnf) have dnf createrepo_c ;;
	qemu) [ "$(uname -m)" = aarch64 ] || have qemu-aarch64 ;;
	nspawn) have systemd-nspawn mmdebstrap && unshare --mount --pid --fork true ;;
	*) have "$1" ;; # haproxy, nginx, chromium, systemd-notify
	esac
} >/dev/null 2>&1
debs_of() { # thing: Debian's packages that bring it
	case $1 in
	root | cgroup | pidns | fuse | packages) ;;
	zookeeper) echo zookeeper libslf4j-java ;;
	namespaces) echo iproute2 nftables ;;
	kazoo) echo python3-kazoo ;;
	systemd-notify) echo systemd ;;
	shells) echo bash zsh fish ;;
	nginx) echo nginx-light ;;
	programs) echo redis-server redis-tools nginx-light iputils-arping python3 postgresql ;;
	sshd) echo openssh-server openssh-client ;;
	machine) echo qemu-system-x86 busybox-static xz-utils ;;
	lintian) echo lintian man-db ;;
	rpm) echo rpm rpmlint ;;
	dnf) echo dnf createrepo-c ;;
	qemu) echo qemu-user ;;
	nspawn) echo systemd-container mmdebstrap ;;
	*) echo "$1" ;; # prometheus, haproxy, chromium, fence-agents
	esac
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

fetch_kernel() { # Debian's, which is not installed: what of it is booted stays in $kernel
	mkdir -p "${kernel%/*}" || return
	local unpacked package
	unpacked=$(mktemp -d "$kernel.XXXXXX") || return
	package=$(apt-cache depends linux-image-amd64 | awk '$1 == "Depends:" {print $2}') &&
		echo "test.sh: fetching $package" >&2 &&
		(cd "$unpacked" && apt-get -qq download "$package") &&
		dpkg-deb --fsys-tarfile "$unpacked"/*.deb |
		tar -x -C "$unpacked" --wildcards './boot/vmlinuz-*' '*/watchdog.ko*' '*/i6300esb.ko*' '*/e1000.ko*' &&
		rm -rf "$kernel" && rm "$unpacked"/*.deb && mv -T "$unpacked" "$kernel" && return
	rm -rf "$unpacked"
}

install_missing() {
	local thing debs=
	for thing in $needed; do
		is_there "$thing" || debs="$debs $(debs_of "$thing")"
	done
	if [ "$part" != promises ]; then
		is_there gcc || debs="$debs gcc libc6-dev" # of the race detector
	fi
	[ -n "${debs// /}" ] && command -v apt-get && as_root true || return 0
	# shellcheck disable=SC2086 # words
	set -- $debs
	echo "test.sh: installing $*" >&2
	as_root apt-get -qq update || true
	# What is installed for the tests is not to run on its own: Debian's scripts ask this file before they start anything.
	local policy=/usr/sbin/policy-rc.d
	[ ! -e $policy ] || policy=
	[ -z "$policy" ] || printf '#!/bin/sh\nexit 101\n' | as_root install -m 755 /dev/stdin "$policy" || true
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 install "$@" >&2 || true
	[ -z "$policy" ] || as_root rm -f "$policy" || true
	as_root systemd-machine-id-setup || true
	case " $needed " in *" machine "*) is_there machine || fetch_kernel || true ;; esac
}
install_missing >/dev/null 2> >(grep '^test.sh\|^E: ' >&2)
[ "$part" != install ] || exit 0

asked=() missing=() beside=()
for thing in $needed; do
	if is_there "$thing"; then asked+=("$thing"); else missing+=("$thing"); fi
done
for thing in $also; do
	if is_there "$thing"; then asked+=("$thing"); else beside+=("$thing"); fi
done
for thing in ${missing[@]+"${missing[@]}"}; do
	case $thing in
	root | cgroup | pidns | fuse) why="it needs root, on a Linux that allows it" ;;
	namespaces | nspawn) why="it needs root and Debian's packages $(debs_of "$thing"), or the like" ;;
	*) why="it needs Debian's packages $(debs_of "$thing"), or the like" ;;
	esac
	echo "test.sh: $thing is missing, its tests are skipped: $why" >&2
done
if [ "${CI:-}" = true ] && [ ${#missing[@]} -gt 0 ]; then
	echo "test.sh: CI must not leave anything out, and this machine lacks: ${missing[*]}" >&2
	exit 1
fi
UNDERSTUDY_TESTS=$(IFS=,; echo "${asked[*]:-}")
export UNDERSTUDY_TESTS

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/testreport" ./packaging/testreport
race=-race
if ! is_there "$(go env CC)"; then
	race=
	echo "test.sh: without the race detector, which needs ${CC:-gcc}" >&2
fi
late=${UNDERSTUDY_LATE:-$work/late}
note=$late
touch "$late"
status=0
run() { # go test's words
	echo "go test $*"
	local codes
	set +e
	go test -json "$@" 2>&1 | "$work/testreport" -totals "$work/totals" -late "$note"
	codes=("${PIPESTATUS[@]}")
	set -e
	[ "${codes[*]}" = "0 0" ] || [ "${codes[1]}" -eq 3 ] || status=1 # 3: the tests that failed were late
}
again() {
	local package name raced names=()
	note= # a test that is late now fails
	while read -r -u 9 package name; do
		names+=("$package.$name")
		case $package in
		*/testbed/sim | */testbed/zktest) raced=$race ;;
		*/testbed/* | */packaging/e2e) raced= ;;
		*) raced=$race ;;
		esac
		run $raced -timeout 20m -count=1 -run "^$name\$" "$package"
	done 9<"$late"
	echo "repeated: ${#names[@]}" ${names[@]+"${names[@]}"}
}
case $part in
again) ;;
packages)
	run -timeout 15m -count=1 ./packaging/e2e
	;;
rest)
	run -timeout 20m -count=1 ./supervisor/testbed/e2e ./supervisor/testbed/programs ./supervisor/testbed/soak ./supervisor/testbed/chaos/... ./supervisor/testbed/watchdog
	;;
promises)
	packages=$(go list ./... | grep -v '/packaging/e2e$\|/testbed/' && go list ./supervisor/testbed/{sim,zktest})
	if [ "$(go env GOOS)" != linux ]; then
		echo "test.sh: this is no Linux: only what is portable is tested" >&2
		packages=$(for package in $packages; do go vet "$package" 2>/dev/null && echo "$package"; done)
		# shellcheck disable=SC2086 # words
		run $packages
	else
		# The one that takes longest first.
		# shellcheck disable=SC2086 # words
		run $race -timeout 10m ./supervisor/child $(grep -v /child$ <<<"$packages")
	fi
	# Alone, since some of it is measured. It watches processes of its own: the race detector would see nothing but the watching.
	[ "$(go env GOOS)" != linux ] ||
		run -timeout 10m -count=1 -p 1 ./supervisor/testbed/kit/... ./supervisor/testbed/golden ./supervisor/testbed/promises
	;;
esac
if [ "$part" = again ] || [ -z "${UNDERSTUDY_LATE:-}" ]; then
	again
fi

[ ! -s "$work/totals" ] || awk '{p += $1; s += $2; f += $3} END {printf "%d tests passed, %d skipped, %d failed\n", p, s, f}' "$work/totals"
if [ ${#missing[@]} -gt 0 ]; then
	echo "left out, with all tests that need it: ${missing[*]}"
fi
if [ ${#beside[@]} -gt 0 ]; then
	echo "for make test-all, which installs it: ${beside[*]}"
fi
exit $status
