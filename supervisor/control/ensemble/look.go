package ensemble

import (
	"context"
	"errors"
	"fmt"
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
	Clients *int          `json:"max_client_cnxns,omitempty"`
	Unknown []string      `json:"unknown,omitempty"` // settings that could not be asked

	refuses bool // what answers there cannot be used
}

// The timeouts that are asked for to see what servers grant.
const (
	tooShort = time.Millisecond
	tooLong  = 10 * time.Minute
	kept     = 30 * time.Second // for the session that goes from server to server
)

// Look asks all servers, at the same time.
func Look(ctx context.Context, cfg election.Config) Snapshot {
	q := election.Inquire(cfg)
	r := Snapshot{Servers: make([]ServerStatus, len(cfg.Servers))}
	var wait sync.WaitGroup
	for i, address := range cfg.Servers {
		wait.Go(func() { r.Servers[i] = look(ctx, q, address) })
	}
	wait.Wait()
	r.keeping = walk(ctx, q, r.Servers)
	return r
}

// Strangers says that the servers of a config are not of one ensemble; "": they are, as far as is known.
func Strangers(ctx context.Context, cfg election.Config) string {
	if len(cfg.Servers) < 2 {
		return ""
	}
	var servers []ServerStatus
	for _, address := range cfg.Servers {
		servers = append(servers, ServerStatus{Address: address})
	}
	return walk(ctx, election.Inquire(cfg), servers).unlike()
}

func look(ctx context.Context, q election.Inquiry, address string) ServerStatus {
	s := ServerStatus{Address: address}
	if err := s.grants(ctx, q); err != nil {
		s.Error = err.Error()
		_, other := errors.AsType[*election.NoZooKeeper](err)
		s.refuses = other || errors.Is(err, election.ErrRefusedSession)
		return s
	}
	if text, err := q.Word(ctx, address, "srvr"); err == nil {
		s.Version, s.Mode = summary(text)
	}
	f := facts{}
	if text, err := q.Word(ctx, address, "conf"); err == nil {
		f = parse(text)
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
	if n, ok := f.number("maxClientCnxns"); ok {
		s.Clients = &n
	}
	for name, missing := range map[string]bool{
		"version": s.Version == "", "tickTime": s.Tick == 0, "dataDir": f["dataDir"] == "" && f["tickTime"] == "",
		"maxClientCnxns": s.Clients == nil,
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

func (k keeping) unlike() string {
	if len(k.strangers) == 0 {
		return ""
	}
	return fmt.Sprintf("%s and %s are not servers of one ensemble: two nodes could be active at once", k.first,
		strings.Join(k.strangers, ", "))
}
