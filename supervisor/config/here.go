package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"understudy/supervisor/config/unitfile"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/safefile"
)

// warnings places doubts as faults are placed.
func (l *loader) warnings(doubts []found) Faults {
	var list Faults
	for _, f := range doubts {
		p, file, n := l.locate(f)
		list = append(list, Fault{File: file, Line: max(n.Line, 1), Column: max(n.Column, 1), Key: p.String(), Message: f.message, Danger: f.danger})
	}
	return l.sorted(list)
}

// Here looks for the files, users and programs that the configuration names, on this machine: without them a service would not
// start here. These are no faults, since the machine that checks a file need not be the one that runs it.
func (r Result) Here() Faults {
	if r.Config == nil {
		return nil
	}
	warnings, grave := r.look(survey{})
	if os.Geteuid() != 0 {
		warnings = append(warnings, grave...)
	}
	return warnings
}

func (r Result) look(s survey) (warnings, grave Faults) {
	s.loader, s.rivals = r.loader, sync.OnceValue(func() map[string]string { return unitfile.Rivals("") })
	s.files()
	if auth := r.loader.doc.ZooKeeper.Auth; auth != nil {
		s.secrets(path{"zookeeper", "auth", "file"}, auth.File)
	}
	if t := r.loader.doc.ZooKeeper.TLS; t != nil {
		at := path{"zookeeper", "tls"}
		for key, name := range map[string]string{"ca_file": t.CAFile, "cert_file": t.CertFile, "key_file": t.KeyFile} {
			s.file(at.key(key), name)
		}
		s.tls(at, t.CAFile, t.CertFile, t.KeyFile)
	}
	s.web(s.loader.ours("http"), r.loader.doc.HTTP)
	if agent := r.loader.doc.Fencing.Agent; agent != nil {
		s.agent(s.loader.ours("fencing", "agent"), *agent)
	}
	if w := r.loader.doc.Watchdog; w.Mode != WatchdogOff {
		if _, err := os.Stat(w.Device); err != nil {
			s.warn(s.loader.ours("watchdog", "device"), err.Error())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.loader.doc.Services)) {
		s.service(s.loader.ours("services", name), r.loader.doc.Services[name].written)
	}
	return r.loader.warnings(s.found), r.loader.warnings(s.grave)
}

// survey collects what this machine lacks.
type survey struct {
	found   []found
	grave   []found // what is refused where root runs it
	loader  *loader
	dangers bool // only what others may do is asked: no account is looked up, which may take long
	rivals  func() map[string]string
}

func (s *survey) warn(p path, message string) {
	s.found = append(s.found, found{keys: []path{p}, message: message + " (on this machine)"})
}

func (s *survey) secret(p path, name string) {
	_, err := ReadSecret(name)
	s.kept(p, name, err)
}

// secrets is secret for a file that may hold several.
func (s *survey) secrets(p path, name string) {
	_, err := keyfile.Lines(name)
	s.kept(p, name, err)
}

func (s *survey) kept(p path, name string, err error) {
	if err != nil {
		s.warn(p, err.Error())
	}
	s.own(p, name, safefile.Secret, false)
}

// tls looks at who can change authorities and certificates, or read a key.
func (s *survey) tls(p path, ca, cert, key string) {
	s.own(p.key("ca_file"), ca, safefile.Setting, false)
	s.own(p.key("cert_file"), cert, safefile.Setting, false)
	s.own(p.key("key_file"), key, safefile.Secret, false)
}

func (s *survey) danger(p path, message string) {
	s.warn(p, message)
	s.found[len(s.found)-1].danger = true
}

// enoughOfAToken is how long one is that nobody guesses.
const enoughOfAToken = 16

func (s *survey) web(p path, h HTTP) {
	for _, file := range []struct{ key, name string }{{"token_file", h.TokenFile}, {"read_token_file", h.ReadTokenFile}} {
		if file.name == "" {
			continue
		}
		at := p.key(file.key)
		s.secret(at, file.name)
		if token, err := ReadSecret(file.name); err == nil && utf8.RuneCountInString(token) < enoughOfAToken {
			s.danger(at, fmt.Sprintf("the token in %s is shorter than %d characters and can be guessed: openssl rand -hex 32 > %s", file.name, enoughOfAToken, file.name))
		}
	}
	if h.TLS != nil {
		if _, err := tls.LoadX509KeyPair(h.TLS.CertFile, h.TLS.KeyFile); err != nil {
			s.warn(p.key("tls"), err.Error())
		}
		s.tls(p.key("tls"), "", h.TLS.CertFile, h.TLS.KeyFile)
	}
}

