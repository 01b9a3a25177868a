#!/bin/sh
# What understudy asks of one copy of PostgreSQL, in postgresql-replicated.yaml: run, role, position, promote, copies, follow, prepare, reclone.
#
# The copy on each node starts as a standby of no server. One that was the primary, or gets no data from the primary, is stopped and made like
# the primary by pg_rewind, else by pg_basebackup.
set -eu
: "${PGDATA:=/var/lib/postgresql/15/main}" "${PGHOST:=/var/run/postgresql}" "${PGPORT:=5432}" "${PGUSER:=postgres}"
export PGDATA PGHOST PGPORT PGUSER PGDATABASE=postgres PGCONNECT_TIMEOUT=3
PATH=${PGBIN:-/usr/lib/postgresql/15/bin}:$PATH
# What another server has to prove before this copy takes its data: that it knows the password of PGUSER. ZooKeeper names servers, and others
# may write there.
: "${PGPROOF:=sslmode=require channel_binding=require}"
active=${UNDERSTUDY_ACTIVE_ADDRESS:-}
case $active in
*[!A-Za-z0-9._:-]* | -*) # a comma would make it a list of servers
	echo "the primary's address is none" >&2
	exit 75
	;;
esac

# stopped ends this command if a server runs that is not understudy's: it changes no data then.
stopped() {
	if pg_isready -q; then
		echo "a server runs here" >&2
		exit 75
	fi
}

# quoted is a value in a connection string.
quoted() { printf "'%s'" "$(printf %s "$1" | sed "s/[\\\\']/\\\\&/g")"; }

primary() { printf '%s' "host=$(quoted "$active") port=$(quoted "${UNDERSTUDY_ACTIVE_PORT:-$PGPORT}") user=$(quoted "$PGUSER") connect_timeout=3 $PGPROOF"; }

ask() { # QUERY [OPTION...]. A value is given with -v, and is :'value' in the query
	printf '%s\n' "$1" | {
		shift
		psql -XAtq -v ON_ERROR_STOP=1 "$@"
	}
}

# asks_active gets the primary's timeline, how far its log goes, and whether it acknowledges nothing that this copy does not have.
asks_active() {
	said=$(ask "select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int || ' ' || pg_current_wal_flush_lsn() || ' ' ||
		exists (select from pg_stat_replication where application_name = :'node' and sync_state = 'sync')" -d "$(primary)" -v node="$UNDERSTUDY_NODE") || return 1
	timeline=${said%% *} all=${said#* }
	case $timeline in '' | *[!0-9]*) return 1 ;; esac # another server may answer anything
	case $all in *' true') all=${all% true} ;; *) all='FFFFFFFF/FFFFFFFF' ;; esac
}

own_timeline() {
	LC_ALL=C pg_controldata | sed -n "s/^Latest checkpoint's TimeLineID: *//p; s/^Min recovery ending loc's timeline: *//p" | sort -n | tail -n 1
}

# set_next sets a parameter for the next start.
set_next() { printf "%s = '%s'\n" "$1" "$(printf %s "$2" | sed "s/[\\\\']/&&/g")" >>"$PGDATA/postgresql.auto.conf"; }

# set_standby has the next start follow the primary, without a change of the data. What the primary has no more comes from an archive.
set_standby() {
	set_next primary_conninfo "$(primary) application_name=$(quoted "$UNDERSTUDY_NODE")"
	[ -z "${PGRESTORE:-}" ] || set_next restore_command "$PGRESTORE"
}

# fetch puts the primary's data, or a backup of it, into the empty directory $1.
fetch() { if [ -n "${PGCLONE:-}" ]; then "$PGCLONE" "$1"; else pg_basebackup -D "$1" -d "$(primary)" -X stream -c fast; fi; }

# needs_no_rewind tells a copy that only has to get the rest of the log: a base backup that was not started yet, or a standby of this timeline.
# pg_rewind would start and end a recovery of its own in it, after which it can follow nobody.
needs_no_rewind() {
	if [ -e "$PGDATA/backup_label" ]; then
		! cmp -s "$PGDATA/backup_label" "$PGDATA/started_label" || {
			echo "the base backup in $PGDATA could not be started" >&2
			exit 1
		}
		return
	fi
	case $(LC_ALL=C pg_controldata | sed -n 's/^Database cluster state: *//p') in *recovery*) [ "$(own_timeline)" = "$timeline" ] ;; *) return 1 ;; esac
}

# set_counted has a commit wait for one of the copies in UNDERSTUDY_COPIES, for ever if there is none, and returns once no other one counts: new
# processes have the setting, and whoever sends the log to another copy has read it.
set_counted() {
	names=
	for copy in ${UNDERSTUDY_COPIES:-$UNDERSTUDY_NODE}; do
		case $copy in *[!A-Za-z0-9._-]*) exit 1 ;; esac
		names="$names${names:+, }\"$copy\""
	done
	names="${PGSYNC:-ANY 1} ($names)"
	PGOPTIONS='-c statement_timeout=5s' # nothing of a command that was killed is done later
	export PGOPTIONS
	ask "alter system set synchronous_standby_names = :'names'" -v names="$names"
	ask 'select pg_reload_conf()' >/dev/null
	tries=50
	until [ "$(ask "select current_setting('synchronous_standby_names') = :'names' and not exists (select from pg_stat_replication
		where sync_priority > 0 and application_name <> all (string_to_array(:'copies', ' ')))" -v names="$names" -v copies="$UNDERSTUDY_COPIES")" = t ]; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || exit 1
		sleep 0.1
	done
}

# A copy of the primary needs the rest of its log before it is consistent, and takes connections. run keeps where that comes from for the next
# start.
from_active() { : >"$PGDATA/from_active"; }

