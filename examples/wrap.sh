#!/bin/sh
# One program as a hot-standby pair, without a file. Run this on two hosts, or twice on one with different names:
#
#     NODE=one ./wrap.sh      NODE=two ./wrap.sh
#
# The clock ticks in one of them. Stop that one in any way you like: it ticks in the other.
set -eu
exec understudy run \
	--zk "${UNDERSTUDY_ZK:-127.0.0.1:2181}" \
	--node "${NODE:-$(hostname)}" \
	--service clock \
	-- sh -c 'while :; do echo "token $UNDERSTUDY_TOKEN on $UNDERSTUDY_NODE"; sleep 1; done'
