package service

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/replica"
	"understudy/supervisor/unit"
)

// recorder is a guard and its trees. It notes the environment of each command, and lets the program run and every command succeed.
type recorder struct {
	host.Guard
	host.Tree

	mu      sync.Mutex // guards the fields below
	envs    map[string][]string
	program *spawned // the newest

	read  func(node string) (election.CopyReport, bool) // a report, as it is in ZooKeeper
	forge func(node string, report any)                 // writes one
	beat  func(node string, at election.At)             // is a node's heartbeat
	frees func() verdictOf                              // frees the lock, and returns what comes of it
	knows func(node string)                             // ZooKeeper's list has it
	asks  func(from int)                                // how many positions it takes
}

func (r *recorder) Begin(uint64, []byte) error         { return nil }
func (r *recorder) Extend(uint64, time.Duration) error { return nil }
func (r *recorder) Finish(uint64) error                { return nil }
func (r *recorder) ID() (json.RawMessage, error)       { return nil, nil }
func (r *recorder) Kill(context.Context) error         { return nil }
func (r *recorder) End(context.Context) error          { return nil }
func (r *recorder) NewTree(context.Context, uint64, string, []byte) (host.Tree, error) {
	return r, nil
}

func (r *recorder) Start(_ context.Context, spec child.Spec) (host.Process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := spec.Argv[0]
	r.envs[name] = append(r.envs[name], slices.DeleteFunc(slices.Clone(spec.Env), func(v string) bool {
		return !strings.HasPrefix(v, "UNDERSTUDY_ACTIVE_") && !strings.HasPrefix(v, "UNDERSTUDY_TOKEN=")
	})...)
	p := &spawned{done: make(chan struct{})}
	if name == "program" {
		r.program = p
	} else {
		p.end()
	}
	return p, nil
}

// take returns what the commands had since it was called last.
func (r *recorder) take() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	envs := r.envs
	r.envs = map[string][]string{}
	return envs
}

// newest is the program that was started last.
func (r *recorder) newest() *spawned {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.program
}

func (*recorder) Strays() ([]child.Stray, error) { return nil, nil }

type spawned struct {
	once  sync.Once
	done  chan struct{}
	asked atomic.Bool // to end
}

func (p *spawned) end()                            { p.once.Do(func() { close(p.done) }) }
func (p *spawned) Pid() int                        { return 7 }
func (p *spawned) Done() <-chan struct{}           { return p.done }
func (p *spawned) AskLeftovers(syscall.Signal) int { return 0 }
func (p *spawned) Kill(context.Context) error      { p.end(); return nil }
func (p *spawned) Signal(syscall.Signal) error     { p.asked.Store(true); p.end(); return nil }
func (p *spawned) Wait(ctx context.Context) (child.ExitStatus, error) {
	select {
	case <-p.done:
		return child.ExitStatus{}, nil
	case <-ctx.Done():
		return child.ExitStatus{}, context.Cause(ctx)
	}
}

type noStore struct{}

func (noStore) Load() ([]byte, error) { return nil, fs.ErrNotExist }
func (noStore) Save([]byte) error     { return nil }

