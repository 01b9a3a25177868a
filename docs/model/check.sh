#!/bin/bash
# Checks the models of the protocol: their properties have to hold, and each mutation has to break one. See ../models.md.
# To see how a mutation breaks one:
#   spin -a -DFAULTS=3 -DBAD_LEASE -DONLY=1 docs/model/failover.pml
#   gcc -O1 -w -DSAFETY -DBFS -o pan pan.c && ./pan
#   spin -t -p -DFAULTS=3 -DBAD_LEASE -DONLY=1 docs/model/failover.pml
set -eu

models=$(cd "$(dirname "$0")" && pwd)
model=$models/failover.pml
for tool in spin gcc; do
	command -v "$tool" >/dev/null || { echo "check.sh: $tool is missing: apt-get install spin gcc" >&2; exit 1; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

failed=0
row='%-13s %-4s %-6s %10s %6s %6s  %s\n'

# check WHAT PROPERTY EXPECTED MODEL-FLAGS PAN-FLAGS RUN-FLAGS
check() {
	local what=$1 property=$2 expected=$3 dir=$work/$1-$2
	mkdir "$dir"
	cd "$dir"
	# shellcheck disable=SC2086 # the flags are lists
	{
		spin -a $4 "$model" >spin.out 2>&1 &&
			gcc -O1 -w -DCOLLAPSE -DMEMLIM=2000 $5 -o pan pan.c >gcc.out 2>&1 &&
			./pan -m100000 $6 >pan.out 2>&1
	} || true # pan's output decides, below
	local states seconds memory result=unclear
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.out 2>/dev/null || true)
	seconds=$(sed -n 's/^pan: elapsed time \([0-9.]*\).*/\1/p' pan.out 2>/dev/null || true)
	memory=$(sed -n 's/^ *\([0-9.]*\).*total actual memory usage.*/\1/p' pan.out 2>/dev/null || true)
	if grep -Eq 'max search depth too small|Search not completed|out of memory|reached -DMEMLIM|hash table full' pan.out 2>/dev/null &&
		! grep -Eq 'assertion violated|acceptance cycle' pan.out; then
		result=unfinished
	elif grep -Eq 'assertion violated|acceptance cycle' pan.out 2>/dev/null; then
		result=broken
	elif grep -q 'errors: 0' pan.out 2>/dev/null && grep -q 'Full statespace search' pan.out; then
		result=holds
	fi
	local verdict=ok
	if [ "$result" != "$expected" ]; then
		verdict="WRONG: expected $expected"
		failed=1
	fi
	# shellcheck disable=SC2059
	printf "$row" "$what" "$property" "$result" "${states:--}" "${seconds:--}" "${memory%.*}" "$verdict"
	if [ "$result" != "$expected" ]; then
		tail -n 20 ./*.out >&2
	fi
	rm -rf "$dir"
	cd /
}

holds() { check "$1" "$2" holds "$3" "$4" "$5"; }

# Checks a mutation for the one property that it has to break.
breaks() {
	if [ "$model" = "$models/failsafe.pml" ]; then
		breaksFailsafe "$@"
		return
	fi
	case $2 in
	P6) check "$1" P6 broken "-DFAULTS=2 -DONLY=6 -DPROGRESS -D$1" -DNFAIR=4 "-a -f" ;;
	*) check "$1" "$2" broken "-DFAULTS=3 -DONLY=${2#P} -D$1 ${3:-}" -DSAFETY "" ;;
	esac
}

breaksFailsafe() { # MUTATION PROPERTY [NODES]
	case $2 in
	P6) check "$1" P6 broken "-DFAULTS=1 -DONLY=6 -DPROGRESS -D$1" -DNFAIR=4 "-a -f" ;;
	P7) check "$1" P7 broken "-DCALM -DOLD=2 -DONLY=7 -D$1" -DSAFETY "" ;;
	*) check "$1" "$2" broken "${3:--DFAULTS=3} -DONLY=${2#P} -D$1" -DSAFETY "" ;;
	esac
}

# shellcheck disable=SC2059
printf "$row" run what result states sec MB ""
holds two-nodes   all "-DFAULTS=3" -DSAFETY ""
holds three-nodes all "-DFAULTS=2 -DNODES=3" -DSAFETY ""
holds progress    P6  "-DFAULTS=2 -DONLY=6 -DPROGRESS" -DNFAIR=4 "-a -f"
holds trusted-two all "-DTRUSTED -DFAULTS=3" -DSAFETY ""
holds trusted-3   all "-DTRUSTED -DFAULTS=2 -DNODES=3" -DSAFETY ""
holds trusted     P6  "-DTRUSTED -DFAULTS=2 -DONLY=6 -DPROGRESS" -DNFAIR=4 "-a -f"

breaks NO_CRUMB      P1
breaks NO_OWNER      P1
breaks NO_NAME       P1
breaks BAD_READ      P1
breaks NO_VERIFY     P1
breaks NO_FENCING    P1
breaks BAD_GRACE     P1
breaks BAD_STRANGER  P1
breaks NO_DELAY      P6
breaks BAD_CONFIRMED P1
breaks BAD_CONFIRM   P2
breaks BAD_OPERATOR  P1
breaks NO_REMOVAL    P1
breaks NO_PROOF      P1
breaks NO_PROOF      P2
breaks BAD_RELEASE   P1
breaks BAD_RELEASE   P2
breaks BAD_DISOWN    P2
breaks BAD_CLOSING   P1
breaks BAD_CLOSING   P2
breaks BAD_TICKET    P2
breaks BAD_LEASE     P1 -DTRUSTED
breaks BAD_LEASE     P3

model=$models/names.pml
echo names
holds two-nodes     all "-DFAULTS=2" -DSAFETY -E
for mutation in BY_VERSION NO_RECORD NO_SINCE NO_ORPHANS NO_EMPTY; do
	check $mutation all broken "-DFAULTS=2 -D$mutation" -DSAFETY -E
done

model=$models/succession.pml
echo succession
holds two-nodes     all "-DNODES=2 -DFAULTS=2" -DSAFETY -E
holds three-nodes   all "-DNODES=3 -DFAULTS=1" -DSAFETY -E
holds sessions      all "-DNODES=2 -DFAULTS=1 -DSESSIONS" -DSAFETY -E
for mutation in SHORT FROM_SEND REVIVE RECREATE OTHER_ZNODE BY_PATH NO_FENCE KEEP NO_FIRST OLD_ANSWER OLD_PROOF SAME_WATCH NO_WARY; do
	check $mutation P1 broken "-DNODES=2 -DFAULTS=2 -DONLY=1 -D$mutation" -DSAFETY -E
done
for mutation in NO_CHECK NO_CLAIM BY_RECORD SHORT FROM_SEND RECREATE OTHER_ZNODE BY_PATH KEEP SAME_WATCH; do
	check $mutation P2 broken "-DNODES=2 -DFAULTS=2 -DONLY=2 -D$mutation" -DSAFETY -E
done

model=$models/failsafe.pml
echo failsafe
three="-DNODES=3 -DOLD=3 -DFAULTS=2"
holds two-nodes     all "-DFAULTS=3" -DSAFETY ""
holds three-nodes   all "$three" -DSAFETY ""
holds one-joins     all "-DNODES=3 -DOLD=2 -DFAULTS=1" -DSAFETY ""
holds progress      P6  "-DFAULTS=1 -DONLY=6 -DPROGRESS" -DNFAIR=4 "-a -f"
holds outage-two    P7  "-DCALM -DOLD=2" -DSAFETY ""
holds outage-three  P7  "-DCALM -DNODES=3 -DOLD=3 -DFAULTS=1" -DSAFETY ""
holds outage-joins  P7  "-DCALM -DNODES=3 -DOLD=2 -DFAULTS=0" -DSAFETY ""

breaks NO_ACK        P1
breaks NO_UNION      P1 "$three"
breaks BAD_DROP      P1 "$three"
breaks BAD_NOBODY    P1
breaks BAD_ENLIST    P1
breaks BAD_START     P1
breaks NO_UNANIMITY  P1 "$three"
breaks BAD_COVER     P1
breaks BAD_PROMISE   P1
breaks BAD_SIGHT     P3
breaks BAD_ENGAGED   P1
breaks NO_WAIT       P1
breaks NO_HEIR       P1
breaks BAD_HEIR      P1
breaks BAD_DELAY     P1
breaks NO_RETREAT    P6
breaks BAD_LAPSE     P1
breaks BAD_DEADLINE  P1
breaks BAD_ASK       P7
breaks BAD_AGAIN     P7
exit $failed
