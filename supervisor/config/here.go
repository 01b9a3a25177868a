package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"understudy/supervisor/config/unitfile"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/safefile"
)

// doubts places doubts as faults are placed.
func (l *positions) doubts(warnings []found) (list Faults) {
	for _, f := range warnings {
		p, file, n := l.locate(f)
		list = append(list,
			Fault{File: file, Line: max(n.Line, 1), Column: max(n.Column, 1), Key: p.String(), Message: f.message, Danger: f.danger})
	}
	return list
}

// At is what is wrong with a key's value on this machine, found by others, in its place.
func (r LoadResult) At(key, message string) Fault {
	return r.loader.doubts([]found{{keys: []path{strings.Split(key, ".")}, message: message}})[0]
}

// Here looks for the files, users and programs that the configuration names, on this machine: without them a service would not
// start here. These are no faults, since the machine that checks a file need not be the one that runs it.
func (r LoadResult) Here() Faults {
	if r.Config == nil {
		return nil
	}
	warnings, refused := r.look(machineCheck{})
	if os.Geteuid() != 0 {
		warnings = append(warnings, refused...)
	}
	return warnings
}

func (r LoadResult) look(s machineCheck) (warnings, refused Faults) {
	s.loader, s.rivals = r.loader, sync.OnceValue(func() map[string]string { return unitfile.Rivals("") })
	s.files()
	if auth := r.loader.doc.ZooKeeper.Auth; auth != nil {
		at := path{"zookeeper", "auth", "file"}
		s.secrets(at, auth.File)
		lines, _ := keyfile.Lines(auth.File)
		for i, line := range lines {
			if strings.TrimRight(line, " \t") != line {
				s.warn(at, fmt.Sprintf("%s: line %d ends with a blank, which belongs to the password", auth.File, i+1))
			}
		}
	}
	if t := r.loader.doc.ZooKeeper.TLS; t != nil {
		s.tls(path{"zookeeper", "tls"}, keyfile.TLS(*t))
	}
	s.web(path{"http"}, r.loader.doc.HTTP)
	if agent := r.loader.doc.Fencing.Agent; agent != nil {
		s.agent(path{"fencing", "agent"}, *agent)
	}
	if n := r.loader.doc.Notify; n != nil && len(n.Exec) > 0 {
		s.run(path{"notify", "exec"}, n.Exec, Program{})
	}
	if w := r.loader.doc.Watchdog; w.Mode != WatchdogOff {
		info, err := os.Stat(w.Device)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			s.warn(path{"watchdog", "device"}, "there is no "+w.Device)
		case err != nil:
			s.warn(path{"watchdog", "device"}, err.Error())
		case info.Mode()&fs.ModeCharDevice == 0, unix.Major(info.Sys().(*syscall.Stat_t).Rdev) == memoryMajor:
			s.warn(path{"watchdog", "device"}, w.Device+" is no watchdog: name one such as /dev/watchdog")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.loader.doc.Services)) {
		s.service(path{"services", name}, r.loader.doc.Services[name].written)
	}
	return r.loader.sorted(r.loader.doubts(s.found)), r.loader.sorted(r.loader.doubts(s.refused))
}

const memoryMajor = 1 // of /dev/null and the like

// machineCheck collects what this machine lacks.
type machineCheck struct {
	found   []found
	refused []found // what is refused where root runs it
	loader  *loader
	dangers bool // only what others may do is asked: no account is looked up, which may take long
	rivals  func() map[string]string
	looked  map[string]bool // the files; nil: nobody asks
}

func (s *machineCheck) warn(p path, message string) {
	s.found = append(s.found, found{keys: []path{p}, message: message + " (on this machine)"})
}

func (s *machineCheck) secret(p path, name string) {
	_, err := keyfile.Line(name)
	s.kept(p, name, err)
}

// secrets is secret for a file that may hold several.
func (s *machineCheck) secrets(p path, name string) {
	_, err := keyfile.Lines(name)
	s.kept(p, name, err)
}

func (s *machineCheck) kept(p path, name string, err error) {
	if err != nil {
		s.warn(p, err.Error())
	}
	s.own(p, name, secretIf(err == nil), false)
}

// secretIf leaves it to others to read a file that holds no secret, as one of the system's that was named in error.
func secretIf(secret bool) safefile.Purpose {
	if secret {
		return safefile.Secret
	}
	return safefile.Setting
}

// holdsKey reports whether a file holds a private key in PEM.
func holdsKey(name string) bool {
	text, err := readFile(name)
	return err == nil && bytes.Contains(text, []byte("PRIVATE KEY-----"))
}

// tls warns of authorities, a certificate and a key that are of no use, and looks at who can change the former, or read the key.
func (s *machineCheck) tls(p path, files keyfile.TLS) {
	c, err := files.Config()
	if err != nil {
		s.warn(p, err.Error())
	} else if len(c.Certificates) > 0 && time.Now().After(c.Certificates[0].Leaf.NotAfter) {
		s.warn(p.key("cert_file"), files.CertFile+" expired on "+c.Certificates[0].Leaf.NotAfter.Format(time.RFC3339))
	}
	s.own(p.key("ca_file"), files.CAFile, safefile.Setting, false)
	s.own(p.key("cert_file"), files.CertFile, safefile.Setting, false)
	s.own(p.key("key_file"), files.KeyFile, secretIf(holdsKey(files.KeyFile)), false)
}

func (s *machineCheck) danger(p path, message string) {
	s.warn(p, message)
	s.found[len(s.found)-1].danger = true
}

