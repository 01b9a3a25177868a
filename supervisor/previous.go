package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/child/box"
	"understudy/supervisor/child/notify"
	"understudy/supervisor/handoff"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/safefile"
	"understudy/supervisor/service"
	"understudy/supervisor/wait"
)

// SessionRecord is what a supervisor leaves to the next one of its node on its machine, in
// case that it is killed together with its guardians: how to prove that its programs are dead,
// so that nobody waits for the end of its lease. It is in a file that is gone after a boot.
type SessionRecord struct {
	node  string
	store *keyfile.Store
	reach wait.Reach
	log   hclog.Logger
	kept  bool // the note is this supervisor's
}

// NewSessionRecord is that of a real machine.
func NewSessionRecord(cfg Config) *SessionRecord { return sessionRecordIn(notify.DefaultDir(), cfg) }

func sessionRecordIn(dir string, cfg Config) *SessionRecord {
	h := fnv.New64a()
	fmt.Fprint(h, cfg.Node)
	name := strconv.FormatUint(h.Sum64(), 36) + "." + ClusterOf(cfg) + sessionFile
	return &SessionRecord{node: cfg.Node, store: &keyfile.Store{Dir: dir, Name: name}, log: cfg.Logger}
}

// leftSession is the file's text.
type leftSession struct {
	Node    string    `json:"node"` // a hash's name may be another one's
	Maker   box.Maker `json:"maker"`
	Dead    bool      `json:"dead,omitempty"` // all programs of that supervisor are
	Session int64     `json:"session"`
}

// noteSession notes the session that begins. Until the next one begins, all trees of this process live under it or under none.
func (f *SessionRecord) noteSession(session int64, maker func() (box.Maker, error)) {
	if f == nil {
		return
	}
	m, err := maker()
	var data []byte
	if err == nil {
		data, err = json.Marshal(leftSession{f.node, m, false, session})
	}
	if err == nil {
		f.kept = true
		err = f.store.Save(data)
	}
	if err != nil {
		f.log.Debug("cannot note the session: if this supervisor is killed with its guardians, its services wait for the end of its lease",
			"error", err)
	}
}

// end removes this supervisor's note.
func (f *SessionRecord) end() {
	if f != nil && f.kept {
		f.drop()
	}
}

func (f *SessionRecord) drop() {
	if err := f.store.Save(nil); err != nil {
		f.log.Debug("cannot remove the note of the session", "error", err)
	}
}

// load reads what the supervisor before this one left; nil: there is nothing that can be used.
func (f *SessionRecord) load() *leftSession {
	if f == nil {
		return nil
	}
	left, err := f.readFile()
	host, unknown := box.Identity()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil || unknown != nil:
		f.log.Debug("nothing is known of the session before this one", "file", f.store.Path(), "error", errors.Join(err, unknown))
		return nil
	case left.Node != f.node:
		return nil
	case left.Maker.Boot != host.Boot: // nothing of it lives, and its lease is over
		f.drop()
		return nil
	}
	return left
}

func (f *SessionRecord) readFile() (*leftSession, error) {
	data, err := f.store.Load()
	if err == nil {
		own := func() (struct{}, error) { return struct{}{}, safefile.Own(f.store.Path(), safefile.Secret) }
		_, err = wait.Reached(context.Background(), &f.reach, own, nil)
	}
	var left leftSession
	if err == nil {
		err = json.Unmarshal(data, &left)
	}
	if err == nil && (left.Session == 0) {
		err = errors.New("it names no session")
	}
	return &left, err
}

// Swept notes that all programs of the supervisor of a systemd unit are dead, if that is proved: soon systemd removes the cgroups that
// show it.
func Swept(ctx context.Context, unit string) error { return sweptIn(ctx, notify.DefaultDir(), unit) }

