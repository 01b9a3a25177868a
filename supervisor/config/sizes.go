package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"understudy/supervisor/printable"
)

// Size is a number of bytes, written as 50MiB.
type Size int64

// String is the size in the largest unit that gives a whole number.
func (s Size) String() string { return sizeText(uint64(s)) }

func sizeText(bytes uint64) string {
	for _, unit := range printable.SizeUnits {
		if strings.HasSuffix(unit.Name, "iB") && bytes > 0 && bytes%unit.Bytes == 0 {
			return strconv.FormatUint(bytes/unit.Bytes, 10) + unit.Name
		}
	}
	return strconv.FormatUint(bytes, 10)
}

// MarshalText writes what UnmarshalText reads.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads 1048576, 1024KiB and 1MiB. 1MB is 1000000.
func (s *Size) UnmarshalText(text []byte) error {
	bytes, err := parseSize(string(text))
	if err != nil {
		return err
	}
	if bytes > math.MaxInt64 {
		return fmt.Errorf("%s %w", quoted(string(text)), errTooLarge)
	}
	*s = Size(bytes)
	return nil
}

var errTooLarge = errors.New("is more than can be counted")

func parseSize(text string) (uint64, error) {
	bytes, fits, err := printable.ParseSize(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s is not a size such as 512KiB, 50MiB, 1GiB or a number of bytes%s", quoted(text), binaryUnit(text))
	case !fits:
		return 0, fmt.Errorf("%s %w", quoted(text), errTooLarge)
	}
	return bytes, nil
}

// binaryUnit is the hint for those who write 50M or 50mib.
func binaryUnit(text string) string {
	digits := strings.TrimRight(text, "KMGTkmgtiIbB ")
	unit := strings.ToUpper(strings.TrimLeft(text[len(digits):], " "))
	if _, err := strconv.ParseUint(digits, 10, 64); err != nil || unit == "" || strings.IndexByte("KMGT", unit[0]) < 0 {
		return ""
	}
	return ` (did you mean "` + digits + unit[:1] + `iB"?)`
}

// Unlimited is a Limit's value that nothing exceeds.
const Unlimited = uint64(unix.RLIM_INFINITY)

// Limit bounds a resource; the soft value holds, and a process may raise it to the hard one. Percent: it is a share of a processor.
type Limit struct {
	Soft, Hard uint64
	Percent    bool
}

// together are the limits of all processes of a program, by its cgroup. So is a cpu that is a percentage.
var together = []string{"memory", "tasks"}

// Bounds are the limits of all its processes together, by name.
func (g Program) Bounds() map[string]uint64 {
	all := map[string]uint64{}
	for name, l := range g.Limits {
		if (l.Percent || slices.Contains(together, name)) && l.Hard != Unlimited {
			all[name] = l.Hard
		}
	}
	return all
}

// ProcessLimits are those of each process.
func (g Program) ProcessLimits() map[string]Limit {
	all := maps.Clone(g.Limits)
	maps.DeleteFunc(all, func(name string, l Limit) bool { return l.Percent || slices.Contains(together, name) })
	return all
}

// limits are the resources by the names that a file uses; child knows their numbers.
var limits = []string{
	"as", "core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio",
	"rttime", "sigpending", "stack",
}

// leastLimits are so small that no program starts with less.
var leastLimits = map[string]uint64{"as": 2 << 20, "memory": 1 << 20, "nofile": 4, "nproc": 1, "stack": 64 << 10}

// LimitNames lists the resources that can be limited.
func LimitNames() []string { return slices.Clone(limits) }

// limitValue is one side of a Limit as a file writes it.
type limitValue uint64

// MarshalText writes what UnmarshalText reads.
func (v limitValue) MarshalText() ([]byte, error) {
	if uint64(v) == Unlimited {
		return []byte("unlimited"), nil
	}
	return strconv.AppendUint(nil, uint64(v), 10), nil
}

// UnmarshalText reads a number, a size or unlimited.
func (v *limitValue) UnmarshalText(text []byte) error {
	word := string(text)
	if word == "unlimited" {
		*v = limitValue(Unlimited)
		return nil
	}
	n, err := parseSize(word)
	switch {
	case errors.Is(err, errTooLarge):
		return err
	case word == "infinity" || word == "-1":
		return fmt.Errorf("%s is not a limit (did you mean \"unlimited\"?)", quoted(word))
	case err != nil:
		return fmt.Errorf("%s is not a limit: write a number, a size such as 50MiB, or unlimited%s", quoted(word), binaryUnit(word))
	}
	*v = limitValue(n)
	return nil
}

// limitSides is a Limit that is written with both its sides.
type limitSides struct {
	Soft limitValue `yaml:"soft" doc:"The limit at the start."`
	Hard limitValue `yaml:"hard" doc:"How far the process may raise it."`
}