// enoughOfAToken is how long one is that nobody guesses.
const enoughOfAToken = 16

func (s *machineCheck) web(p path, h HTTPServer) {
	s.listens(p, h.Listen)
	for _, file := range []struct{ key, name string }{{"token_file", h.TokenFile}, {"read_token_file", h.ReadTokenFile}} {
		if file.name == "" {
			continue
		}
		at := p.key(file.key)
		s.secret(at, file.name)
		if token, err := keyfile.Line(file.name); err == nil && utf8.RuneCountInString(token) < enoughOfAToken {
			s.danger(at, fmt.Sprintf("the token in %s is shorter than %d characters and can be guessed: openssl rand -hex 32 > %s",
				file.name, enoughOfAToken, file.name))
		}
	}
	if h.TLS != nil {
		s.tls(p.key("tls"), keyfile.TLS{CertFile: h.TLS.CertFile, KeyFile: h.TLS.KeyFile})
	}
}

// listens warns of an address at which this machine cannot listen. One that is taken may be by the supervisor that runs here.
func (s *machineCheck) listens(p path, address string) {
	if s.dangers || address == "" {
		return
	}
	l, err := net.Listen("tcp", address)
	if err == nil {
		_ = l.Close()
	} else if why := NoListening(address, err); why != "" {
		s.warn(p.key("listen"), why)
	}
}

// NoListening is why nobody could listen at an address as this user, on this machine, where err is of that kind.
func NoListening(address string, err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "only root may listen at " + address + ": choose a port above 1023"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return address + " is no address of this host: use one that it has, or :PORT for all"
	}
	return ""
}

func (s *machineCheck) agent(p path, a Agent) {
	s.listens(p, a.Listen)
	s.secrets(p.key("secret_file"), a.SecretFile)
}

// needs warns of a file that cannot be read, and looks at who can change it, or read a secret.
func (s *machineCheck) needs(p path, name string, use safefile.Purpose) {
	if name == "" {
		return
	}
	if _, err := readFile(name); err != nil {
		s.warn(p, name+": "+err.Error())
	}
	s.own(p, name, use, false)
}

func (s *machineCheck) service(p path, w written) {
	for i, process := range w.Processes {
		at := p.key("processes").item(i)
		if process.member() != "" {
			s.member(at, process, i == 0 && len(w.Address) == 0)
			continue
		}
		s.program(at, process)
		s.run(at.key("undo"), process.Undo, process.Program)
		s.run(at.key("ready").key("exec"), process.Ready.Exec, process.Program)
	}
	s.addresses(p.key("address"), w.Address)
	if len(w.Processes) == 0 {
		s.program(p, Process{Program: w.Program})
		s.run(p.key("ready").key("exec"), w.Ready.Exec, w.Program)
	}
	s.run(p.key("health").key("exec"), w.Health.Exec, w.Program)
	s.run(p.key("health").key("follower").key("exec"), w.Health.Follower.Exec, w.Program)
	s.run(p.key("precheck").key("exec"), w.Precheck.Exec, w.Program)
	s.run(p.key("reload_check"), w.ReloadCheck, w.Program)
	if r := w.Replicated; r != nil {
		at := p.key("replicated")
		for _, c := range r.commands() {
			s.run(at.key(c.key), c.command, w.Program)
		}
		if r.SeenBy != nil {
			s.run(at.key("seen_by").key("exec"), r.SeenBy.Exec, w.Program)
		}
	}
	if o := w.Warm; o != nil {
		at := p.key("warm")
		s.run(at.key("promote").key("exec"), o.Promote.Exec, w.Program)
		s.run(at.key("demote").key("exec"), o.Demote.Exec, w.Program)
		s.run(at.key("role"), o.Role, w.Program)
	}
	hooks := p.key("hooks")
	for i, hook := range w.Hooks.all() {
		s.command(hooks.key(hookNames[i]).key("command"), hook.Command, w.Program)
		s.executables(hooks.key(hookNames[i]).key("command"), hook.Command, w.Program, true)
	}
	for i, method := range w.Fencing.Methods {
		s.fenceMethod(p.key("fencing").key("methods").item(i), method)
	}
}

func (s *machineCheck) fenceMethod(p path, m FenceMethod) {
	switch {
	case m.Exec != nil:
		s.command(p.key("exec").key("command"), m.Exec.Command, Program{})
		s.executables(p.key("exec").key("command"), m.Exec.Command, Program{}, true)
	case m.FenceAgent != nil:
		at := p.key("fence_agent")
		s.command(at.key("command"), m.FenceAgent.Command, Program{})
		s.executables(at.key("command"), m.FenceAgent.Command, Program{}, true)
		s.inline(at.key("options"), m.FenceAgent.Options)
		for _, name := range slices.Sorted(maps.Keys(m.FenceAgent.Secrets)) {
			s.secret(at.key("secrets").key(name), m.FenceAgent.Secrets[name])
		}
	case m.SSH != nil:
		s.needs(p.key("ssh").key("key_file"), m.SSH.KeyFile, secretIf(holdsKey(m.SSH.KeyFile)))
		s.needs(p.key("ssh").key("known_hosts"), m.SSH.KnownHosts, safefile.Setting)
	case m.HTTP != nil:
		s.inline(p.key("http").key("headers"), m.HTTP.Headers)
		if m.HTTP.BearerFile != "" {
			s.secret(p.key("http").key("bearer_file"), m.HTTP.BearerFile)
		}
		s.needs(p.key("http").key("ca_file"), m.HTTP.CAFile, safefile.Setting)
	}
}
