# Waits until the services are well, at most so many seconds, and prints what is wrong then.
patience=$1

# Reports whether no node can run anything, as the config has no services.
nothing_to_run() { grep -qx '0 services.' <<<"$said" && understudy check | grep -q '^ok: 0 services'; }

while :; do
    # A supervisor that never reached ZooKeeper takes up other servers only when it is restarted. No service is active there.
    case $(systemctl show --property=StatusText --value understudy) in
    *': 0 active, '*'; no session with ZooKeeper; '*'zookeeper: '*changed*)
        systemctl restart understudy
        echo restarted
        ;;
    esac
    said=$(timeout 20 understudy status --check 2>&1) code=$?
    case $code in 0 | 7) exit 0 ;; esac
    if [ $code = 5 ] && nothing_to_run; then exit 0; fi
    [ $SECONDS -lt "$patience" ] || break
    sleep 1
done
echo "exit code $code: ${said//$'\n'/; }" >&2
