#!/usr/bin/env bash
# Runs every test but those of the packages, which `packages` as an argument runs; `again` repeats what was late. What they need and this machine lacks is installed where that is possible: on Debian and its kin, as
# root or with sudo that asks for no password. What stays missing is left out, and named at the end; with CI=true it is
# an error instead. UNDERSTUDY_LEFT_OUT, a comma-separated list, may name what to leave out from the start.
set -euo pipefail
cd "$(dirname "$0")/.."

part=${1:-all}
left_out=()
IFS=', ' read -r -a left_out <<<"${UNDERSTUDY_LEFT_OUT:-}"

leave_out() { # thing, why
	echo "test.sh: without $1: $2" >&2
	left_out+=("$1")
}
is_left_out() { [[ " ${left_out[*]:-} " == *" $1 "* ]]; }

as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

has_zookeeper() { command -v java && [ -e /usr/share/java/zookeeper.jar ] && [ -e /usr/share/java/slf4j-simple.jar ]; }
has_kazoo() { /usr/bin/python3 -c 'import kazoo'; } # Debian's, whatever else comes first in PATH
has_network_tools() { PATH=$PATH:/usr/sbin:/sbin command -v ip && PATH=$PATH:/usr/sbin:/sbin command -v nft; }
has_haproxy() { PATH=$PATH:/usr/sbin command -v haproxy; }
has_nginx() { PATH=$PATH:/usr/sbin command -v nginx; }
has_programs() { # what supervisor/e2e/programs wraps
	local PATH=$PATH:/usr/sbin:/sbin
	command -v redis-server && command -v redis-cli && command -v nginx && command -v arping && [ -x /usr/bin/python3 ] &&
		compgen -G '/usr/lib/postgresql/*/bin/postgres'
}
has_shells() { command -v bash && command -v zsh && command -v fish; }
has_sshd() { PATH=$PATH:/usr/sbin command -v sshd && command -v ssh-keygen; }
has_fence_agents() { PATH=$PATH:/usr/sbin command -v fence_dummy; }
has_lintian() { command -v lintian && command -v man; }
has_rpm() { command -v rpm && command -v rpmlint; }
has_dnf() { command -v dnf && command -v createrepo_c; }
has_qemu() { [ "$(uname -m)" = aarch64 ] || command -v qemu-aarch64; }
has_nspawn() { command -v systemd-nspawn && command -v mmdebstrap; }
kernel=${XDG_CACHE_HOME:-$HOME/.cache}/understudy/kernel
has_kernel() { compgen -G "$kernel/boot/vmlinuz-*"; }
has_machine() { # a PC that is emulated, and what runs on it, where there are no libraries
	command -v qemu-system-x86_64 && command -v xz && command -v busybox && ! ldd "$(command -v busybox)" && has_kernel
}
has_compiler() { command -v "${CC:-gcc}" && echo '#include <stdlib.h>' | "${CC:-gcc}" -E -; }

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
	local packages=()
	is_left_out zookeeper || has_zookeeper || packages+=(zookeeper libslf4j-java)
	is_left_out namespaces || has_network_tools || packages+=(iproute2 nftables)
	if [ "$part" = packages ]; then
		is_left_out lintian || has_lintian || packages+=(lintian man-db)
		is_left_out rpm || has_rpm || packages+=(rpm rpmlint)
		is_left_out dnf || has_dnf || packages+=(dnf createrepo-c)
		is_left_out qemu || has_qemu || packages+=(qemu-user)
		is_left_out nspawn || has_nspawn || packages+=(systemd-container mmdebstrap)
	else
		is_left_out kazoo || has_kazoo || packages+=(python3-kazoo)
		is_left_out systemd-notify || command -v systemd-notify || packages+=(systemd)
		is_left_out prometheus || command -v promtool || packages+=(prometheus)
		is_left_out haproxy || has_haproxy || packages+=(haproxy)
		is_left_out shells || has_shells || packages+=(bash zsh fish)
		is_left_out chromium || command -v chromium || packages+=(chromium)
		is_left_out nginx || has_nginx || packages+=(nginx-light)
		is_left_out programs || has_programs || packages+=(redis-server redis-tools nginx-light iputils-arping python3 postgresql)
		is_left_out sshd || has_sshd || packages+=(openssh-server openssh-client)
		is_left_out fence-agents || has_fence_agents || packages+=(fence-agents)
		is_left_out machine || has_machine || packages+=(qemu-system-x86 busybox-static xz-utils)
		has_compiler || packages+=(gcc libc6-dev)
	fi
	[ ${#packages[@]} -gt 0 ] || return 0
	command -v apt-get && as_root true || return 0
	echo "test.sh: installing ${packages[*]}" >&2
	as_root apt-get -qq update || true
	# What is installed for the tests is not to run on its own: Debian's scripts ask this file before they start anything.
	local policy=/usr/sbin/policy-rc.d
	[ ! -e $policy ] || policy=
	[ -z "$policy" ] || printf '#!/bin/sh\nexit 101\n' | as_root install -m 755 /dev/stdin "$policy" || true
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 install "${packages[@]}" >&2 || true
	[ -z "$policy" ] || as_root rm -f "$policy" || true
	as_root systemd-machine-id-setup || true
	[[ " ${packages[*]} " != *" qemu-system-x86 "* ]] || has_kernel || fetch_kernel || true
}
install_missing >/dev/null 2> >(grep '^test.sh\|^E: ' >&2)

export PATH=$PATH:/usr/sbin:/sbin
cgroup_works() {
	local mount probe
	mount=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)
	probe="$mount$(sed -n 's/^0:://p' /proc/self/cgroup)/understudy-probe-$$"
	[ -n "$mount" ] && mkdir "$probe" && [ -e "$probe/cgroup.kill" ] && rmdir "$probe"
}
race=-race
{
	has_zookeeper || is_left_out zookeeper || leave_out zookeeper "apt-get install zookeeper"
	is_left_out namespaces || { has_network_tools && unshare --net --mount true; } ||
		leave_out namespaces "needs root, iproute2 and nftables"
	if [ "$part" = packages ]; then
		has_lintian || is_left_out lintian || leave_out lintian "apt-get install lintian man-db"
		has_rpm || is_left_out rpm || leave_out rpm "apt-get install rpm rpmlint"
		has_dnf || is_left_out dnf || leave_out dnf "apt-get install dnf createrepo-c"
		has_qemu || is_left_out qemu || leave_out qemu "apt-get install qemu-user"
		is_left_out nspawn || { has_nspawn && unshare --mount --pid --fork true; } ||
			leave_out nspawn "needs root, systemd-container and mmdebstrap"
	else
		has_kazoo || is_left_out kazoo || leave_out kazoo "apt-get install python3-kazoo"
		is_left_out systemd-notify || command -v systemd-notify || leave_out systemd-notify "apt-get install systemd"
		is_left_out prometheus || command -v promtool || leave_out prometheus "apt-get install prometheus"
		is_left_out haproxy || has_haproxy || leave_out haproxy "apt-get install haproxy"
		is_left_out shells || has_shells || leave_out shells "apt-get install bash zsh fish"
		is_left_out chromium || command -v chromium || leave_out chromium "apt-get install chromium"
		is_left_out nginx || has_nginx || leave_out nginx "apt-get install nginx-light"
		is_left_out root || [ "$(id -u)" -eq 0 ] || leave_out root "needs root"
		is_left_out fuse || { [ "$(id -u)" -eq 0 ] && [ -c /dev/fuse ]; } || leave_out fuse "needs root and /dev/fuse"
		is_left_out pidns || unshare --pid --fork --mount-proc true || leave_out pidns "needs root"
		is_left_out cgroup || cgroup_works || leave_out cgroup "needs a cgroup v2 that can be written to"
		is_left_out programs || has_programs ||
			leave_out programs "apt-get install redis-server nginx-light iputils-arping python3 postgresql"
		is_left_out sshd || has_sshd || leave_out sshd "apt-get install openssh-server"
		is_left_out fence-agents || has_fence_agents || leave_out fence-agents "apt-get install fence-agents"
		is_left_out machine || has_machine ||
			leave_out machine "needs qemu-system-x86, busybox-static, xz-utils and Debian's kernel, all of which this script fetches with apt-get"
		has_compiler || { leave_out race "apt-get install gcc libc6-dev"; race=; }
	fi
} >/dev/null 2> >(grep '^test.sh' >&2)

