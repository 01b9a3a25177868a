package config

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"understudy/supervisor/config/unitfile"
	shown "understudy/supervisor/printable"
	"understudy/supervisor/safefile"
)

func (s *machineCheck) program(p path, process Process) {
	g := process.Program
	s.run(p.key("command"), g.Command, g)
	s.alone(p.key("command"), process)
	s.inline(p.key("env"), g.Env)
	if !s.dangers && !known(g.User, user.Lookup) {
		s.warn(p.key("user"), "there is no "+quoted(g.User))
	}
	_, missing := user.LookupId(g.User)
	if _, unknown := errors.AsType[user.UnknownUserIdError](missing); unknown && !s.dangers {
		s.warn(p.key("user"), "no user has the number "+g.User+", so HOME is /")
	}
	if !s.dangers && !known(g.Group, user.LookupGroup) {
		s.warn(p.key("group"), "there is no "+quoted(g.Group))
	}
	if os.Geteuid() != 0 {
		if account, err := user.Lookup(g.User); err == nil && account.Uid != strconv.Itoa(os.Geteuid()) {
			s.warn(p.key("user"), "only a supervisor that runs as root can run a program as "+quoted(g.User))
		}
		if g.Caps.Bounding != nil {
			s.warn(p.key("capabilities").key("bounding"),
				"only a supervisor that runs as root can lower it: run it as root, or leave the key out")
		}
		if len(g.Caps.Ambient) > 0 && g.User != "" {
			s.warn(p.key("capabilities").key("ambient"),
				"only a supervisor that runs as root can give them to another user: run it as root, or leave the key out")
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

// alone warns of what starts a second copy: a unit of systemd that has the same program, and a daemon that goes to the background
// where it should keep running.
func (s *machineCheck) alone(p path, process Process) {
	g := process.Program
	if len(g.Command) == 0 {
		return
	}
	if stays := unitfile.Foreground(g.Command); !process.Oneshot && !slices.Equal(stays, g.Command) {
		s.found = append(s.found, found{keys: []path{p}, danger: true, message: fmt.Sprintf(
			"%s may go to the background, where it counts as ended, or keep signals from its program. In the foreground it is: %s",
			quoted(g.Command[0]), shellWords(stays))})
	}
	if unitfile.Asks(g.Command) && !process.Oneshot {
		s.found = append(s.found, found{keys: []path{p}, danger: true, message: fmt.Sprintf(
			"%s has another program run what it names, which then runs on when this service stops or moves: "+
				"write the command of the program itself", quoted(g.Command[0]))})
	}
	if unitfile.Leaves(g.Command) && !process.Oneshot {
		s.danger(p, "its shell ends while what & starts runs on, and counts as ended: leave the & out")
	}
	if len(g.Command) > 1 && filepath.Base(g.Command[0]) == "understudy" && g.Command[1] == "run" {
		s.danger(p, "is a supervisor in a supervisor: write the command of its program")
	}
	for _, program := range unitfile.Programs(g.Command) {
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
		text = append(text, shown.Word(word))
	}
	return strings.Join(text, " ")
}

// logFile warns of a log file that the supervisor would refuse: the program would run, and its lines would be lost.
func (s *machineCheck) logFile(p path, g Program) {
	if s.dangers {
		return
	}
	f, err := safefile.Open(g.Log.File, whose(g))
	if refused, ok := errors.AsType[*safefile.Refused](err); ok {
		s.warn(p, refused.Error())
	} else if info, err := os.Stat(g.Log.File); err == nil && info.IsDir() {
		s.warn(p, quoted(g.Log.File)+" is a directory: name a file in it")
	} else if err == nil {
		if noLog.MatchString(g.Log.File) || bytes.IndexByte(beginning(f), 0) > 0 { // at 0 it is a hole, of a log that was cut
			s.warn(p, quoted(g.Log.File)+" looks like no log, and the program's output would be added to it: name another file")
		}
		_ = f.Close()
	}
}

// noLog is a file that other programs read.
var noLog = regexp.MustCompile(`\.(conf|cfg|ini|ya?ml|db|sqlite3?|sh|py)$`)

// beginning is what a file begins with.
func beginning(f *os.File) []byte {
	head := make([]byte, 256)
	n, _ := f.Read(head)
	return head[:n]
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
func (s *machineCheck) run(p path, words Command, g Program) {
	s.command(p, words, g)
	if asRoot(g) {
		s.executables(p, words, g, false)
	}
}

// command looks for a program as exec would.
func (s *machineCheck) command(p path, words Command, g Program) {
	if len(words) == 0 {
		return
	}
	if err := runnable(words[0], g); err != nil && !errors.Is(err, exec.ErrDot) {
		s.warn(p, quoted(words[0])+err.Error()+mistaken(words[0]))
	}
}

// mistaken continues the error of a word that is no program's name, and gives what was meant where that is plain.
func mistaken(word string) string {
	switch {
	case assignment.MatchString(word):
		return ": set a variable in env, not before the program"
	case strings.Contains(word, " "):
		return ": all of it is taken for the program's name. Write each word as an item of the list"
	}
	return ""
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
		name, _ = filepath.Abs(filepath.Join(g.WorkingDir, name)) // else ./prog would become a bare name
	}
	at, err := exec.LookPath(name)
	if !bare {
		at = name
	}
	if errors.Is(err, exec.ErrNotFound) {
		err = errors.New(" is not in PATH")
	} else if why, ok := errors.AsType[*exec.Error](err); ok && !errors.Is(err, exec.ErrDot) {
		err = fmt.Errorf(": %w", reason(why.Err))
		if info, stat := os.Stat(at); errors.Is(why.Err, fs.ErrPermission) && stat == nil && info.Mode()&0o111 == 0 {
			err = fmt.Errorf("%w: it is not executable (chmod +x makes it so)", err)
		}
	}
	return at, err
}

// runnable is why the kernel would not run a command's first word, as an error of find's.
func runnable(name string, g Program) error {
	at, err := find(name, g)
	if err == nil {
		err = interpreted(at)
	}
	return err
}

// interpreted is why the kernel would not run a script, which it says in the words of a file that is missing.
func interpreted(file string) error {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil // it may be run without being read
	}
	defer f.Close()
	head := beginning(f)
	line, script := strings.CutPrefix(string(head), "#!")
	line, _, _ = strings.Cut(line, "\n")
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return errors.New(": is empty")
	}
	if machine := otherMachine(head); machine != "" {
		return errors.New(": is a program for another processor (" + machine + ")")
	}
	if !script && len(head) > 4 && bytes.IndexFunc(head, noText) < 0 && !bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return errors.New(": is a text that names no interpreter: let its first line be #!/bin/sh, or another one")
	}
	if words := strings.Fields(line); !script || len(words) == 0 {
		return nil
	} else if strings.HasSuffix(line, "\r") {
		return fmt.Errorf(": its lines end as on Windows, so the kernel looks for %q: sed -i 's/\\r$//' %s", words[0]+"\r", file)
	} else if _, err := os.Stat(words[0]); err != nil {
		return fmt.Errorf(": its interpreter %s: %w", words[0], reason(err))
	}
	return nil
}