// follower runs node a's copy while f, who may write any znode, says who is promoted (nil: nothing new). tell returns what a tells of its
// copy then.
func follower(t *testing.T, others map[string]string, f func(tell func(holder string, report any) election.CopyReport, r *recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, r := newEnsemble(t), &recorder{envs: map[string][]string{}}
		commands := unit.NewCommands(func() host.Guard { return r }, func() time.Duration { return time.Hour })
		conf := config.DefaultService("program")
		conf.Replicated = &config.Replicated{
			Role: []string{"role"}, Position: []string{"position"}, Promote: []string{"promote"}, Follow: []string{"follow"}, Prepare: []string{"prepare"},
			Reclone: []string{"reclone"}, Interval: time.Second, Timeout: time.Second, Attempts: 1, Others: others,
			SeenBy: &config.SeenBy{Exec: []string{"look"}, Interval: time.Second, Timeout: time.Second, Failures: 1, Quorum: config.QuorumMajority},
		}
		v := made(t, Conf{Name: "db", Service: conf}, func(n *LocalNode) {
			n.Commands, n.Copies = commands, func(string, string) replica.Store { return noStore{} }
		})
		v.copy.begin()
		conn, _, err := zk.Connect([]string{"127.0.0.1:2181"}, e.timeout, zk.WithLogInfo(false),
			zk.WithDialer(func(string, string, time.Duration) (net.Conn, error) { return e.dial(), nil }))
		if err != nil {
			t.Fatal(err)
		}
		e.session(func(ctx context.Context, s *election.Session) error {
			cand, _, err := s.NewCandidate(ctx, "db", election.Race)
			if err != nil {
				return err
			}
			c := &comparing{v: v, all: cand.Copies()}
			if _, err := c.all.Read(ctx); err != nil { // makes the folders
				return err
			}
			paths := cand.Paths()
			r.read = func(node string) (election.CopyReport, bool) {
				seen, err := c.all.Read(ctx)
				one, ok := seen.Of(node)
				return one, ok && err == nil
			}
			create := func(path string, data any) int64 {
				t.Helper()
				_ = conn.Delete(path, -1) // it may not be there
				text, err := json.Marshal(data)
				if err == nil {
					_, err = conn.Create(path, text, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
				}
				if err != nil {
					t.Fatal(err)
				}
				_, stat, err := conn.Get(path)
				if err != nil {
					t.Fatal(err)
				}
				return stat.Czxid
			}
			r.forge = func(node string, report any) { create(paths.Copies()+"/"+node, report) }
			r.knows = func(node string) { create(paths.Known()+"/"+node, struct{}{}) }
			r.asks = func(from int) { conf.Replicated.PositionsFrom = from }
			r.beat = func(node string, at election.At) {
				create(election.NodesDir("/understudy")+"/"+node, election.Node{Copies: map[string]election.At{"db": at}})
			}
			r.frees = func() verdictOf {
				if err := conn.Delete(paths.Lock(), -1); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				seen, err := c.all.Read(ctx)
				if err != nil {
					t.Fatal(err)
				}
				lost, _ := seen.Of("b")
				lost.Vacancy, lost.Position, lost.Promoted = seen.Vacancy, new(uint64(60)), 0
				r.forge("b", lost)
				for range 3 {
					if seen, err = c.all.Read(ctx); err != nil {
						t.Fatal(err)
					}
					c.turn(ctx, seen, compareSoon)
				}
				return v.copy.judged()
			}
			watching, enough := context.WithCancel(ctx)
			var wg sync.WaitGroup
			wg.Go(func() { v.copy.watchLeader(watching, c.all, func() time.Duration { return time.Second }) })
			defer wg.Wait()
			defer enough()
			f(func(holder string, report any) election.CopyReport {
				t.Helper()
				if one, ok := report.(election.CopyReport); ok {
					one.Promoted = create(paths.Lock(), election.Lock{Node: holder})
					r.forge(holder, one)
				}
				for range 10 {
					seen, err := c.all.Read(ctx)
					if err != nil {
						t.Fatal(err)
					}
					c.turn(ctx, seen, compareSoon)
					time.Sleep(time.Second)
				}
				return c.told
			}, r)
			return nil
		})
		conn.Close()
		v.Close()
		if err := e.server.Close(); err != nil {
			t.Error(err)
		}
	})
}

// No command that steers or asks a copy has words of a report in its environment that are no plain names.
func TestTheEnvironmentOfCommandsHasPlainNamesAlone(t *testing.T) {
	follower(t, nil, func(tell func(string, any) election.CopyReport, r *recorder) {
		for _, odd := range []string{"127.0.0.1,x'\nrestore_command = 'id >F; false'\n#", "a b", "-x", "a'b", "\x1b[2J", "..", "$(id)", ""} {
			for _, report := range []election.CopyReport{{Address: odd, Host: "b"}, {Address: "b", Host: odd}} {
				if odd == "" && report.Address != "" {
					continue // a host may have no name
				}
				told := tell("b", report)
				for command, env := range r.take() {
					for _, v := range env {
						if name, value, _ := strings.Cut(v, "="); value != "" && (name != "UNDERSTUDY_TOKEN" || value != "0") {
							t.Errorf("%q: %s has %q", odd, command, v)
						}
					}
				}
				if told.Toward != 0 || told.Source != (election.Source{}) || !strings.HasPrefix(told.Why, "b is not followed: ") {
					t.Errorf("%q: this node tells %+v", odd, told)
				}
			}
		}
		told := tell("b", election.CopyReport{Address: "10.0.0.1:6380", Host: "db-1"})
		token := "UNDERSTUDY_TOKEN=" + strconv.FormatInt(max(told.Toward, told.Followed), 10)
		env := r.take()
		for _, command := range []string{"prepare", "follow", "position", "look"} {
			for _, want := range []string{"UNDERSTUDY_ACTIVE_ADDRESS=10.0.0.1", "UNDERSTUDY_ACTIVE_PORT=6380", "UNDERSTUDY_ACTIVE_HOST=db-1", "UNDERSTUDY_ACTIVE_NODE=b", token} {
				if command == "prepare" && env[command] == nil { // it follows what it may already have
					continue
				}
				if !slices.Contains(env[command], want) {
					t.Errorf("%s has not %s: %q", command, want, env[command])
				}
			}
		}
	})
}

