// Package ocf runs OCF resource agents (version 1.1 of their interface), and reads what they say of themselves.
package ocf

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Resource is what an agent handles.
type Resource struct {
	Agent  string // PROVIDER:NAME
	Name   string // of this instance (Instance)
	Params map[string]string
}

// inName writes what an instance's name may not have, or what it has between service and process. No process's name starts with "-".
var inName = strings.NewReplacer("-", "--", ".", "..", "@", ".a", ":", ".c")

// Instance names what a process of a service handles, as no other does: agents name pid and state files after it. It is the same on every
// node, and has only what Pacemaker allows in a resource's id, where ":" stands before the number of a clone.
func Instance(service, process string) string {
	return inName.Replace(service) + "-" + inName.Replace(process)
}

var agentName = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9._-]*):([A-Za-z0-9_][A-Za-z0-9._-]*)$`)

// NameFault says why a text names no agent; "": it does.
func NameFault(agent string) string {
	switch rest, class := strings.CutPrefix(agent, "ocf:"); {
	case class && agentName.MatchString(rest):
		return fmt.Sprintf("%q: write it without ocf: as %s", agent, rest)
	case agentName.MatchString(agent):
		return ""
	}
	return fmt.Sprintf("%q is not PROVIDER:NAME, such as heartbeat:Filesystem", agent)
}

func root() string { return cmp.Or(os.Getenv("OCF_ROOT"), "/usr/lib/ocf") }

// Path is the agent's file.
func (r Resource) Path() string {
	provider, name, _ := strings.Cut(r.Agent, ":")
	return filepath.Join(root(), "resource.d", provider, name)
}

// environment is what OCF 1.1 gives an agent, and what Pacemaker adds that agents rely on.
func (r Resource) environment(action Action) []string {
	provider, name, _ := strings.Cut(r.Agent, ":")
	env := append(os.Environ(), "OCF_ROOT="+root(), "OCF_RA_VERSION_MAJOR=1", "OCF_RA_VERSION_MINOR=1",
		"OCF_RESOURCE_INSTANCE="+r.Name, "OCF_RESOURCE_TYPE="+name, "OCF_RESOURCE_PROVIDER="+provider)
	for key, d := range map[string]time.Duration{"timeout": action.Timeout, "interval": action.Interval} {
		if d > 0 {
			env = append(env, fmt.Sprintf("OCF_RESKEY_CRM_meta_%s=%d", key, d.Milliseconds()))
		}
	}
	if action.probe {
		env = append(env, "OCF_RESKEY_CRM_meta_interval=0")
	}
	for _, param := range slices.Sorted(maps.Keys(r.Params)) {
		env = append(env, "OCF_RESKEY_"+param+"="+r.Params[param])
	}
	return env
}

// Action is one that an agent knows.
type Action struct {
	Name              string
	Timeout, Interval time.Duration // 0: it does not say
	probe             bool          // it is asked where it may never have been started: what it needs may be on a disk that is not mounted
}

// Failed is an action's exit code, with the last line that the agent wrote to stderr.
type Failed struct {
	Agent, Action string
	Code          int
	Said          string
}

// Exit codes.
const (
	unknownAction = 3 // the agent has no such action
	notInstalled  = 5
	notRunning    = 7 // of a monitor action, for what is stopped cleanly
)

// hard are the exit codes that say that this host cannot do it: another one may.
var hard = []int{2, 4, notInstalled, 6}

// Unfit reports whether an agent has said that this host cannot run what it handles. Whatever else it says is no such answer.
func Unfit(err error) bool {
	failed, ok := errors.AsType[*Failed](err)
	return ok && slices.Contains(hard, failed.Code)
}

// says reports whether an agent ended with this exit code.
func says(err error, code int) bool {
	failed, ok := errors.AsType[*Failed](err)
	return ok && failed.Code == code
}

var meanings = map[int]string{
	1: "it failed", 2: "a parameter is wrong", 3: "the agent does not know this action",
	4: "a right is missing", notInstalled: "something is not installed",
	6: "it is not configured", notRunning: "it is not running", 8: "it is running as promoted", 9: "it failed as promoted",
}

func (e *Failed) Error() string {
	text := fmt.Sprintf("%s %s: exit code %d", e.Agent, e.Action, e.Code)
	if meaning := meanings[e.Code]; meaning != "" {
		text += " (" + meaning + ")"
	}
	if e.Said != "" {
		text += ": " + e.Said
	}
	return text
}

// Run runs an action, with our own output; the error is a *Failed if the agent ended with another code than 0. What it leaves behind
// when it is killed is the caller's.
func (r Resource) Run(ctx context.Context, action Action) error {
	return r.run(ctx, action, os.Stdout, os.Stderr)
}

// outputPatience is how long the output of an agent that has ended is waited for: what it started may keep that open.
const outputPatience = 100 * time.Millisecond

// run is Run with other outputs; stdout nil: they are one.
func (r Resource) run(ctx context.Context, action Action, stdout, stderr io.Writer) error {
	if action.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, action.Timeout,
			fmt.Errorf("%s %s: killed, it took longer than %v", r.Agent, action.Name, action.Timeout))
		defer cancel()
	}
	var last lastLine
	cmd := exec.CommandContext(ctx, r.Path(), action.Name)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = r.environment(action), stdout, io.MultiWriter(stderr, &last), outputPatience
	if stdout == nil {
		cmd.Stdout = cmd.Stderr
	}
	err := cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success():
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case ended && exit.ExitCode() > 0:
		return &Failed{r.Agent, action.Name, exit.ExitCode(), last.String()}
	case errors.Is(err, fs.ErrNotExist): // the agent, or what runs it
		return fmt.Errorf("%w: %w", &Failed{r.Agent, action.Name, notInstalled, ""}, err)
	}
	return fmt.Errorf("%s %s: %w", r.Agent, action.Name, err)
}

// lastLine keeps the last line that is written, without what ocf_exit_reason puts before a reason.
type lastLine struct{ text []byte }

// longestLine is how much of a line is kept.
const longestLine = 300

func (l *lastLine) Write(p []byte) (int, error) {
	l.text = append(l.text, p...)
	if end := bytes.LastIndexByte(bytes.TrimRight(l.text, "\n"), '\n'); end >= 0 {
		l.text = l.text[end+1:]
	}
	l.text = l.text[:min(len(l.text), longestLine)]
	return len(p), nil
}

func (l *lastLine) String() string {
	return strings.TrimPrefix(strings.TrimSpace(strings.ToValidUTF8(string(l.text), "?")), "ocf-exit-reason:")
}

// Start runs the start action. nothing: the agent says, of the stop and monitor actions as well, that what it needs is not installed, so
// nothing was done.
func (r Resource) Start(ctx context.Context, timeout time.Duration) (nothing bool, err error) {
	err = r.Run(ctx, Action{Name: "start", Timeout: timeout})
	nothing = says(err, notInstalled) && says(r.Run(ctx, Action{Name: "stop", Timeout: timeout}), notInstalled) &&
		says(r.Run(ctx, Action{Name: "monitor", Timeout: timeout}), notInstalled)
	return nothing, err
}

// Probe fails if this host cannot run it, by what the monitor action says, and, where all that it may need is there, validate-all. That of
// other answers, and of none, is not known.
func (r Resource) Probe(ctx context.Context, timeout time.Duration, validate bool) error {
	actions := []string{"monitor", "validate-all"}
	if !validate {
		actions = actions[:1]
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, name := range actions {
		if err := r.run(ctx, Action{Name: name, Timeout: timeout, probe: true}, nil, io.Discard); Unfit(err) {
			return err
		}
	}
	return nil
}

// Validate runs validate-all: the error is what the agent says of the parameters. nil: it finds nothing, or has no such action.
func (r Resource) Validate(ctx context.Context) error {
	err := r.run(ctx, Action{Name: "validate-all"}, nil, io.Discard)
	if says(err, unknownAction) {
		return nil
	}
	return err
}

// Meta is what an agent says of itself.
type Meta struct {
	Params   []string
	Required []string // of them
	actions  []Action
}

// Action is what the agent advises for an action; of several the first.
func (m Meta) Action(name string) Action {
	for _, a := range m.actions {
		if a.Name == name {
			return a
		}
	}
	return Action{Name: name}
}

// Meta asks the agent.
func (r Resource) Meta(ctx context.Context) (Meta, error) {
	cmd := exec.CommandContext(ctx, r.Path(), "meta-data")
	cmd.Env = Resource{Agent: r.Agent, Name: r.Name}.environment(Action{})
	cmd.WaitDelay = time.Second
	text, err := cmd.Output()
	if err != nil {
		return Meta{}, fmt.Errorf("%s meta-data: %w", r.Agent, cmp.Or(context.Cause(ctx), err))
	}
	return parse(text)
}

func parse(text []byte) (Meta, error) {
	var doc struct {
		Params []struct {
			Name     string `xml:"name,attr"`
			Required string `xml:"required,attr"`
		} `xml:"parameters>parameter"`
		Actions []struct {
			Name     string `xml:"name,attr"`
			Timeout  string `xml:"timeout,attr"`
			Interval string `xml:"interval,attr"`
		} `xml:"actions>action"`
	}
	if err := xml.Unmarshal(text, &doc); err != nil {
		return Meta{}, fmt.Errorf("read meta-data: %w", err)
	}
	var m Meta
	for _, p := range doc.Params {
		m.Params = append(m.Params, p.Name)
		if p.Required == "1" || p.Required == "true" || p.Required == "yes" {
			m.Required = append(m.Required, p.Name)
		}
	}
	for _, a := range doc.Actions {
		m.actions = append(m.actions, Action{Name: a.Name, Timeout: duration(a.Timeout), Interval: duration(a.Interval)})
	}
	return m, nil
}

var durationText = regexp.MustCompile(`^\s*([0-9]{1,9})\s*([a-z]*)\s*$`)

// duration reads 20, 20s, 1min or 500ms; 0: it is none.
func duration(text string) time.Duration {
	parts := durationText.FindStringSubmatch(text)
	if parts == nil {
		return 0
	}
	n, _ := strconv.Atoi(parts[1]) // nine digits
	units := map[string]time.Duration{
		"": time.Second, "s": time.Second, "sec": time.Second, "ms": time.Millisecond, "msec": time.Millisecond, "us": time.Microsecond,
		"usec": time.Microsecond, "m": time.Minute, "min": time.Minute, "h": time.Hour, "hr": time.Hour,
	}
	return time.Duration(n) * units[parts[2]]
}