fetched=$PGDATA/fetched # the next primary's data, until all of it is here

case $1 in
run)
	rm -rf "$fetched"
	: >"$PGDATA/standby.signal"
	if [ -e "$PGDATA/from_active" ]; then
		rm "$PGDATA/from_active"
	elif [ -e "$PGDATA/postgresql.auto.conf" ]; then # on its own it would follow any server that has the address of its last primary
		set_next primary_conninfo ''
		set_next restore_command ''
	fi
	[ ! -e "$PGDATA/backup_label" ] || cp "$PGDATA/backup_label" "$PGDATA/started_label" # which the start removes
	exec postgres -D "$PGDATA" ${PGCONFIG:+-c config_file="$PGCONFIG"}
	;;
role) # 0: a follower, 8: the primary
	case $(ask 'select pg_is_in_recovery()') in t) ;; f) exit 8 ;; *) exit 1 ;; esac
	;;
position) # nothing while it does not get what the primary writes: a copy that has gone another way streams what is older than that
	from=true all='FFFFFFFF/FFFFFFFF'
	if [ -n "$active" ]; then
		asks_active || exit 0
		from="exists (select from pg_stat_wal_receiver where status = 'streaming' and sender_host = :'active' and received_tli = :'timeline')"
	fi
	for _ in 1 2 3 4 5 6 7 8 9 10; do # what the primary is about to acknowledge may still be on its way
		at=$(ask "select pg_wal_lsn_diff(case when pg_is_in_recovery() then greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
			else pg_current_wal_flush_lsn() end, '0/0') || case when pg_is_in_recovery() and pg_last_wal_receive_lsn() >= :'all' then ' sync' else '' end
			where not pg_is_in_recovery() or $from" -v active="$active" -v timeline="${timeline:-}" -v all="$all")
		case $all$at in FFFFFFFF* | *sync) break ;; esac
		sleep 0.05
	done
	echo "$at"
	;;
copies) set_counted ;;
promote)
	[ -z "${UNDERSTUDY_COPIES+told}" ] || set_counted
	[ "$(ask 'select pg_promote(true, 30)')" = t ]
	;;
follow) # fails if it gets no data for ten seconds
	ask "alter system set primary_conninfo = :'to'" -v to="$(primary) application_name=$(quoted "$UNDERSTUDY_NODE")"
	ask 'select pg_reload_conf()' >/dev/null
	tries=50 was=
	until [ -n "$("$0" position)" ]; do
		now=$(ask 'select pg_last_wal_replay_lsn()') # grows with what comes from an archive
		[ "$now" = "$was" ] || tries=50 was=$now
		tries=$((tries - 1))
		[ $tries -gt 0 ] || exit 1
		sleep 0.2
	done
	[ -z "${PGRESTORE:-}" ] || { # from now on it gets data from the primary alone
		ask "alter system set restore_command = ''"
		ask 'select pg_reload_conf()' >/dev/null
	}
	;;
prepare) # 75: nothing was changed
	stopped
	: "${active:?}"
	ask checkpoint -d "$(primary)" >/dev/null || exit 75 # pg_rewind sees a promotion only after it
	asks_active || exit 75
	[ -e "$PGDATA/PG_VERSION" ] || { echo "$PGDATA has no data" >&2; exit 1; }
	rm -f "$PGDATA/postmaster.pid" # of a killed one
	if needs_no_rewind; then
		set_standby
		from_active
		exit 0
	fi
	rm -f "$PGDATA/standby.signal"
	if [ "$(own_timeline)" != "$timeline" ]; then # pg_rewind sees where this copy's data ends only after it has recovered
		postgres --single -D "$PGDATA" ${PGCONFIG:+-c config_file="$PGCONFIG"} postgres </dev/null >/dev/null
	fi
	pg_rewind -R -D "$PGDATA" ${PGCONFIG:+--config-file="$PGCONFIG"} --source-server="$(primary) dbname=postgres"
	from_active
	;;
reclone) # 75: nothing was changed. Until all is fetched, the disk holds both
	stopped
	: "${active:?}"
	if [ -n "$(find "$PGDATA/pg_wal" "$PGDATA/pg_tblspc" -type l 2>/dev/null)" ] || mountpoint -q "$PGDATA/pg_wal"; then # no pg_basebackup fills these
		echo "a part of $PGDATA is elsewhere (pg_wal, a tablespace): clone it by hand" >&2
		exit 75
	fi
	[ "$(ask "select pg_is_in_recovery() or exists (select from pg_tablespace where pg_tablespace_location(oid) <> '')" -d "$(primary)")" = f ] || {
		echo "$active is not the primary, or has tablespaces: clone $PGDATA by hand" >&2
		exit 75
	}
	mine=$(LC_ALL=C pg_controldata 2>/dev/null | sed -n 's/^Database system identifier: *//p')
	[ "$(ask "select :'mine' in ('', system_identifier::text) from pg_control_system()" -v mine="$mine" -d "$(primary)")" = t ] || {
		echo "$PGDATA is of another cluster than that of $active: empty it, if nothing in it is needed" >&2
		exit 75
	}
	rm -rf "$fetched"
	(umask 077 && mkdir "$fetched")
	fetch "$fetched" || {
		rm -rf "$fetched"
		exit 75
	}
	find "$PGDATA" -mindepth 1 -maxdepth 1 ! -path "$fetched" -exec rm -rf {} +
	find "$fetched" -mindepth 1 -maxdepth 1 -exec mv -t "$PGDATA" {} +
	rmdir "$fetched"
	set_standby
	from_active
	;;
esac