if [ "${CI:-}" = true ] && [ ${#left_out[@]} -gt 0 ]; then
	echo "test.sh: CI must not leave anything out, and this machine lacks: ${left_out[*]}" >&2
	exit 1
fi
UNDERSTUDY_LEFT_OUT=$(IFS=,; echo "${left_out[*]:-}")
export UNDERSTUDY_LEFT_OUT


# A test that failed by a bound on time alone is run once more, by itself, when nothing else runs: at the end of this script, or, when
# UNDERSTUDY_LATE names a file, by whoever wrote that there, with `test.sh again`. All else that fails is a finding, and is not.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/testreport" ./packaging/testreport
late=${UNDERSTUDY_LATE:-$work/late}
touch "$work/totals" "$late"

run() { # go test's words
	echo "go test $*"
	local codes
	set +e
	go test -json "$@" 2>&1 | "$work/testreport" -totals "$work/totals" ${once_more:+-late "$late"}
	codes=("${PIPESTATUS[@]}")
	set -e
	[ "${codes[*]}" = "0 0" ] || [ "${codes[1]}" -eq 3 ] # 3: all that failed was late
}
again() { # once more, by itself: what the file says
	local tests package name
	mapfile -t tests <"$1"
	for test in ${tests[@]+"${tests[@]}"}; do
		read -r package name <<<"$test"
		once_more='' run -count=1 -timeout 15m -p 1 -run "^$name\$" "$package" || status=1
	done
	echo "repeated: ${#tests[@]}" ${tests[@]+"${tests[@]// /.}"}
}
once_more=yes
status=0
case $part in
again)
	again "$late"
	;;
packages)
	run -timeout 15m ./packaging/e2e || status=1
	;;
*)
	echo "go vet ./..."
	go vet ./...
	mapfile -t packages < <(go list ./... | grep -v /e2e)
	# shellcheck disable=SC2086 # race is one flag or none
	run $race -timeout 10m "${packages[@]}" || status=1
	# The tests that measure gaps come last, and alone. They watch processes of their own: the race detector would see nothing
	# but the watching.
	run -timeout 30m -p 1 ./supervisor/e2e/... || status=1
	;;
esac
[ -n "${UNDERSTUDY_LATE:-}" ] || again "$late"

[ ! -s "$work/totals" ] || awk '{p += $1; s += $2; f += $3} END {printf "%d tests passed, %d skipped, %d failed\n", p, s, f}' "$work/totals"
if [ ${#left_out[@]} -gt 0 ]; then
	echo "left out, with all tests that need it: ${left_out[*]}"
fi
exit $status