// otherMachine is the processor that a binary is for, where this kernel runs those of its own alone; "": it may run here, or that is not
// known.
func otherMachine(head []byte) string {
	const machine = 18 // where it is in the file
	runs := map[string][]elf.Machine{"amd64": {elf.EM_X86_64, elf.EM_386}, "arm64": {elf.EM_AARCH64, elf.EM_ARM}}[runtime.GOARCH]
	if !bytes.HasPrefix(head, []byte(elf.ELFMAG)) || len(head) < machine+2 || runs == nil {
		return ""
	}
	of := elf.Machine(binary.LittleEndian.Uint16(head[machine:]))
	emulated, err := filepath.Glob("/proc/sys/fs/binfmt_misc/*-*") // qemu-aarch64 and the like
	if slices.Contains(runs, of) || len(emulated) > 0 || err != nil {
		return ""
	}
	return of.String()
}

// noText is a character that a binary has, and a script has not.
func noText(r rune) bool { return r == utf8.RuneError || r < ' ' && !unicode.IsSpace(r) }

func (s *machineCheck) directory(p path, name string) {
	switch info, err := os.Stat(name); {
	case err != nil:
		s.warn(p, quoted(name)+": "+reason(err).Error())
	case !info.IsDir():
		s.warn(p, quoted(name)+" is not a directory")
	}
}
