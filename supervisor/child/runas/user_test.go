package runas

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"understudy/supervisor/child/inside"
	"understudy/supervisor/testbed/must"
)

const passwd = `root:x:0:0:root:/root:/bin/bash
# comment:x:7:7::/:
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
redis:x:110:120::/var/lib/redis:/bin/sh
200:x:300:301:a name that looks like a number:/home/200:/bin/false
other:x:200:201::relative:/bin/zsh
broken:x:-1:0::/:/bin/sh
nobody4:x:4294967295:0::/:/bin/sh
short:x:1
`

const group = `root:x:0:
redis:x:120:
ssl-cert:x:115:postgres,redis
tls:x:116:redis
xredis:x:117:xredis,redisx
daemon:x:1:
web:x:33:
`

func known(t *testing.T) accounts {
	t.Helper()
	dir := t.TempDir()
	a := accounts{passwd: filepath.Join(dir, "passwd"), group: filepath.Join(dir, "group")}
	must.OK(t, errors.Join(os.WriteFile(a.passwd, []byte(passwd), 0o600), os.WriteFile(a.group, []byte(group), 0o600)))
	a.getent = func(_ context.Context, words ...string) (string, error) {
		switch strings.Join(words, " ") {
		case "passwd ldap", "passwd 5000":
			return "ldap:*:5000:5001:Some One:/home/ldap:/bin/bash\n", nil
		case "initgroups ldap":
			return "ldap                  5001 5002 5003\n", nil
		case "group remote":
			return "remote:*:5009:ldap\n", nil
		case "passwd down":
			return "", os.ErrDeadlineExceeded
		}
		return "", nil
	}
	return a
}

func TestUsersAndGroupsAreResolved(t *testing.T) {
	a := known(t)
	euid, egid := uint32(os.Geteuid()), uint32(os.Getegid())
	for _, c := range []struct {
		user, group string
		want        User
	}{
		{"redis", "", User{credential(110, 120, []uint32{120, 115, 116}, "redis"), "/var/lib/redis", "/bin/sh", true}},
		{"110", "", User{credential(110, 120, []uint32{120, 115, 116}, "redis"), "/var/lib/redis", "/bin/sh", true}},
		{"redis", "web", User{credential(110, 33, []uint32{33, 115, 116}, "redis"), "/var/lib/redis", "/bin/sh", true}},
		{"redis", "115", User{credential(110, 115, []uint32{115, 116}, "redis"), "/var/lib/redis", "/bin/sh", true}},
		{"redis", "4711", User{credential(110, 4711, []uint32{4711, 115, 116}, "redis"), "/var/lib/redis", "/bin/sh", true}},
		{"200", "", User{credential(300, 301, []uint32{301}, "200"), "/home/200", "/bin/false", true}},
		{"4242", "web", User{credential(4242, 33, []uint32{33}, "4242"), "", "", true}},
		{"", "web", User{credential(euid, 33, []uint32{33}, ""), "", "", false}},
		{"ldap", "", User{credential(5000, 5001, []uint32{5001, 5002, 5003}, "ldap"), "/home/ldap", "/bin/bash", true}},
		{"5000", "remote", User{credential(5000, 5009, []uint32{5009, 5001, 5002, 5003}, "ldap"), "/home/ldap", "/bin/bash", true}},
		{"", "", User{credential(euid, egid, []uint32{egid}, ""), "", "", false}},
	} {
		got, err := a.lookUp(t.Context(), c.user, c.group)
		if err != nil {
			t.Errorf("%s:%s: %v", c.user, c.group, err)
		} else if diff := cmp.Diff(c.want, *got, cmp.AllowUnexported(User{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s:%s: %s", c.user, c.group, diff)
		}
	}
}

func TestUserThatIsNotThereIsNamed(t *testing.T) {
	a := known(t)
	for _, c := range []struct {
		user, group, says string
		is                error
	}{
		{"reddis", "", `user "reddis" does not exist on this machine: create it or change user:`, errNoUser},
		{"redis", "wheel", `group "wheel" does not exist on this machine: create it or change group:`, errNoUser},
		{"4242", "", `user 4242 has no entry in /etc/passwd`, errNoUser},
		{"broken", "", `"-1" is not an id`, nil},
		{"nobody4", "", `"4294967295" is not an id`, nil},
		{"4294967296", "web", "does not exist", errNoUser},
		{"-2", "web", "does not exist", errNoUser},
		{"down", "", "look for down", os.ErrDeadlineExceeded},
	} {
		_, err := a.lookUp(t.Context(), c.user, c.group)
		if err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s:%s: %v", c.user, c.group, err)
		}
	}
}

// A user that is made while the supervisor runs is found, and one that is gone is not.
func TestUsersAreLookedUpAnew(t *testing.T) {
	a := known(t)
	if _, err := a.lookUp(t.Context(), "late", ""); !errors.Is(err, errNoUser) {
		t.Fatal(err)
	}
	must.OK(t, os.WriteFile(a.passwd, []byte("late:x:9:9::/:/bin/sh\n"), 0o600))
	if u, err := a.lookUp(t.Context(), "late", ""); err != nil || u.UID != 9 {
		t.Errorf("%+v %v", u, err)
	}
	if _, err := a.lookUp(t.Context(), "redis", ""); !errors.Is(err, errNoUser) {
		t.Error(err)
	}
}

func TestUserOfThisMachineIsFound(t *testing.T) {
	u, err := LookupUser(t.Context(), "root", "")
	if err != nil || u.UID != 0 || u.GID != 0 || u.Home == "" {
		t.Errorf("%+v %v", u, err)
	}
	if _, err := LookupUser(t.Context(), "no-such-user-here", ""); !errors.Is(err, errNoUser) {
		t.Error(err)
	}
	if _, err := LookupUser(t.Context(), "--version", ""); !errors.Is(err, errNoUser) {
		t.Error(err)
	}
}

func TestEnvironmentOfAUserIsThatOfALogin(t *testing.T) {
	base := []string{"A=1", "HOME=/root", "SHELL=/bin/bash", "USER=root", "LOGNAME=root", "HOMER=x"}
	for name, c := range map[string]struct {
		user User
		want []string
	}{
		"a person":       {User{inside.Credential{Name: "me"}, "/home/me", "/bin/zsh", true}, []string{"A=1", "HOMER=x", "LOGNAME=me", "USER=me", "HOME=/home/me", "SHELL=/bin/zsh"}},
		"a service":      {User{inside.Credential{Name: "d"}, "/nonexistent", "/usr/sbin/nologin", true}, []string{"A=1", "HOMER=x", "LOGNAME=d", "USER=d", "HOME=/nonexistent"}},
		"a number":       {User{inside.Credential{Name: "4242"}, "", "", true}, []string{"A=1", "HOMER=x", "LOGNAME=4242", "USER=4242", "HOME=/"}},
		"only its group": {User{}, base},
		"a false shell":  {User{inside.Credential{Name: "f"}, "rel", "/bin/false", true}, []string{"A=1", "HOMER=x", "LOGNAME=f", "USER=f", "HOME=/"}},
	} {
		if diff := cmp.Diff(c.want, c.user.Environ(base)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func credential(uid, gid uint32, groups []uint32, name string) inside.Credential {
	return inside.Credential{UID: uid, GID: gid, Groups: groups, Name: name}
}
