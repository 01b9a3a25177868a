package unit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child"
	"understudy/supervisor/child/logfile"
	"understudy/supervisor/child/notify"
	"understudy/supervisor/child/reexec"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/safefile"
	"understudy/supervisor/wait"
)

// CarriedRun is a run that another image of this process continues: the programs, as they were started, and our ends of their pipes and
// sockets.
type CarriedRun struct {
	Programs []config.Process `json:"programs"` // of the config at their start
	Parts    []carriedPart    `json:"parts"`
	Pipes    []carriedPipe    `json:"pipes,omitempty"`
	Sockets  []carriedSocket  `json:"sockets,omitempty"`
	Follower counts           `json:"follower,omitzero"` // of a promoted copy

	parts []part
}

// carriedPart names the program by its place in the config, and its process by the pid; 0: a oneshot, which has ended.
type carriedPart struct {
	Program int `json:"program"`
	Pid     int `json:"pid,omitempty"`
}

// carriedPipe takes a program's output to its file. It buffers output that comes during the exec.
type carriedPipe struct {
	Conf config.LogFile `json:"conf"`
	// The user's ids: another lookup could hang.
	Who       safefile.Who `json:"who"`
	R         int          `json:"r"` // descriptors, once they are kept
	W         int          `json:"w"`
	Unwritten []byte       `json:"unwritten,omitempty"` // what the file could not take

	r, w *os.File
}

// carriedSocket is the socket that a program sends its notifications to.
type carriedSocket struct {
	Dir string `json:"dir"`
	UID uint32 `json:"uid"`
	FD  int    `json:"fd"`

	socket *notify.Socket
}

// Keep makes descriptors that stay open over an exec of our ends of the programs' pipes and sockets.
func (c *CarriedRun) Keep() (kept []int, err error) {
	keep := func(f *os.File, fd *int) {
		if err == nil {
			if *fd, err = reexec.LeaveFile(f); err == nil {
				kept = append(kept, *fd)
			}
		}
	}
	for i := range c.Pipes {
		p := &c.Pipes[i]
		keep(p.r, &p.R)
		keep(p.w, &p.W)
	}
	for i := range c.Sockets {
		file, copied := c.Sockets[i].socket.File()
		if copied != nil {
			return kept, copied
		}
		keep(file, &c.Sockets[i].FD)
		_ = file.Close()
	}
	return kept, err
}

// Discard closes them for a run that does not go on.
func (c *CarriedRun) Discard() {
	for _, p := range c.Pipes {
		_ = wait.Aside(0, p.r.Close) // it may hang, as in Log.Close
		_ = wait.Aside(0, p.w.Close)
	}
	for _, s := range c.Sockets {
		go s.socket.Close() // it may hang, as in Run.Close
	}
}

// Find is Keep's reverse, in the next image; it looks the processes up in the tree.
func (c *CarriedRun) Find(tree host.Tree, log hclog.Logger) error {
	if len(c.Parts) == 0 {
		return errors.New("it has no programs")
	}
	for _, p := range c.Parts {
		if p.Program < 0 || p.Program >= len(c.Programs) {
			return errors.New("it has a program that is not in its config")
		}
		found := part{Process: c.Programs[p.Program], process: endedProcess{}}
		if p.Pid != 0 {
			process, ok := tree.Process(p.Pid)
			if !ok { // it ended at the last moment, with all that it forked
				process = endedProcess{status: child.ExitStatus{Code: -1, Unknown: true}}
			}
			found.process = process
		}
		c.parts = append(c.parts, found)
	}
	for i := range c.Pipes {
		p := &c.Pipes[i]
		p.r, p.w = reexec.TakeFile(p.R, "log reader"), reexec.TakeFile(p.W, "log writer")
	}
	for i := range c.Sockets {
		s := &c.Sockets[i]
		conf := notify.Config{Belongs: tree.Owns, UID: s.UID, Logger: log.Named("notify")}
		socket, err := notify.Adopt(conf, s.Dir, reexec.TakeFile(s.FD, "notify"))
		if err != nil {
			return err
		}
		s.socket = socket
	}
	return nil
}

// HandOver lets go of the programs, if they are all well: they run on, and the caller must not call Stop. Wait has returned.
func (r *Run) HandOver() (c *CarriedRun, ok bool) {
	if !wait.Closed(r.ready) {
		r.u.log.Warn("cannot keep the program running, because it is still starting: stopping it", "service", r.u.cfg.Service)
		return nil, false
	}
	c = &CarriedRun{Programs: r.cfg.Conf.Processes[:len(r.parts)], Follower: r.follower, parts: r.parts}
	for i, p := range r.parts {
		one := carriedPart{Program: i}
		if !p.Oneshot {
			if wait.Closed(p.process.Done()) {
				return nil, false
			}
			one.Pid = p.process.Pid()
		}
		c.Parts = append(c.Parts, one)
	}
	pipes, err := r.u.logs.part()
	if err != nil {
		r.u.log.Warn("cannot keep the program running: stopping it", "service", r.u.cfg.Service, "why", err)
		return nil, false
	}
	c.Pipes = pipes
	for _, s := range r.sockets {
		c.Sockets = append(c.Sockets, carriedSocket{Dir: s.Dir(), UID: s.UID(), socket: s})
	}
	r.handed = true
	return c, true
}

// part makes the log files complete, as far as possible, and returns the pipes into them.
func (l *logs) part() (pipes []carriedPipe, err error) {
	for _, path := range slices.Sorted(maps.Keys(l.files)) {
		r, w, parted := l.files[path].Part()
		err = errors.Join(err, parted)
		if parted == nil {
			pipes = append(pipes, carriedPipe{Conf: l.confs[path], Who: l.files[path].Who(), r: r, w: w})
		}
	}
	l.wg.Wait()
	for i := range pipes {
		log := l.files[pipes[i].Conf.File]
		pipes[i].Unwritten = log.Unwritten()
		if log.Locked() {
			err = errors.Join(err, logfile.ErrLocked)
		}
	}
	l.files, l.confs, l.ends = nil, nil, nil
	if err != nil {
		(&CarriedRun{Pipes: pipes}).Discard()
		return nil, fmt.Errorf("let go of a log file: %w", err)
	}
	return pipes, nil
}

// resume continues a pipe.
func (l *logs) resume(ctx context.Context, reach *wait.Reach, p carriedPipe, log hclog.Logger) error {
	_, err := l.openWith(ctx, reach, p.Conf, p.Who, log, func(c logfile.Config) (*logfile.Log, error) {
		return logfile.Reopen(c, p.r, p.w, p.Unwritten)
	})
	return err
}
