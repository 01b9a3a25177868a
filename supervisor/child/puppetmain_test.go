package child

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/reexec"
	"understudy/supervisor/child/wire"
)

// puppetMain is the supervisor.
func puppetMain() int {
	var c box.Container
	if err := json.Unmarshal([]byte(os.Args[1]), &c); err != nil {
		return 3
	}
	level := hclog.Off
	if os.Getenv("CHILD_TEST_LOG") != "" {
		level = hclog.Debug
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	thread := make(chan func())
	cfg := GuardConfig{Container: c, Name: "test", Logger: hclog.New(&hclog.LoggerOptions{Level: level}), Thread: thread}
	trees, last := map[string]*Tree{}, map[string]*Process{}
	left, err := reexec.TakeState()
	if err != nil {
		return 7
	}
	replies := json.NewEncoder(os.Stdout)
	var g *Guard
	if left == nil {
		g, err = StartGuard(ctx, cfg)
	} else if g, err = puppetAdopts(ctx, cfg, left, trees, last); err == nil {
		err = replies.Encode(reply{})
	}
	if err != nil {
		return 4
	}
	g.watchdog.open = openFakeWatchdog
	ran := make(chan error, 1)
	go func() { ran <- g.Run(ctx) }()
	code := make(chan int, 1)
	go func() { code <- puppetLoop(ctx, cancel, g, ran, replies, trees, last) }()
	for {
		select {
		case job := <-thread:
			job()
		case code := <-code:
			return code
		}
	}
}

func puppetLoop(
	ctx context.Context, cancel func(), g *Guard, ran <-chan error, replies *json.Encoder, trees map[string]*Tree, last map[string]*Process,
) int {
	orders := json.NewDecoder(os.Stdin)
	for {
		var c command
		if err := orders.Decode(&c); err != nil {
			cancel()
			if err := <-ran; err != nil {
				return 5
			}
			return 0
		}
		r, err := puppetDo(ctx, g, trees, last, c)
		if err != nil {
			r.Err = err.Error()
			r.Ended, r.Lost = errors.Is(err, ErrLeaseEnded), errors.Is(err, ErrGuardiansLost)
		}
		if err := replies.Encode(r); err != nil {
			return 6
		}
	}
}

func puppetDo(ctx context.Context, g *Guard, trees map[string]*Tree, last map[string]*Process, c command) (r reply, err error) {
	dir := os.Args[2]
	switch c.Do {
	case "begin":
		raw, err := json.Marshal(ticket{Log: filepath.Join(dir, "log"), Held: filepath.Join(dir, "held")})
		if err != nil {
			return r, err
		}
		return r, g.Begin(c.Epoch, raw)
	case "extend":
		r.At = wire.Now() + c.In
		return r, g.Extend(c.Epoch, r.At)
	case "move":
		return r, trees[c.Name].Move(ctx, c.Epoch, []byte(c.Name))
	case "tree":
		t, err := g.NewTree(ctx, c.Epoch, c.Name, []byte(c.Name))
		if err == nil {
			trees[c.Name], r.ID = t, t.ID()
		}
		return r, err
	case "freeze": // at the next fork, after the last look at the lease
		g.beforeSpawn = func() { _ = unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP) } // this thread stops before it returns
		return r, nil
	case "start":
		held, err := os.OpenFile(filepath.Join(dir, "held"), os.O_RDWR, 0)
		if err != nil {
			return r, err
		}
		defer held.Close()
		spec := Spec{Argv: []string{"sh", "-c", c.Script}, Env: os.Environ(), Stdout: held, Settings: c.Settings}
		p, err := trees[c.Name].Start(ctx, spec)
		if err == nil {
			r.Pid, last[c.Name] = p.Pid(), p
		}
		return r, err
	case "become", "become now", "become too late", "fail to become":
		return r, puppetBecomes(ctx, g, trees, last, c)
	case "look":
		_, err := trees[c.Name].Strays()
		return r, err
	case "pid":
		r.Pid = last[c.Name].Pid()
		return r, nil
	case "wait":
		status, err := last[c.Name].Wait(ctx)
		r.Pid = status.Code
		return r, err
	case "kill last":
		return r, last[c.Name].Kill(ctx)
	case "kill":
		return r, trees[c.Name].Kill(ctx)
	case "arm", "check":
		if c.Do == "check" {
			return r, g.CheckWatchdog(ctx, fake(dir, c))
		}
		return r, trees[c.Name].Arm(ctx, fake(dir, c))
	case "owe":
		return r, trees[c.Name].NoteUndos(ctx, []byte(dir))
	case "settle":
		trees[c.Name].ReportUndone(true)
		return r, nil
	case "end":
		return r, trees[c.Name].End(ctx)
	case "finish":
		return r, g.Finish(c.Epoch)
	case "serve":
		return r, bothServe(ctx, g, len(trees))
	case "over":
		<-g.Over(c.Epoch)
		return r, g.Cause(c.Epoch)
	}
	return r, errors.ErrUnsupported
}

// fake is a fake watchdog that a command names.
func fake(dir string, c command) Watchdog {
	return Watchdog{Path: filepath.Join(dir, c.Script+"watchdog"), Timeout: fakeTimeout, After: fakeAfter}
}
