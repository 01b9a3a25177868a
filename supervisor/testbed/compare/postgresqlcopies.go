package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
	"understudy/supervisor/testbed/must"
)

func postgresqlUnderstudy(tb testing.TB, stage *kit.Stage) *trio {
	w := newTrio(tb, stage.Lab, postgresql)
	scripts := filepath.Join(kit.Open(tb, tb.TempDir()), "postgresql-copy.sh")
	must.OK(tb, os.WriteFile(scripts, []byte(example(tb, "postgresql-copy.sh")), 0o755))
	first := w.dirs[w.hosts[0].Name]
	output(tb, as("postgres", pgBin("initdb"), "-D", first, "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")...)
	conf := []string{
		"listen_addresses = '*'", "unix_socket_directories = '..'", "shared_buffers = 8MB", "hot_standby = on", "wal_log_hints = on",
		"wal_keep_size = 256MB", "wal_retrieve_retry_interval = 1s", fmt.Sprintf("synchronous_standby_names = 'ANY 1 (%q, %q, %q)'", w.hosts[0].Name, w.hosts[1].Name, w.hosts[2].Name),
	}
	hba := []string{"local all all trust", "host all all 10.0.0.0/8 trust", "host replication all 10.0.0.0/8 trust"}
	for file, lines := range map[string][]string{"postgresql.auto.conf": conf, "pg_hba.conf": hba} {
		write(tb, filepath.Join(first, file), strings.Join(lines, "\n")+"\n")
	}
	for _, h := range w.hosts {
		data := w.dirs[h.Name]
		if data != first {
			output(tb, "cp", "-a", first+"/.", data)
		}
		give(tb, "postgres", filepath.Dir(data)) // as /var/lib/postgresql/15 is the user's
	}
	return nodes(tb, w, stage, "postgresql", example(tb, "postgresql-replicated.yaml"), func(h *kit.Host) []string {
		data := w.dirs[h.Name]
		// Machines have process ids of their own. Were they shared, a server would mistake a zombie for its previous self.
		return []string{
			"    user: postgres\n", "    user: postgres\n    contain: pidns\n", "/etc/understudy/postgresql-copy.sh", scripts,
			"/usr/lib/postgresql/15/bin", filepath.Dir(pgBin("postgres")), "/var/lib/postgresql/15/main", data, "/etc/postgresql/15/main", data,
			"/var/run/postgresql", filepath.Dir(data), "sslmode=require channel_binding=require", "sslmode=disable", // as the others have it
		}
	})
}

func postgresqlPatroni(tb testing.TB, stage *kit.Stage) *trio {
	w := newTrio(tb, stage.Lab, postgresql)
	scope := "copies-" + filepath.Base(w.hosts[0].Network())
	units := map[*kit.Host]*kit.Supervisor{}
	for _, h := range w.hosts {
		data := w.dirs[h.Name]
		conf := w.conf(tb, h, "patroni.yml", fmt.Sprintf(`scope: %[1]s
namespace: /patroni/
name: %[2]s
zookeeper: {hosts: ['%[3]s']}
restapi: {listen: '%[4]s:8008', connect_address: '%[4]s:8008'}
bootstrap:
  dcs:
    ttl: 30
    loop_wait: 10
    retry_timeout: 10
    maximum_lag_on_failover: 1048576
    check_timeline: true
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      remove_data_directory_on_rewind_failure: true
      remove_data_directory_on_diverged_timelines: true
      use_slots: true
      parameters: {shared_buffers: 8MB, wal_keep_size: 256MB, wal_log_hints: 'on'}
  initdb: [{encoding: UTF8}, {locale: C.UTF-8}]
postgresql:
  listen: '*:5432'
  connect_address: '%[4]s:5432'
  use_unix_socket: true
  data_dir: %[5]s
  bin_dir: %[6]s
  pgpass: %[7]s/pgpass
  authentication: {replication: {username: postgres}, superuser: {username: postgres}}
  parameters: {unix_socket_directories: '%[7]s'}
  pg_hba: [local all all trust, host all all 0.0.0.0/0 trust, host replication all 0.0.0.0/0 trust]
`, scope, h.Name, strings.Join(stage.Servers, "', '"), h.Addr, data, filepath.Dir(pgBin("postgres")), filepath.Dir(data)))
		units[h] = unit(tb, h, "0.1", as("postgres", "/usr/bin/patroni", conf)...)
	}
	w.process = func(tb testing.TB, h *kit.Host) int { return mainOf(tb, units[h]) }
	client := &http.Client{Timeout: kit.Soon}
	w.switchover = func(tb testing.TB, from *kit.Host) {
		answer, err := client.Post("http://"+from.Addr+":8008/switchover", "application/json", strings.NewReader(`{"leader": "`+from.Name+`"}`))
		must.OK(tb, err)
		defer answer.Body.Close()
		if said, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
			tb.Fatalf("switchover: %s: %s", answer.Status, said)
		}
	}
	w.ready = func(p *kit.Host) bool { // one copy is synchronous, and both stream
		db, err := watch.OpenPostgres(p.Addr+w.port, time.Second)
		if err != nil {
			return false
		}
		defer db.Close()
		streams, err := db.Query("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")
		synchronous, err2 := db.Query("SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')")
		return err == nil && err2 == nil && slices.Equal(streams, []int64{2}) && slices.Equal(synchronous, []int64{1})
	}
	return w.begin(tb)
}
