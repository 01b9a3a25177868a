package runas

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/supervisor/child/inside"
	"understudy/supervisor/safefile"
)

// errNoUser means that a user or a group does not exist on this machine.
var errNoUser = errors.New("no such user or group")

// User is the result of LookupUser.
type User struct {
	inside.Credential
	Home, Shell string // empty: unknown
	set         bool   // whether there is a user, not only a group
}

// Who is the user, for opening files on paths where they may write.
func (u *User) Who() safefile.Who { return safefile.Who{UID: u.UID} }

const getentPatience = 5 * time.Second

// accounts are the sources of users: files, because a static binary knows no other way, and for all other users (LDAP, sssd,
// the dynamic users of systemd) a program that knows them.
type accounts struct {
	passwd, group string
	getent        func(ctx context.Context, words ...string) (string, error)
}

// LookupUser resolves a user and a group, each a name or a number, as of now. Without a group it uses the user's own; without
// a user only the group changes. Supplementary groups are those in which /etc/group lists the user; for a user that only
// getent knows, getent lists them. Both have to exist.
func LookupUser(ctx context.Context, user, group string) (*User, error) {
	return accounts{"/etc/passwd", "/etc/group", getent}.lookUp(ctx, user, group)
}

func (a accounts) lookUp(ctx context.Context, user, group string) (*User, error) {
	u := &User{Credential: inside.Credential{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Name: user}}
	listed := true
	if user != "" {
		entry, inFile, err := a.find(ctx, a.passwd, "passwd", user, 7)
		if err != nil {
			return nil, err
		}
		if err := u.fill(user, entry); err != nil {
			return nil, err
		}
		listed = inFile || entry == nil
		if entry == nil && group == "" {
			return nil, fmt.Errorf("%w: user %s has no entry in /etc/passwd, which would name its group: create it or set group: too",
				errNoUser, user)
		}
	}
	if group != "" {
		entry, _, err := a.find(ctx, a.group, "group", group, 3)
		if err != nil {
			return nil, err
		}
		number := group
		if entry != nil {
			number = entry[2]
		}
		u.GID, err = id(number)
		if err != nil {
			return nil, fmt.Errorf("group %s: %w", group, err)
		}
	}
	u.Groups = []uint32{u.GID}
	if !u.set {
		return u, nil
	}
	more, err := a.memberships(ctx, u.Name, listed)
	if err != nil {
		return nil, fmt.Errorf("groups of user %s: %w", u.Name, err)
	}
	for _, g := range more {
		if !slices.Contains(u.Groups, g) {
			u.Groups = append(u.Groups, g)
		}
	}
	return u, nil
}

// fill copies an entry of passwd; a number may have none.
func (u *User) fill(user string, entry []string) (err error) {
	u.set = true
	if entry == nil {
		u.UID, err = id(user)
		return err
	}
	u.Name, u.Home, u.Shell = entry[0], entry[5], entry[6]
	u.UID, err = id(entry[2])
	if err == nil {
		u.GID, err = id(entry[3])
	}
	if err != nil {
		return fmt.Errorf("user %s: %w", user, err)
	}
	return nil
}

// find looks for a line of passwd or group by its name or its number. A number that has none is no error.
func (a accounts) find(ctx context.Context, file, table, who string, width int) (entry []string, inFile bool, err error) {
	raw, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, false, fmt.Errorf("look for %s: %w", who, err)
	}
	if entry := lineOf(string(raw), who, width); entry != nil {
		return entry, true, nil
	}
	line, err := a.getent(ctx, table, who)
	if err != nil {
		return nil, false, fmt.Errorf("look for %s: %w", who, err)
	}
	if entry := lineOf(line, who, width); entry != nil {
		return entry, false, nil
	}
	if _, err := id(who); err == nil {
		return nil, false, nil
	}
	what := map[string]string{"passwd": "user", "group": "group"}[table]
	return nil, false, fmt.Errorf("%w: %s %q does not exist on this machine: create it or change %s", errNoUser, what, who, what+":")
}

// lineOf finds the line of a name; if there is none, that of a number.
func lineOf(text, who string, width int) (byNumber []string) {
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimRight(line, "\r\n"), ":")
		if len(fields) < width || strings.HasPrefix(line, "#") {
			continue
		}
		if fields[0] == who {
			return fields
		}
		if fields[2] == who && byNumber == nil {
			byNumber = fields
		}
	}
	return byNumber
}

func (a accounts) memberships(ctx context.Context, name string, listed bool) (groups []uint32, err error) {
	if !listed {
		line, err := a.getent(ctx, "initgroups", name)
		if err != nil {
			return nil, err
		}
		for i, field := range strings.Fields(line) {
			if g, err := id(field); i > 0 && err == nil {
				groups = append(groups, g)
			}
		}
		return groups, nil
	}
	raw, err := os.ReadFile(a.group)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) < 4 || !slices.Contains(strings.Split(fields[3], ","), name) {
			continue
		}
		if g, err := id(fields[2]); err == nil {
			groups = append(groups, g)
		}
	}
	return groups, nil
}

// id reads a uid or gid. The highest number means nobody to the kernel.
func id(number string) (uint32, error) {
	n, err := strconv.ParseUint(number, 10, 32)
	if err == nil && n == 1<<32-1 {
		err = strconv.ErrRange
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not an id: %w", number, err)
	}
	return uint32(n), nil
}

// getent asks the machine's own databases. Without that program it finds nothing.
func getent(ctx context.Context, words ...string) (string, error) {
	if strings.HasPrefix(words[len(words)-1], "-") {
		return "", nil // an option is no name
	}
	ctx, cancel := context.WithTimeout(ctx, getentPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "getent", words...)
	cmd.WaitDelay = time.Second
	cmd.Env = Environ()
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("getent %s does not answer: %w", strings.Join(words, " "), context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound), errors.As(err, &exit):
		return "", nil // it is not there, or knows nobody of that name
	case err != nil:
		return "", fmt.Errorf("getent: %w", err)
	}
	return string(out), nil
}

// Environ adds HOME, USER, LOGNAME and SHELL to env, as systemd sets them for a service of this user: it ignores a shell that
// lets nobody in. The service's own settings come after it.
func (u *User) Environ(env []string) []string {
	if !u.set {
		return env
	}
	own := []string{"LOGNAME=" + u.Name, "USER=" + u.Name}
	if path.IsAbs(u.Home) {
		own = append(own, "HOME="+u.Home)
	} else {
		own = append(own, "HOME=/")
	}
	if shell := path.Base(u.Shell); path.IsAbs(u.Shell) && shell != "nologin" && shell != "false" {
		own = append(own, "SHELL="+u.Shell)
	}
	kept := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"HOME", "USER", "LOGNAME", "SHELL"}, name)
	})
	return append(kept, own...)
}
