#!/bin/sh
# What understudy asks of one copy of PostgreSQL, in postgresql-replicated.yaml: run, health, role, position, promote, follow.
#
# The copy on each node starts as a standby of nobody. One that follows a primary, and gets no data from it within ten seconds although it
# answers, has gone another way. It is then ill, so that it is started again, and before that made like the primary, with pg_rewind, else
# with pg_basebackup. PGDATA.like names the server that it is to be made like.
set -eu
: "${PGDATA:=/var/lib/postgresql/15/main}" "${PGHOST:=/var/run/postgresql}" "${PGPORT:=5432}" "${PGUSER:=postgres}"
export PGDATA PGHOST PGPORT PGUSER PGDATABASE=postgres PGCONNECT_TIMEOUT=3
PATH=${PGBIN:-/usr/lib/postgresql/15/bin}:$PATH
active=${UNDERSTUDY_ACTIVE_ADDRESS:-}

ask() { psql -XAtqc "$1" ${2:+-h "$2"}; } # QUERY [SERVER]

# made_like SERVER: its data takes the place of this copy's.
made_like() {
	ask checkpoint "$1" || return # pg_rewind sees a promotion only after it
	if [ -e "$PGDATA/PG_VERSION" ] && [ ! -e "$PGDATA.like.whole" ]; then
		! pg_isready -q || return # a server that is not understudy's
		rm -f "$PGDATA/postmaster.pid" "$PGDATA/standby.signal" # of a killed one, which recovers before it is rewound
		! pg_rewind -D "$PGDATA" ${PGCONFIG:+--config-file="$PGCONFIG"} \
			--source-server="host=$1 port=$PGPORT user=$PGUSER dbname=postgres" || return 0
		: >"$PGDATA.like.whole" # it may have changed half of it
	fi
	find "$PGDATA" -mindepth 1 -delete && pg_basebackup -D "$PGDATA" -h "$1" -X stream -c fast
}

case $1 in
run)
	if [ -e "$PGDATA.like" ]; then
		from=$(cat "$PGDATA.like")
		until made_like "$from"; do sleep 1; done
		# It needs the rest of that server's log before it is consistent, and takes connections.
		echo "primary_conninfo = 'host=$from port=$PGPORT user=$PGUSER connect_timeout=3'" >>"$PGDATA/postgresql.auto.conf"
		rm -f "$PGDATA.like.whole" "$PGDATA.like"
	fi
	: >"$PGDATA/standby.signal"
	exec postgres -D "$PGDATA" ${PGCONFIG:+-c config_file="$PGCONFIG"}
	;;
health)
	[ ! -e "$PGDATA.like" ] && pg_isready -q
	;;
role) # 0: a follower, 8: the primary
	case $(ask 'select pg_is_in_recovery()') in t) ;; f) exit 8 ;; *) exit 1 ;; esac
	;;
position) # nothing while it does not get what the primary writes: a copy that has gone another way streams what is older than that
	from=true
	if [ -n "$active" ]; then
		timeline=$(ask "select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int" "$active") || exit 0
		from="exists (select from pg_stat_wal_receiver where status = 'streaming' and sender_host = '$active' and received_tli = $timeline)"
	fi
	ask "select pg_wal_lsn_diff(case when pg_is_in_recovery() then greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
		else pg_current_wal_flush_lsn() end, '0/0') where not pg_is_in_recovery() or $from"
	;;
promote)
	rm -f "$PGDATA.like"
	[ "$(ask 'select pg_promote(true, 30)')" = t ]
	;;
follow)
	ask "alter system set primary_conninfo = 'host=$active port=$PGPORT user=$PGUSER application_name=$UNDERSTUDY_NODE connect_timeout=3'"
	ask 'select pg_reload_conf()' >/dev/null
	tries=50
	until [ -n "$("$0" position)" ]; do
		tries=$((tries - 1))
		if [ $tries -eq 0 ] && ask 'select 1' "$active" >/dev/null; then
			echo "$active" >"$PGDATA.like"
		fi
		[ $tries -gt 0 ] || exit 1
		sleep 0.2
	done
	;;
esac