func (s *survey) agent(p path, a Agent) {
	if a.SecretFile != "" {
		s.secrets(p.key("secret_file"), a.SecretFile)
	}
	if a.TLS != nil {
		files := keyfile.TLS(*a.TLS)
		if _, err := files.Config(); err != nil {
			s.warn(p.key("tls"), err.Error())
		}
		s.tls(p.key("tls"), a.TLS.CAFile, a.TLS.CertFile, a.TLS.KeyFile)
	}
}

// file warns of one that cannot be read.
func (s *survey) file(p path, name string) {
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would block for ever
	if err != nil {
		s.warn(p, err.Error())
		return
	}
	_ = f.Close()
}

func (s *survey) service(p path, w written) {
	for i, process := range w.Processes {
		at := p.key("processes").item(i)
		if !process.isProgram() {
			s.member(at, process)
			continue
		}
		s.program(at, process.Program)
		s.run(at.key("undo"), process.Undo, process.Program)
		s.run(at.key("ready").key("exec"), process.Ready.Exec, process.Program)
	}
	s.addresses(p.key("address"), w.Address)
	if len(w.Processes) == 0 {
		s.program(p, w.Program)
		s.run(p.key("ready").key("exec"), w.Ready.Exec, w.Program)
	}
	s.run(p.key("health").key("exec"), w.Health.Exec, w.Program)
	s.run(p.key("precheck").key("exec"), w.Precheck.Exec, w.Program)
	if r := w.Replicated; r != nil {
		at := p.key("replicated")
		s.run(at.key("role"), r.Role, w.Program)
		s.run(at.key("position"), r.Position, w.Program)
		s.run(at.key("promote"), r.Promote, w.Program)
		s.run(at.key("follow"), r.Follow, w.Program)
	}
	hooks := p.key("hooks")
	for i, hook := range w.Hooks.all() {
		s.command(hooks.key(hookNames[i]).key("command"), hook.Command, w.Program)
		s.executables(hooks.key(hookNames[i]).key("command"), hook.Command, w.Program, true)
	}
	for i, method := range w.Fencing.Methods {
		at := p.key("fencing").key("methods").item(i)
		s.fenceMethod(at, method.FenceOne)
		for j, one := range method.Any {
			s.fenceMethod(at.key("any").item(j), one)
		}
	}
}

func (s *survey) fenceMethod(p path, m FenceOne) {
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
		s.readable(p.key("ssh").key("key_file"), m.SSH.KeyFile)
		s.own(p.key("ssh").key("key_file"), m.SSH.KeyFile, safefile.Secret, false)
		s.readable(p.key("ssh").key("known_hosts"), m.SSH.KnownHosts)
		s.own(p.key("ssh").key("known_hosts"), m.SSH.KnownHosts, safefile.Setting, false)
	case m.HTTP != nil:
		s.inline(p.key("http").key("headers"), m.HTTP.Headers)
		if m.HTTP.BearerFile != "" {
			s.secret(p.key("http").key("bearer_file"), m.HTTP.BearerFile)
		}
		if m.HTTP.CAFile != "" {
			s.readable(p.key("http").key("ca_file"), m.HTTP.CAFile)
			s.own(p.key("http").key("ca_file"), m.HTTP.CAFile, safefile.Setting, false)
		}
	}
}

func (s *survey) readable(p path, name string) {
	if _, err := readFile(name); err != nil {
		s.warn(p, name+": "+err.Error())
	}
}

func (s *survey) program(p path, g Program) {
	s.run(p.key("command"), g.Command, g)
	s.alone(p.key("command"), g)
	s.inline(p.key("env"), g.Env)
	account(s, p.key("user"), g.User, user.Lookup)
	account(s, p.key("group"), g.Group, user.LookupGroup)
	if os.Geteuid() != 0 {
		if account, err := user.Lookup(g.User); err == nil && account.Uid != strconv.Itoa(os.Geteuid()) {
			s.warn(p.key("user"), "only a supervisor that runs as root can run a program as "+quoted(g.User))
		}
		if g.Caps.Bounding != nil {
			s.warn(p.key("capabilities").key("bounding"), "only a supervisor that runs as root can lower it: run it as root, or leave the key out")
		}
		if len(g.Caps.Ambient) > 0 && g.User != "" {
			s.warn(p.key("capabilities").key("ambient"), "only a supervisor that runs as root can give them to another user: run it as root, or leave the key out")
		}
	}
	if g.WorkingDir != "" {
		s.directory(p.key("working_dir"), g.WorkingDir)
	}
	if g.Log.File != "" {
		s.directory(p.key("log").key("file"), filepath.Dir(g.Log.File))
		s.logFile(p.key("log").key("file"), g)
	}
	if g.EnvFile != "" && asRoot(g) {
		s.own(p.key("env_file"), g.EnvFile, safefile.Setting, true)
	}
	if g.EnvFile == "" || s.dangers {
		return
	}
	_, err := ReadEnvFile(g.EnvFile, whose(g))
	faults, _ := errors.AsType[Faults](err)
	for _, f := range faults {
		s.warn(p.key("env_file"), f.String())
	}
}

