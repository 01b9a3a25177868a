package promises

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/must"
)

// All services of a node move together, long before the session could have ended by itself. Children that show signs of life more often
// would be most of what the machine does: their mutexes find out every overlap.
func TestTwoHundredServicesMoveTogether(t *testing.T) {
	f := play(t, stage(t)).Fleet(t, 200, 100*time.Millisecond)
	from, to := f.Lab.Machine(t, "a"), f.Lab.Machine(t, "b")
	first, _ := f.Serve(t, from)
	f.AllOn(t, from.Name, 0)
	f.Serve(t, to)
	f.AllStand(t, to.Name)
	at := tick.Now()
	first.Kill9()
	took := time.Duration(f.AllOn(t, to.Name, at) - at)
	t.Logf("the last of 200 ran %v after the kill", took)
	if took > f.Options.Session {
		t.Errorf("that is longer than the session lasts: %v", f.Options.Session)
	}
}

// What does not change does not notice a change: no child is touched. An invalid file changes nothing.
func TestAChangedServiceDoesNotDisturbTheOthers(t *testing.T) {
	f := play(t, stage(t)).Fleet(t, 50, 5*time.Millisecond)
	a := f.Lab.Machine(t, "a")
	s, path := f.Serve(t, a)
	f.AllOn(t, "a", 0)
	before := map[string]kit.Run{}
	for _, name := range f.Names {
		before[name] = f.Of[name].Runs()[0]
	}
	edit := func(what string, change func()) {
		t.Helper()
		change()
		f.Write(t, a, filepath.Dir(path))
		kit.Until(t, soon, "the config is taken up: "+what, func() bool { return s.Says("config reloaded", what) })
	}
	at := tick.Now()
	edit(`changed=["s0007"]`, func() { f.Keys["s0007"] = "env: {CHANGED: again}" })
	f.Of["s0007"].Next(t, soon, at)
	edit(`added=["fresh"]`, func() { f.Add(t, "fresh") })
	f.Of["fresh"].Next(t, soon, at)
	edit(`changed=["s0008"]`, func() { f.Keys["s0008"] = "stop_timeout: 3s" })
	edit(`removed=["s0049"]`, func() { f.Names = append(f.Names[:49:49], "fresh") })
	must.OK(t, os.WriteFile(path, []byte(f.Text(a)+"  broken: {comand: [x]}\n"), 0o600))
	kit.Until(t, soon, "an invalid file is refused", func() bool { return s.Says("not loaded", "comand") })
	kit.Until(t, soon, "what was removed has ended", func() bool { return len(f.Of["s0049"].Running()) == 0 })
	kit.Until(t, soon, "and says no more of itself", func() bool { return f.Gone("services", "s0049", "members", "a") })
	for _, name := range f.Names[:49] {
		runs := f.Of[name].Runs()
		want := 1
		if name == "s0007" {
			want = 2
		}
		if len(runs) != want || runs[0].Pid != before[name].Pid {
			t.Errorf("%s was touched: %d runs", name, len(runs))
		}
	}
}
