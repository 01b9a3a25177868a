#!/bin/sh
# What understudy asks of one copy of MariaDB, in mariadb-replicated.yaml: run, role, position, promote, demote, follow, reclone. A script for
# a program of your own looks like this one. docs/replicated.md describes what each command has to do.
set -eu
: "${DATADIR:=/var/lib/mysql}" "${CONFIG:=/etc/mysql/my.cnf}" "${REPLICA_USER:=replica}"
socket=$DATADIR/mysqld.sock active=${UNDERSTUDY_ACTIVE_ADDRESS:-} port=${UNDERSTUDY_ACTIVE_PORT:-3306}
PATH=$PATH:/usr/sbin
case $active$port in
*[!A-Za-z0-9._:-]* | -*) # it becomes a part of SQL
	echo "the primary's address is none" >&2
	exit 75
	;;
esac

sql() { mariadb --no-defaults -S "$socket" -NBe "$1"; }
status() { mariadb --no-defaults -S "$socket" -Be 'show slave status\G' | sed -n "s/^ *$1: //p"; }
number() { sed -n 's/^0-[0-9]*-\([0-9]*\)$/\1/p' | grep . || echo 0; } # of a GTID; there is one domain, 0

# unapplied is the place in the relay log of the first transaction that is not applied, if it is there.
unapplied() {
	next=$(($(sql 'select @@gtid_slave_pos' | number) + 1))
	for log in "$DATADIR"/relay.[0-9]*; do
		sql "show relaylog events in '${log##*/}'" | awk -F '\t' -v "end=-$next\$" \
			'$3 == "Gtid" && $6 ~ "GTID 0-[0-9]+" end {print "relay_log_file = \047" $1 "\047, relay_log_pos = " $2}'
	done
}

# apply_all has all that this copy has received applied. That counts, too: the primary has acknowledged it. When neither thread runs, as after a
# start, MariaDB deletes the relay log instead, unless it goes on by a place in it. What cannot be applied has to come again.
apply_all() {
	[ -n "$(status Master_Host)" ] || return 0
	if [ "$(status Slave_IO_Running) $(status Slave_SQL_Running)" = 'No No' ]; then
		from=$(unapplied)
		[ -z "$from" ] || sql "change master to master_use_gtid = no, $from"
	fi
	sql 'start slave sql_thread' || sql 'reset slave; start slave sql_thread'
	until case $(status Slave_SQL_Running_State) in 'Slave has read all relay log'*) ;; *) false ;; esac do
		if [ "$(status Slave_SQL_Running)" != Yes ]; then
			[ "$(status Using_Gtid)" = No ] || exit 1
			sql 'change master to master_use_gtid = slave_pos; start slave sql_thread'
		fi
		sleep 0.05
	done
}

# serve starts the server as a follower of nobody. What a killed primary has logged, and no follower has acknowledged, is taken back.
serve() {
	exec mariadbd --defaults-file="$CONFIG" --datadir="$DATADIR" --socket="$socket" --pid-file="$DATADIR/pid" --read-only=1 --skip-slave-start \
		--server-id="$(printf %s "$UNDERSTUDY_NODE" | cksum | cut -d ' ' -f 1)" --log-bin=binlog --relay-log=relay --log-slave-updates=1 \
		--gtid-strict-mode=1 --sync-binlog=1 --init-rpl-role=SLAVE --rpl-semi-sync-slave-enabled=1 \
		--rpl-semi-sync-master-wait-point=AFTER_SYNC --rpl-semi-sync-master-timeout=1000000000000 "$@"
}

case $1 in
run) serve ;;
role) # 0: a follower, 8: the primary
	case $(sql 'select @@read_only') in 1) ;; 0) exit 8 ;; *) exit 1 ;; esac
	;;
position)
	if [ -n "$active" ] && [ "$UNDERSTUDY_ROLE" = follower ]; then # what it has received
		[ "$(status Master_Host) $(status Slave_IO_Running) $(status Slave_SQL_Running)" = "$active Yes Yes" ] || exit 0
		status Gtid_IO_Pos | number
	else
		apply_all
		sql 'select @@gtid_current_pos' | number
	fi
	;;
promote)
	[ -z "$(status Master_Host)" ] || sql 'stop slave io_thread'
	apply_all
	sql 'stop slave; reset slave all; set global rpl_semi_sync_master_enabled = 1; set global read_only = 0'
	;;
demote) # it waits for the commits that are under way
	sql 'set global read_only = 1; set global rpl_semi_sync_master_enabled = 0'
	;;
follow) # fails if it gets no data within ten seconds
	sql "stop slave; change master to master_host = '$active', master_port = $port, master_user = '$REPLICA_USER',
		master_password = '$REPLICA_PASSWORD', master_connect_retry = 1, master_use_gtid = slave_pos, master_demote_to_slave = 1; start slave"
	tries=50
	until [ -n "$("$0" position)" ]; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || exit 1
		sleep 0.2
	done
	;;
reclone) # 75: nothing was changed
	: "${active:?}"
	dump=$DATADIR.sql
	rm -f "$dump"
	(umask 077 && MYSQL_PWD=$REPLICA_PASSWORD mariadb-dump --no-defaults -h "$active" -P "$port" -u "$REPLICA_USER" --all-databases --single-transaction \
		--flush-privileges --gtid --master-data >"$dump") || exit 75
	find "$DATADIR" -mindepth 1 -delete
	mariadb-install-db --no-defaults --datadir="$DATADIR" --auth-root-authentication-method=socket --auth-root-socket-user="$(id -un)" --skip-test-db >/dev/null
	(serve --skip-networking --skip-log-bin --read-only=0) &
	until sql 'select 1' >/dev/null 2>&1; do
		kill -0 $! || exit 1
		sleep 0.1
	done
	sql "source $dump"
	sql shutdown
	wait
	rm "$dump"
	;;
esac
