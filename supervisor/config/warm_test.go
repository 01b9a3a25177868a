package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestAWarmServiceIsRead(t *testing.T) {
	cfg, err := loadFile("testdata/valid/warm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]*Warm{
		"posts":     {Promote: Order{HTTP: "http://127.0.0.1:8080/activate"}, Demote: Order{HTTP: "PUT http://[::1]:8080/idle"}, Timeout: 3 * time.Second},
		"signalled": {Promote: Order{Signal: Signal(unix.SIGUSR1)}, Demote: Order{Exec: Command{"idle"}}, Role: Command{"role", "now"}, Timeout: 10 * time.Second},
		"ordered":   {Promote: Order{Exec: Command{"activate"}}, Timeout: 10 * time.Second},
	} {
		s := cfg.Services[name]
		if diff := cmp.Diff(want, s.Warm); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(&Replicated{Role: want.Role, Timeout: want.Timeout, Interval: time.Second}, s.Replicated); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]Order{want.Promote, want.Demote}, []Order{s.Promotes(), s.Demotes()}); diff != "" {
			t.Error(diff)
		}
	}
	ordered := cfg.Services["ordered"]
	if h, f := ordered.Health, ordered.Copy().Health; h.Way() != "http" || f.Way() != "tcp" || f.TCP != "a:1" || f.Interval != h.Interval {
		t.Errorf("checked while it stands by: %+v, otherwise %+v", f, h)
	}
	several := cfg.Services["several"].Processes
	if len(several) != 4 || several[0].Name != "app" || several[1].Address == nil || several[2].Name != "beside" || several[3].Name != "sets" {
		t.Errorf("its order of start: %+v", several)
	}
	if members := cfg.Services["posts"].Processes; len(members) != 2 || members[0].Name != MainProcess || members[1].Address.IP != "10.0.0.8/32" {
		t.Errorf("its address is not set once it is promoted: %+v", members)
	}
}

func TestAnOrderOverHTTPMayNameItsMethod(t *testing.T) {
	for given, want := range map[string][2]string{
		"http://h/x": {"POST", "http://h/x"}, "PUT http://h/x": {"PUT", "http://h/x"}, "POST  http://h/": {"POST", "http://h/"},
	} {
		if method, url := (Order{HTTP: given}).Request(); method != want[0] || url != want[1] {
			t.Errorf("%s: %s %s", given, method, url)
		}
	}
	if (Order{}).Given() || !(Order{Signal: 1}).Given() || !(Order{HTTP: "x"}).Given() || !(Order{Exec: Command{"x"}}).Given() {
		t.Error("it is not seen whether an order is given")
	}
}