// What another client writes in the name of this node does not stay.
func TestAReportThatAnotherClientHasOverwrittenIsWrittenAgain(t *testing.T) {
	follower(t, nil, func(tell func(string, any) election.CopyReport, r *recorder) {
		for _, forged := range []any{"no report", election.CopyReport{Address: "10.6.6.6"}, election.CopyReport{Address: "x y"}} {
			tell("b", election.CopyReport{Address: "b"})
			r.forge("a", forged)
			tell("b", nil)
			if one, ok := r.read("a"); !ok || one.Address != "a" || one.Promoted != 0 {
				t.Errorf("%v: %+v, %v", forged, one, ok)
			}
		}
	})
}

// Where this node's config gives addresses of other nodes' copies, a report with another one, or of another node, is not believed.
func TestTheConfigsAddressWinsOverTheReports(t *testing.T) {
	for name, c := range map[string]struct {
		others                map[string]string
		holder, address, want string
		why                   string
	}{
		"none is given":    {nil, "b", "10.6.6.6", "10.6.6.6", ""},
		"the same":         {map[string]string{"b": "10.0.0.2"}, "b", "10.0.0.2", "10.0.0.2", ""},
		"in other letters": {map[string]string{"b": "db-2.example"}, "b", "DB-2.example", "db-2.example", ""},
		"another": {map[string]string{"b": "10.0.0.2"}, "b", "10.6.6.6", "",
			`b is not followed: it reports the address "10.6.6.6", and this config gives "10.0.0.2"`},
		"of a node that is not listed": {map[string]string{"b": "10.0.0.2"}, "c", "10.6.6.6", "",
			"c is not followed: this config gives the addresses of other nodes' copies, and none for c"},
	} {
		follower(t, c.others, func(tell func(string, any) election.CopyReport, r *recorder) {
			told := tell(c.holder, election.CopyReport{Address: c.address, Host: "h"})
			var got []string
			for v := range maps.Values(r.take()) {
				for _, v := range v {
					if value, ok := strings.CutPrefix(v, "UNDERSTUDY_ACTIVE_ADDRESS="); ok && value != "" && !slices.Contains(got, value) {
						got = append(got, value)
					}
					if host, ok := strings.CutPrefix(v, "UNDERSTUDY_ACTIVE_HOST="); ok && host != "" && host != c.want && c.others != nil {
						t.Errorf("%s: a command had the host %q", name, host)
					}
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s: commands had %q, want %q", name, got, c.want)
			}
			if c.why != "" && told.Why != c.why {
				t.Errorf("%s: it tells %q, want %q", name, told.Why, c.why)
			}
		})
	}
}

// What the primary's heartbeats have told is remembered, and told to all when the copies are compared: should it come back with less, then
// that has been lost.
func TestWhatAPrimaryHadIsKnownToTheOthers(t *testing.T) {
	follower(t, nil, func(tell func(string, any) election.CopyReport, r *recorder) {
		tell("b", election.CopyReport{Address: "b", Era: 1})
		one, _ := r.read("b")
		for _, said := range []election.At{{Token: one.Promoted, Position: 70}, {Token: one.Promoted, Position: 69}, {Token: one.Promoted + 1, Position: 99}} {
			r.beat("b", said)
			tell("b", nil)
		}
		one.Era, one.Followed, one.Led = tell("b", nil).Era, one.Promoted, true
		r.forge("b", one)
		if got := r.frees(); !strings.Contains(got.Why, "b: it has lost data: its position is 60, and was 70 while it was the primary") {
			t.Errorf("%+v", got)
		}
	})
}

// Two positions of three copies may be enough. With a fourth one, which ZooKeeper's list knows, each node says that they are not.
func TestAFourthCopyMakesTwoPositionsDoubtful(t *testing.T) {
	follower(t, nil, func(tell func(string, any) election.CopyReport, r *recorder) {
		r.asks(2)
		for _, node := range []string{"b", "c", "d"} {
			r.knows(node)
			got := tell("b", election.CopyReport{Address: "b"}).Doubt
			if want := "2 positions of 4 copies show the newest data only where each write is on 3 copies"; strings.HasPrefix(got, want) != (node == "d") || node != "d" && got != "" {
				t.Errorf("with %s: %q", node, got)
			}
		}
	})
}
