package child

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/guardian"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

// fileEffect is an effect that is a file, in a folder that the note names. It cannot be undone while there is another one, "stuck".
type fileEffect struct{ dir string }

func undoFile(note []byte) (guardian.Effects, error) { return fileEffect{string(note)}, nil }

func (fileEffect) Close() {}

func (e fileEffect) Undo(context.Context) error {
	if _, err := os.Stat(filepath.Join(e.dir, "stuck")); err == nil {
		return errors.New("busy")
	}
	err := os.Remove(filepath.Join(e.dir, "effect"))
	if errors.Is(err, os.ErrNotExist) { // the other guardian has undone it
		return nil
	}
	line, _ := json.Marshal(closed{At: wire.Now(), Pid: os.Getpid(), Undo: true, Alive: hasWriter(filepath.Join(e.dir, "held"))})
	f, opened := os.OpenFile(filepath.Join(e.dir, "log"), os.O_WRONLY|unix.O_NONBLOCK, 0)
	if opened == nil {
		_, _ = f.Write(append(line, '\n'))
		_ = f.Close()
	}
	return err
}

// owes has the puppet's tree do something beside its processes, which its guardians know.
func (p *puppet) owes(lease time.Duration) (deadline time.Duration) {
	p.t.Helper()
	_, deadline = p.raise(lease, stubborn)
	p.do(command{Do: "owe", Name: "a"})
	p.put("effect")
	return deadline
}

func (p *puppet) put(name string) {
	p.t.Helper()
	must.OK(p.t, os.WriteFile(filepath.Join(p.dir, name), nil, 0o600))
}

// P2: guardians undo what their supervisor cannot, once the tree is dead, and close the session after that.
func TestGuardiansUndoWhatASupervisorCannot(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		for name, sig := range map[string]unix.Signal{"killed": unix.SIGKILL, "frozen": unix.SIGSTOP} {
			t.Run(name, func(t *testing.T) {
				p := newPuppet(t, kind)
				since := p.owes(2 * time.Second)
				if sig == unix.SIGKILL {
					since = wire.Now()
				}
				_ = p.cmd.Process.Signal(sig)
				at, first, second := p.dead(), p.closing(), p.closing()
				t.Logf("dead after %v, undone after %v, closed after %v", at-since, first.At-since, second.At-since)
				if !first.Undo || first.Alive || second.Undo || !second.AllDead || !slices.Equal(second.Undone, []string{"a"}) || len(second.Releases) > 0 {
					t.Errorf("%+v, then %+v", first, second)
				}
			})
		}
	})
}

// P2: as long as it is not undone, the session is not closed by a guardian, and the breadcrumb says so.
func TestASessionIsNotClosedWhileAnEffectIsLeft(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, box.KindCgroup)
	p.owes(time.Minute)
	p.put("stuck")
	kill9(p.cmd.Process.Pid)
	c := p.closing()
	if c.AllDead || !slices.Equal(c.Left, []string{"a"}) || len(c.Undone)+len(c.Releases) > 0 {
		t.Fatalf("%+v", c)
	}
	must.OK(t, os.Remove(filepath.Join(p.dir, "stuck")))
	for c = p.closing(); !c.AllDead; c = p.closing() {
	}
	if !slices.Equal(c.Undone, []string{"a"}) {
		t.Errorf("%+v", c)
	}
}
