package printable

import (
	"math"
	"strconv"
	"strings"
)

// SizeUnits are those of ParseSize, in the order in which the largest is looked for that fits.
var SizeUnits = []struct {
	Name  string
	Bytes uint64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6},
	{"kB", 1e3}, {"KB", 1e3}, {"B", 1}}

// ParseSize reads 1048576, 1024KiB and 1MiB. 1MB is 1000000. fits is false for a size that is more than can be counted.
func ParseSize(text string) (bytes uint64, fits bool, err error) {
	number, unit := text, uint64(1)
	for _, u := range SizeUnits {
		if rest, ok := strings.CutSuffix(text, u.Name); ok {
			number, unit = strings.TrimRight(rest, " "), u.Bytes
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || n > math.MaxUint64/unit {
		return 0, false, err
	}
	return n * unit, true, nil
}