// alone warns of what starts a second copy: a unit of systemd that has the same program, and a daemon that goes to the background.
func (s *survey) alone(p path, g Program) {
	if len(g.Command) == 0 {
		return
	}
	if stays := unitfile.Foreground(g.Command); !slices.Equal(stays, g.Command) {
		s.found = append(s.found, found{keys: []path{p}, danger: true, message: fmt.Sprintf(
			"%s may go to the background, where it counts as ended. To keep it in the foreground: %s", quoted(g.Command[0]), shellWords(stays))})
	}
	programs := g.Command[:1]
	if shell := filepath.Base(g.Command[0]); len(g.Command) > 2 && g.Command[1] == "-c" && slices.Contains([]string{"sh", "bash", "dash"}, shell) {
		programs = strings.Fields(g.Command[2]) // what it is to run
	}
	for _, program := range programs {
		file, err := find(program, g)
		if err != nil {
			continue
		}
		file, _ = filepath.EvalSymlinks(file) // no unit runs what is not there
		if unit := s.rivals()[file]; unit != "" {
			s.danger(p, fmt.Sprintf("%s runs %s, too: systemctl disable --now %s", unit, quoted(program), unit))
		}
	}
}

// shellWords is a command as one types it.
func shellWords(words []string) string {
	var text []string
	for _, word := range words {
		if strings.ContainsAny(word, " ;\"'$") || word == "" {
			word = quoted(word)
		}
		text = append(text, word)
	}
	return strings.Join(text, " ")
}

// logFile warns of a log file that the supervisor would refuse: the program would run, and its lines would be lost.
func (s *survey) logFile(p path, g Program) {
	if s.dangers {
		return
	}
	f, err := safefile.Open(g.Log.File, whose(g))
	if refused, ok := errors.AsType[*safefile.Refused](err); ok {
		s.warn(p, refused.Error())
	} else if err == nil {
		_ = f.Close()
	}
}

// whose is the user that a program runs as. An unknown user is trusted with nothing.
func whose(g Program) (who safefile.Who) {
	name := g.User
	if account, err := user.Lookup(name); err == nil {
		name = account.Uid
	}
	if uid, err := strconv.ParseUint(name, 10, 32); err == nil {
		who.UID = uint32(uid)
	}
	return who
}

// run looks for a command that runs as the program's user.
func (s *survey) run(p path, words Command, g Program) {
	s.command(p, words, g)
	if asRoot(g) {
		s.executables(p, words, g, false)
	}
}

// command looks for a program as exec would.
func (s *survey) command(p path, words Command, g Program) {
	if len(words) == 0 {
		return
	}
	if _, err := find(words[0], g); err != nil && !errors.Is(err, exec.ErrDot) {
		s.warn(p, quoted(words[0])+err.Error())
	}
}

// find is the file that a command's first word stands for: a bare name is looked for in PATH, another is relative to the working
// directory. With an error, which continues a sentence that begins with the word, the file is the one that should be there, if any.
func find(name string, g Program) (string, error) {
	bare := !strings.Contains(name, "/")
	if search, own := g.Env["PATH"]; own && bare {
		for _, dir := range filepath.SplitList(search) {
			if at, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return at, nil
			}
		}
		return "", errors.New(" is not found in the PATH of env")
	}
	if !bare && !filepath.IsAbs(name) {
		name = filepath.Join(g.WorkingDir, name)
	}
	at, err := exec.LookPath(name)
	if !bare {
		at = name
	}
	if why, ok := errors.AsType[*exec.Error](err); ok && !errors.Is(err, exec.ErrDot) {
		err = fmt.Errorf(": %w", reason(why.Err))
	}
	return at, err
}

func account[T any](s *survey, p path, name string, lookup func(string) (T, error)) {
	if name == "" || s.dangers {
		return
	}
	if _, err := strconv.ParseUint(name, 10, 32); err == nil {
		return // a number needs no entry
	}
	if _, err := lookup(name); err != nil {
		s.warn(p, "there is no "+quoted(name))
	}
}

func (s *survey) directory(p path, name string) {
	switch info, err := os.Stat(name); {
	case err != nil:
		s.warn(p, quoted(name)+": "+reason(err).Error())
	case !info.IsDir():
		s.warn(p, quoted(name)+" is not a directory")
	}
}
