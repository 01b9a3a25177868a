package config

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Capability is one of the kernel's, by its number. It is written by its name, as in CAP_NET_BIND_SERVICE.
type Capability int

// capabilities are the names that there are, in the order of their numbers.
var capabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID",
	"CAP_SETPCAP", "CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_IPC_LOCK",
	"CAP_IPC_OWNER", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_CHROOT", "CAP_SYS_PTRACE", "CAP_SYS_PACCT", "CAP_SYS_ADMIN",
	"CAP_SYS_BOOT", "CAP_SYS_NICE", "CAP_SYS_RESOURCE", "CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_MKNOD", "CAP_LEASE",
	"CAP_AUDIT_WRITE", "CAP_AUDIT_CONTROL", "CAP_SETFCAP", "CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG", "CAP_WAKE_ALARM",
	"CAP_BLOCK_SUSPEND", "CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF", "CAP_CHECKPOINT_RESTORE",
}

func (c Capability) String() string {
	if c >= 0 && int(c) < len(capabilities) {
		return capabilities[c]
	}
	return strconv.Itoa(int(c))
}

// MarshalText writes what UnmarshalText reads.
func (c Capability) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads CAP_NET_BIND_SERVICE.
func (c *Capability) UnmarshalText(text []byte) error {
	word := string(text)
	if n := slices.Index(capabilities, word); n >= 0 {
		*c = Capability(n)
		return nil
	}
	if whole := "CAP_" + strings.ToUpper(word); slices.Contains(capabilities, whole) {
		word = whole
	}
	if i := slices.IndexFunc(capabilities, func(c string) bool { return strings.HasPrefix(c, word+"_") }); i >= 0 {
		word = capabilities[i]
	}
	return fmt.Errorf("%s is not a capability%s", quoted(string(text)),
		cmp.Or(DidYouMean(word, capabilities), ": capabilities(7) lists them"))
}

// Capabilities are what a program may do of what otherwise only root may. Bounding nil: as the supervisor; empty: none.
type Capabilities struct {
	Bounding *[]Capability `yaml:"bounding,flow,omitempty" doc:"The most that the program and everything it starts can ever have, root or not. [] means none. Requires a supervisor that runs as root."`
	Ambient  []Capability  `yaml:"ambient,flow,omitempty" doc:"What the program has without being root, such as CAP_NET_BIND_SERVICE for ports below 1024. bounding, if given, must contain them."`
}

func (c Capabilities) check(p place) {
	if c.Bounding == nil {
		return
	}
	for i, one := range c.Ambient {
		if !slices.Contains(*c.Bounding, one) {
			p.key("ambient").item(i).and(p.key("bounding"), p).fault(
				"%s is not in bounding, so the program cannot have it: add it there, or leave it out here", one)
		}
	}
}

// CapabilityMask is a set of capabilities as the kernel writes it.
func CapabilityMask(set []Capability) (mask uint64) {
	for _, c := range set {
		mask |= 1 << c
	}
	return mask
}

// InheritEnv names what a program gets of the supervisor's environment. nil: all; empty: nothing. It is written as true, false, or
// a list of names.
type InheritEnv []string

// variables finds names that are given in place of a list of them.
var variables = regexp.MustCompile(`^[A-Z][A-Z0-9_]*([, ]+[A-Z][A-Z0-9_]*)*$`)

// inheritEnv reads true, false, or a list of names.
func (d *decoder) inheritEnv(at []spot, target *InheritEnv, p path) {
	n := follow(at[0].value)
	if n.Kind == yaml.SequenceNode {
		names := []string{}
		d.list(at[0], reflectOf(&names), p)
		*target = append(InheritEnv{}, names...)
		return
	}
	if variables.MatchString(n.Value) && DidYouMean(n.Value, []string{"true", "false"}) == "" {
		d.fault(n, p, "must be true, false or a list of names%s", listForm(n, reflect.TypeFor[string](), p))
		return
	}
	all := true
	d.value(at, reflectOf(&all), p)
	*target = nil
	if !all {
		*target = InheritEnv{}
	}
}

func (names InheritEnv) check(p place) {
	for i, name := range names {
		if !envName.MatchString(name) {
			p.item(i).fault("%s is not a name of a variable: letters, digits and _ are allowed, and no digit at the start", quoted(name))
		}
	}
}
