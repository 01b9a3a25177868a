#!/usr/bin/env bash
# Runs every test. What they need and this machine lacks is installed where that is possible: on Debian and its kin, as
# root or with sudo that asks for no password. What stays missing is left out, and named at the end; with CI=true it is
# an error instead. UNDERSTUDY_LEFT_OUT, a comma-separated list, may name what to leave out from the start.
set -euo pipefail
cd "$(dirname "$0")/.."

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
has_compiler() { command -v "${CC:-gcc}" && echo '#include <stdlib.h>' | "${CC:-gcc}" -E -; }

install_missing() {
	local packages=()
	is_left_out zookeeper || has_zookeeper || packages+=(zookeeper libslf4j-java)
	is_left_out kazoo || has_kazoo || packages+=(python3-kazoo)
	is_left_out namespaces || has_network_tools || packages+=(iproute2 nftables)
	has_compiler || packages+=(gcc libc6-dev)
	[ ${#packages[@]} -gt 0 ] || return 0
	command -v apt-get && as_root true || return 0
	echo "test.sh: installing ${packages[*]}" >&2
	as_root apt-get -qq update || true
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 install "${packages[@]}" >&2 || true
	as_root systemd-machine-id-setup || true
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
	has_kazoo || is_left_out kazoo || leave_out kazoo "apt-get install python3-kazoo"
	is_left_out namespaces || { has_network_tools && unshare --net --mount true; } ||
		leave_out namespaces "needs root, iproute2 and nftables"
	is_left_out pidns || unshare --pid --fork --mount-proc true || leave_out pidns "needs root"
	is_left_out cgroup || cgroup_works || leave_out cgroup "needs a cgroup v2 that can be written to"
	has_compiler || { leave_out race "apt-get install gcc libc6-dev"; race=; }
} >/dev/null 2> >(grep '^test.sh' >&2)

if [ "${CI:-}" = true ] && [ ${#left_out[@]} -gt 0 ]; then
	echo "test.sh: CI must not leave anything out, and this machine lacks: ${left_out[*]}" >&2
	exit 1
fi
UNDERSTUDY_LEFT_OUT=$(IFS=,; echo "${left_out[*]:-}")
export UNDERSTUDY_LEFT_OUT

echo "go vet ./..."
go vet ./...

# run tests verbosely, show a line a package, and the whole story of a package that failed; totals are kept in a file.
totals=$(mktemp)
trap 'rm -f "$totals"' EXIT
run() {
	echo "go test $*"
	go test -v "$@" 2>&1 | awk -v totals="$totals" '
		/^(ok|FAIL)[ \t]+[^ \t]/ || /^\?? +[ \t]/ && /no test files/ {
			if (/^FAIL/) for (i = 1; i <= n; i++) print story[i]
			if (!/no test files/) print
			n = 0
			next
		}
		/^ *--- PASS/ { pass++; next }
		/^ *--- SKIP/ { skip++ }
		/^ *--- FAIL/ { fail++ }
		/^=== (RUN|PAUSE|CONT|NAME)/ || /^(PASS|FAIL)$/ || /^\t.*coverage: / { next }
		{ story[++n] = $0 }
		END {
			for (i = 1; i <= n; i++) print story[i]
			print pass + 0, skip + 0, fail + 0 >> totals
		}'
}
mapfile -t packages < <(go list ./... | grep -v /e2e)
status=0
# shellcheck disable=SC2086 # race is one flag or none
run $race -timeout 10m "${packages[@]}" || status=1
# The tests that measure gaps come last, and alone.
# shellcheck disable=SC2086
run $race -timeout 18m -p 1 ./supervisor/e2e/... || status=1

awk '{p += $1; s += $2; f += $3} END {printf "%d tests passed, %d skipped, %d failed\n", p, s, f}' "$totals"
if [ ${#left_out[@]} -gt 0 ]; then
	echo "left out, with all tests that need it: ${left_out[*]}"
fi
exit $status
