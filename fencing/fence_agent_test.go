package fencing

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

func base64Lines(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) + "\n" }

// script is a fence agent; $action and $in are what it was told.
func script(t *testing.T, text string) []string {
	t.Helper()
	return []string{"sh", "-c", `in=$(cat); action=$(echo "$in" | sed -n s/^action=//p); ` + text}
}

func TestFenceAgentIsToldByItsStdinAndAskedAgain(t *testing.T) {
	heard := filepath.Join(t.TempDir(), "heard")
	f := FenceAgent{
		Command: script(t, `echo "$in" >>`+heard+`; [ $action = off ] || exit 2`),
		Options: map[string]string{"ip": "{plug}", "comment": "{service} {token}", "verbose": "1"},
		Secrets: map[string]string{"password": file(t, "s3cret word\n")},
		Plugs:   map[string]string{"db-1": "10.0.0.7"},
	}
	must.OK(t, f.Fence(t.Context(), target))
	text, err := os.ReadFile(heard)
	must.OK(t, err)
	rest := "comment=redis 42\nip=10.0.0.7\npassword=s3cret word\nplug=10.0.0.7\nverbose=1\n"
	if want := "action=off\n" + rest + "action=status\n" + rest; string(text) != want {
		t.Errorf("it heard\n%s", text)
	}
}

func TestFenceAgentThatProvesNothing(t *testing.T) {
	const password = "the password"
	const hangs = `: > "$HANGS"; sleep 1000`
	for name, c := range map[string]struct{ text, says string }{
		"refuses":           {`echo "login failed for ` + password + `" >&2; exit 1`, `off: exit status 1: "login failed for ***"`},
		"lies":              {`exit 0`, "still on, after it was switched off"},
		"does not know":     {`[ $action = off ] || { echo "` + password + `?"; exit 1; }`, `status: exit status 1: "***?"`},
		"hangs":             {hangs, "off: killed: no answer within a while"},
		"hangs when asked":  {`[ $action = off ] || { ` + hangs + `; }`, "status: killed: no answer within a while"},
		"is off all along?": {`exit 2`, "off: exit status 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HANGS", filepath.Join(t.TempDir(), "hangs"))
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			go endWhereItHangs(ctx, cancel, os.Getenv("HANGS"))
			f := FenceAgent{Command: script(t, c.text), Secrets: map[string]string{"password": file(t, password)}}
			err := f.Fence(ctx, target)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v, want %s", err, c.says)
			}
			if strings.Contains(err.Error(), password) {
				t.Errorf("it tells the password: %v", err)
			}
		})
	}
	f := FenceAgent{Command: script(t, "exit 2"), Options: map[string]string{"a": "b\naction=on"}}
	if err := f.Fence(t.Context(), target); err == nil || !strings.Contains(err.Error(), "more than one line") {
		t.Error(err)
	}
	unnamed := target
	unnamed.Node = ""
	if err := (FenceAgent{Command: []string{"true"}}).Fence(t.Context(), unnamed); err == nil {
		t.Error("it fenced nobody")
	}
}

// endWhereItHangs is a timeout that comes once a command says by a file that it hangs: how long a busy machine takes to get it
// there is no matter.
func endWhereItHangs(ctx context.Context, cancel context.CancelCauseFunc, file string) {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if _, err := os.Stat(file); err == nil {
			cancel(errors.New("no answer within a while"))
			return
		}
	}
}

func TestStatementIsCheckedAgainstTheTarget(t *testing.T) {
	good := Statement{Dead: true, Service: "redis", Token: 42, Node: "db-1", Machine: "m1", Boot: "b1"}
	must.Report(t, good.Convinces(target))
	for _, change := range []func(*Statement){
		func(s *Statement) { s.Dead = false },
		func(s *Statement) { s.Service = "x" },
		func(s *Statement) { s.Token++ },
		func(s *Statement) { s.Machine = "m2" },
		func(s *Statement) { s.Boot = "" },
		func(s *Statement) { s.Boot, s.Node = "b2", "" },
	} {
		s := good
		if change(&s); s.Convinces(target) == nil {
			t.Errorf("%+v is believed", s)
		}
	}
}

func TestTargetIsOneWord(t *testing.T) {
	long := target
	long.Tree = []byte(`{"path":"a b'c"}`)
	got, err := DecodeTarget(long.Encode())
	if err != nil || got.Service != "redis" || string(got.Tree) != string(long.Tree) || !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`).MatchString(long.Encode()) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, word := range []string{"", "!", "e30x", strings.Repeat("a", 40<<10)} {
		if _, err := DecodeTarget(word); err == nil {
			t.Errorf("%.20q is read", word)
		}
	}
}

// No delay makes a child dead that a method has seen alive.
func TestChildThatAMethodSawAliveIsNotWaitedOut(t *testing.T) {
	alive := &fake{name: "agent", err: ErrAlive}
	c := Chain{Steps: steps(alive), OnFailure: Grace, Grace: 50 * time.Millisecond}
	if out, err := c.Fence(t.Context(), target, time.Now(), nil); !errors.Is(err, ErrRefused) || alive.ran != 2 {
		t.Errorf("%+v, %v, %d runs", out, err, alive.ran)
	}
	again := &dying{}
	c.Steps = []Step{{Method: again, Timeout: time.Second}}
	if out, err := c.Fence(t.Context(), target, time.Now(), nil); err != nil || out.By != "agent" {
		t.Errorf("%+v, %v", out, err)
	}
}

// dying is alive when it is first asked about.
type dying struct{ asked bool }

func (*dying) Name() string { return "agent" }

func (d *dying) Fence(context.Context, Target) error {
	if d.asked {
		return nil
	}
	d.asked = true
	return ErrAlive
}

func TestStoryTellsWhatFailed(t *testing.T) {
	fails, fine := &fake{name: "agent", err: errBroken}, &fake{name: "ssh"}
	c := Chain{Local: knows(Alive), Steps: steps(fails, fine)}
	out, err := c.Fence(t.Context(), target, time.Now(), nil)
	if err != nil || out.Story() != "ssh, after agent failed" {
		t.Errorf("%q, %v", out.Story(), err)
	}
	if told := out.Told(); told != "local failed: the program is alive on this machine\nagent failed: broken\nssh succeeded\n" {
		t.Errorf("%s", told)
	}
	if story := (Outcome{By: ByGrace}).Story(); story != "grace" {
		t.Error(story)
	}
}
