package ensemble

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"understudy/election"
)

// ServerStatus is what is known of a server. What is not known has its zero value.
type ServerStatus struct {
	Address string        `json:"address"`
	Error   string        `json:"error,omitempty"` // why it gives no session
	Version string        `json:"version,omitempty"`
	Mode    string        `json:"mode,omitempty"` // standalone, leader, follower, observer
	Tick    time.Duration `json:"-"`
	Least   time.Duration `json:"-"` // the shortest session timeout that it grants
	Most    time.Duration `json:"-"`
	TickMs  int64         `json:"tick_ms,omitempty"`
	LeastMs int64         `json:"min_session_timeout_ms,omitempty"`
	MostMs  int64         `json:"max_session_timeout_ms,omitempty"`
	Voters  int           `json:"voters,omitempty"` // of its ensemble
	DataDir string        `json:"data_dir,omitempty"`
	Purge   *int          `json:"autopurge_hours,omitempty"` // 0: off
	Clients *int          `json:"max_client_cnxns,omitempty"`
	Here    bool          `json:"here,omitempty"`    // on this host
	Unknown []string      `json:"unknown,omitempty"` // settings that could not be asked

	temporary string // why the data does not outlast a restart of this host
	refuses   bool   // what answers there cannot be used
}

// Asked is how to look.
type Asked struct {
	election.Config
	Here  bool   // look at files and processes of this host, too
	Proc  string // /proc when empty
	Brief bool   // look only for what Dangers are made from
}

// The timeouts that are asked for to see what servers grant.
const (
	tooShort = time.Millisecond
	tooLong  = 10 * time.Minute
	kept     = 30 * time.Second // for the session that goes from server to server
)

// Look asks all servers, at the same time.
func Look(ctx context.Context, asked Asked) Snapshot {
	if asked.Proc == "" {
		asked.Proc = "/proc"
	}
	q := election.Inquire(asked.Config)
	r := Snapshot{Servers: make([]ServerStatus, len(asked.Servers))}
	var wait sync.WaitGroup
	for i, address := range asked.Servers {
		wait.Go(func() { r.Servers[i] = look(ctx, q, asked, address) })
	}
	wait.Wait()
	if !asked.Brief || len(asked.Servers) > 1 {
		r.keeping = walk(ctx, q, r.Servers)
	}
	return r
}

func look(ctx context.Context, q election.Inquiry, asked Asked, address string) ServerStatus {
	s := ServerStatus{Address: address, Here: asked.Here && isHere(address)}
	if asked.Brief && !s.Here {
		return s
	}
	if !asked.Brief {
		if err := s.grants(ctx, q); err != nil {
			s.Error = err.Error()
			_, other := errors.AsType[*election.NoZooKeeper](err)
			s.refuses = other || errors.Is(err, election.ErrRefusedSession)
			return s
		}
		if text, err := q.Word(ctx, address, "srvr"); err == nil {
			s.Version, s.Mode = summary(text)
		}
	}
	f := facts{}
	if text, err := q.Word(ctx, address, "conf"); err == nil {
		f = parse(text)
	}
	_, port, _ := net.SplitHostPort(address)
	if s.Here {
		f.add(fromFile(asked.Proc, port))
	}
	s.take(f)
	return s
}

// grants opens sessions that ask for too little and for too much.
func (s *ServerStatus) grants(ctx context.Context, q election.Inquiry) error {
	for asked, granted := range map[time.Duration]*time.Duration{tooShort: &s.Least, tooLong: &s.Most} {
		v, err := q.Open(ctx, s.Address, asked)
		if err != nil {
			return err
		}
		*granted = v.Granted
		_ = q.Close(ctx, s.Address, v) // else it expires
	}
	s.LeastMs, s.MostMs = s.Least.Milliseconds(), s.Most.Milliseconds()
	return nil
}

// take reads the settings, and notes which are missing.
func (s *ServerStatus) take(f facts) {
	s.Tick, s.Voters = f.milliseconds("tickTime"), f.voters()
	s.TickMs = s.Tick.Milliseconds()
	s.DataDir = strings.TrimSuffix(f["dataDir"], "/version-2")
	if s.Here && s.DataDir != "" {
		s.temporary = temporary(s.DataDir)
	}
	if n, ok := f.number(purge); ok {
		s.Purge = &n
	}
	if n, ok := f.number("maxClientCnxns"); ok {
		s.Clients = &n
	}
	for name, missing := range map[string]bool{
		"version": s.Version == "", "tickTime": s.Tick == 0, "dataDir": f["dataDir"] == "" && f["tickTime"] == "",
		purge: s.Purge == nil, "maxClientCnxns": s.Clients == nil,
	} {
		if missing {
			s.Unknown = append(s.Unknown, name)
		}
	}
	slices.Sort(s.Unknown)
}

// walk takes one session from server to server: an ensemble keeps it, and each of its servers knows it.
func walk(ctx context.Context, q election.Inquiry, servers []ServerStatus) (k keeping) {
	first := -1
	var v election.Visit
	for i := range servers {
		s := &servers[i]
		if s.Error != "" {
			continue
		}
		if first < 0 {
			var err error
			if v, err = q.Open(ctx, s.Address, kept); err == nil {
				first = i
			}
			continue
		}
		got, err := q.Resume(ctx, s.Address, v)
		switch {
		case errors.Is(err, election.ErrRefusedSession):
			k.strangers = append(k.strangers, s.Address)
		case err == nil && got.Session != v.Session:
			k.forget = append(k.forget, s.Address)
			_ = q.Close(ctx, s.Address, got)
		}
	}
	if first < 0 {
		return keeping{}
	}
	at := servers[first].Address
	got, err := q.Resume(ctx, at, v)
	k.first = at
	switch {
	case errors.Is(err, election.ErrRefusedSession) || err == nil && got.Session != v.Session:
		k.forget = append(k.forget, at)
	case err != nil: // whether it is still there is unknown
		k = keeping{}
	}
	if err == nil {
		_ = q.Close(ctx, at, got)
	}
	return k
}

// keeping is what became of a session that went from server to server.
type keeping struct {
	first     string   // where it was opened
	strangers []string // they do not know it, while the first one does: they belong to another ensemble
	forget    []string // they gave another session in its place
}
