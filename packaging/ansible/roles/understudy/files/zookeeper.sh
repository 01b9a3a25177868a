# Looks at the servers of ZooKeeper, and restarts the one of this host: what to do, seconds to wait, this host, and each server's host and
# address.
export LC_ALL=C
task=$1 patience=$2 me=$3 own='' others=()
shift 3
for server; do
    if [ "${server% *}" = "$me" ]; then own=${server#* }; else others+=("$server"); fi
done

serves() {
    timeout 2 bash -c 'exec 3<>/dev/tcp/$0/2181 && echo srvr >&3 && grep -q ^Mode: <&3' "$1" 2>/dev/null
}

comes_to_serve() {
    for _ in $(seq "$2"); do
        serves "$1" && return
        sleep 1
    done
    return 1
}

restart() {
    systemctl restart zookeeper
    echo restarted
}

# Reports whether this host's server was started before its files were last written.
is_older() {
    [ -n "$own" ] && [ -n "$(find /etc/zookeeper/conf/{zoo.cfg,myid} /etc/systemd/system/zookeeper.service -newermt \
        "$(systemctl show --property=ExecMainStartTimestamp --timestamp=us+utc --value zookeeper)")" ]
}

# Prints the ports of a server that this host does not reach.
closed_of() {
    local host=${1% *} address=${1#* } ports=2181 port said why='' closed=''
    [ -z "$own" ] || [ "$host" = "$me" ] || ports='2181 2888 3888'
    for port in $ports; do
        said=$(timeout 2 bash -c 'exec 3<>/dev/tcp/$0/$1' "$address" "$port" 2>&1) && continue
        said=${said%%$'\n'*} said=${said##*: }
        [ "$port $said" = '2888 Connection refused' ] && continue # only the leader listens there
        closed+=" $port" why=${said:-no answer}
    done
    [ "$host" = "$address" ] || host+=" at $address"
    [ -z "$closed" ] || echo "$host port$closed ($why)"
}

# Prints what is wrong, as this host sees it.
look() {
    local server closed
    closed=$(for server; do closed_of "$server" & done; wait)
    if [ -n "$closed" ]; then
        echo "$me does not reach ${closed//$'\n'/, }"
    else
        for server; do serves "${server#* }" || echo "${server% *} does not serve: see \`journalctl -u zookeeper\` there"; done
    fi
    ! is_older || echo "$me runs ZooKeeper with older settings, because it is restarted only while all others serve"
}

case $task in
repair) comes_to_serve "$own" 10 || serves localhost || restart ;; # when it does not serve, nothing is lost
roll)
    is_older || exit 0
    for server in "${others[@]}"; do comes_to_serve "${server#* }" "$patience" || exit 0; done
    restart
    comes_to_serve "$own" "$patience"
    ;;
wait)
    while said=$(look "$@") && [ -n "$said" ] && [ $SECONDS -lt "$patience" ]; do sleep 1; done
    [ -z "$said" ] || printf '%s\n' "$said"
    case $said,$(getent ahostsv4 "$own") in
    ?*,127.*) echo "$own is a loopback address in /etc/hosts of $me, so others do not reach its server" ;;
    esac
    ;;
esac
exit 0
