package unit

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/testbed/must"
)

// keysOfProgram lists a program's keys by their paths, as in log.file.
func keysOfProgram(t reflect.Type, at string) (keys []string) {
	for f := range t.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if f.Type.Kind() == reflect.Struct {
			keys = append(keys, keysOfProgram(f.Type, at+key+".")...)
		} else {
			keys = append(keys, at+key)
		}
	}
	return keys
}

// A key of the config that has no effect on the program that is started would be lost without a trace.
func TestEveryKeyReachesTheProgram(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		must.OK(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	umask, nice, oom, kill, none := config.Umask(0o27), 5, 100, []config.Capability{unix.CAP_KILL}, []config.Capability{}
	changes := map[string]func(*config.Program){
		"command":               func(g *config.Program) { g.Command = config.Command{"true", "x"} },
		"working_dir":           func(g *config.Program) { g.WorkingDir = dir },
		"user":                  func(g *config.Program) { g.User = "2" },
		"group":                 func(g *config.Program) { g.Group = "2" },
		"umask":                 func(g *config.Program) { g.Umask = &umask },
		"env":                   func(g *config.Program) { g.Env = map[string]string{"A": "b"} },
		"env_file":              func(g *config.Program) { g.EnvFile = file("env", "B=c\n") },
		"inherit_env":           func(g *config.Program) { g.InheritEnv = config.InheritEnv{} },
		"limits":                func(g *config.Program) { g.Limits = map[string]config.Limit{"nofile": {Soft: 7, Hard: 8}} },
		"nice":                  func(g *config.Program) { g.Nice = &nice },
		"oom_score_adj":         func(g *config.Program) { g.OOMScoreAdj = &oom },
		"no_new_privileges":     func(g *config.Program) { g.NoNewPrivs = true },
		"capabilities.bounding": func(g *config.Program) { g.Caps.Bounding = &none },
		"capabilities.ambient":  func(g *config.Program) { g.Caps.Ambient = []config.Capability{unix.CAP_CHOWN} },
		"ready.notify":          func(g *config.Program) { g.Ready.Notify = true },
		"log.file":              func(g *config.Program) { g.Log.File = filepath.Join(dir, "other.log") },
		"log.max_size":          func(g *config.Program) { g.Log.MaxSize = 2 << 20 },
		"log.keep":              func(g *config.Program) { g.Log.Keep = 2 },
	}
	later := map[string]string{ // keys that change nothing at the start, and who looks at them
		"stop_signal": "stopping.stop", "stop_timeout": "stopping.stop", "ready.after": "Run.waitReady", "ready.exec": "Run.waitReady",
		"ready.http": "Run.waitReady", "ready.tcp": "Run.waitReady", "ready.timeout": "Run.waitReady",
	}

	type effect struct {
		spec child.Spec
		logs map[string]config.LogFile
	}
	start := func(key string, change func(*config.Program)) effect {
		u, cfg, s := played(t)
		g := config.Program{
			Command: config.Command{"true"}, User: "1", Group: "1", Caps: config.Capabilities{Bounding: &kill, Ambient: kill},
			Log: config.LogFile{File: filepath.Join(dir, "a.log"), MaxSize: 1 << 20, Keep: 1},
		}
		change(&g)
		spec, socket, err := u.spec(t.Context(), s, config.Process{Name: "p", Program: g}, cfg.Token)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if socket != nil {
			_ = socket.Close()
		}
		spec.Stdout, spec.Stderr = nil, nil // logs has them
		e := effect{spec, maps.Clone(u.logs.confs)}
		u.Close()
		return e
	}
	before := start("", func(*config.Program) {})
	for _, key := range keysOfProgram(reflect.TypeFor[config.Program](), "") {
		change := changes[key]
		switch {
		case change == nil && later[key] == "":
			t.Errorf("%s: nothing shows that it reaches the program", key)
		case change != nil && reflect.DeepEqual(before, start(key, change)):
			t.Errorf("%s changes nothing in how the program is started", key)
		}
	}
}