func sweptIn(ctx context.Context, dir, unit string) error {
	files, _ := filepath.Glob(filepath.Join(dir, "*"+sessionFile)) // the pattern is well formed
	for _, file := range files {
		f := SessionRecord{store: &keyfile.Store{Dir: filepath.Dir(file), Name: filepath.Base(file)}}
		left, err := f.readFile()
		if err != nil || left.Maker.Path != unit || left.Maker.EndAll(ctx) != nil {
			continue // its services wait for the end of its lease
		}
		left.Dead = true
		data, err := json.Marshal(left)
		if err == nil {
			err = f.store.Save(data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const sessionFile = ".session"

// provePrevious finds out whether all programs of the supervisor before this one are dead, if that was killed together with its guardians.
// It returns a function that waits until this is over.
func (s *supervisor) provePrevious(ctx context.Context, died func(session int64)) (wait func()) {
	left := s.cfg.SessionRecord.load()
	if left == nil {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*s.cfg.Lease) // by then it is over
	done := make(chan struct{})
	go func() {
		defer close(done)
		if s.previousDied(ctx, left) {
			s.died.Store(election.SessionName(left.Session))
			died(left.Session)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func (s *supervisor) previousDied(ctx context.Context, left *leftSession) bool {
	name := election.SessionName(left.Session)
	var err error
	if !left.Dead {
		err = left.Maker.EndAll(ctx)
	}
	switch {
	case err == nil:
		s.log.Warn("the previous supervisor was killed: its programs are dead", "session", name)
		return true
	case errors.Is(err, box.ErrSupervised), errors.Is(err, box.ErrElsewhere):
		s.log.Debug("the session is another supervisor's", "session", name, "why", err)
	case ctx.Err() == nil, errors.Is(err, box.ErrUnproved):
		s.log.Warn("it is not proved that the programs of the previous supervisor are dead: they wait until its lease is over",
			"session", name, "error", err)
	}
	return false
}

// memory is what this node knows of its services, in files that are gone after a boot, when no lease of before lasts.
type memory struct {
	node, cluster string
	servers       []string
	log           hclog.Logger

	mu     sync.Mutex // guards stores
	stores map[string]*keyfile.Store
}

// NewMemory is the memory of a real machine.
func NewMemory(cfg Config) service.Memory {
	return &memory{node: cfg.Node, cluster: ClusterOf(cfg), servers: cfg.Servers, log: cfg.Logger, stores: map[string]*keyfile.Store{}}
}

// Forget removes what nodes of this machine remember of a server whose data begins anew, as an embedded one's does.
func Forget(root, server string) {
	files, _ := filepath.Glob(filepath.Join(notify.DefaultDir(), "*."+ClusterOf(Config{Root: root})+".known")) // the pattern is well formed
	for _, file := range files {
		var k kept
		data, err := os.ReadFile(file)
		if err == nil && json.Unmarshal(data, &k) == nil && slices.Equal(k.Servers, []string{server}) {
			_ = os.Remove(file) // another user's stays, and its supervisors wait
		}
	}
}

// kept is a file's text. A hash's name may be another service's.
type kept struct {
	Node    string        `json:"node"`
	Service string        `json:"service"`
	Servers []string      `json:"servers"` // as they were listed then
	Known   service.Known `json:"known"`
}

func (m *memory) of(name string) *keyfile.Store {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.stores[name]; s != nil {
		return s
	}
	s := &keyfile.Store{Dir: notify.DefaultDir(), Name: fileOf(m.node, name, m.cluster) + ".known"}
	m.stores[name] = s
	return s
}

// Load returns nothing where nothing is kept.
func (m *memory) Load(name string) service.Known {
	data, err := m.of(name).Load()
	var k kept
	if err == nil {
		err = json.Unmarshal(data, &k)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil && os.Geteuid() != 0: // without a runtime directory there is no place that nobody else can write to
		m.log.Debug("nothing is remembered of the tokens that this node has seen", "service", name, "error", err)
	case err != nil:
		m.log.Warn("cannot read which tokens this node has seen: if ZooKeeper comes back with an older copy of its data, "+
			"this node does not notice", "service", name, "error", err)
	}
	if k.Node != m.node || k.Service != name {
		return service.Known{}
	}
	return k.Known
}

func (m *memory) Save(name string, known service.Known) {
	data, err := json.Marshal(kept{m.node, name, m.servers, known})
	if err == nil {
		err = m.of(name).Save(data)
	}
	if err != nil {
		m.log.Debug("cannot save which tokens this node has seen", "service", name, "error", err)
	}
}

// moveOn does the next step of an upgrade. An error says that the upgrade is given up.
func (s *supervisor) moveOn(
	ctx context.Context, t service.Session, m *handoff.Move, stops map[*service.Service]context.CancelCauseFunc,
) error {
	sender := handoff.Sender{
		Session: t, Guard: s.guard, Write: s.envelope, Become: s.cfg.Upgrade.Become, Hangs: s.cfg.Upgrade.Hangs,
		Now: s.cfg.Machine.Now, Log: s.log,
	}
	all := make([]handoff.Serving, 0, len(stops))
	for v, leave := range stops {
		all = append(all, handoff.Serving{Served: v, Leave: leave})
	}
	return m.On(ctx, sender, all, s.unsettled)
}

// unsettled returns the reason for which an upgrade waits, besides the services.
func (s *supervisor) unsettled() error {
	if why := s.credentials.why(); why != "" { // another image would show credentials that cannot open what is in ZooKeeper
		return fmt.Errorf("%w: %s", handoff.ErrNotNow, why)
	}
	if s.credentials.unshown() {
		return handoff.ErrUnshown
	}
	return nil
}

// envelope is the state for the next image.
func (s *supervisor) envelope() handoff.Envelope {
	births, services := s.roster.records()
	e := handoff.Envelope{
		Node: s.cfg.Node, Root: s.cfg.Root, Servers: s.cfg.Servers, Since: s.self.Since, Build: s.cfg.Version,
		Commands: s.commands.Begun(), Births: births,
		Services: services,
	}
	return e
}

// adopt takes over the state of a previous image of this process. On an error this process has to end: to its guardians that is
// a supervisor's death, and they do the rest.
func (s *supervisor) adopt(ctx context.Context) error {
	left, err := handoff.Open(s.cfg.Handover, s.cfg.Node, s.cfg.Root, s.cfg.Servers)
	if err != nil {
		return err
	}
	s.cfg.Handover = nil
	guard, err := s.cfg.Machine.Adopt(ctx, left.Guard, s.cfg.Node, s.log)
	if err != nil {
		return err
	}
	if err := left.Find(guard.Adopted, s.log); err != nil {
		return err
	}
	s.guard = guard
	close(s.guarded)
	s.self.Since = left.Since
	s.commands.GoOn(left.Commands)
	s.left = left
	return nil
}
