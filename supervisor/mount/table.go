package mount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// entry is a line of mountinfo.
type entry struct{ number, source, directory string }

// parse reads a table of mounts. One that has a line which it does not understand says nothing.
func parse(text string) (all []entry, err error) {
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		fields, of := strings.Split(before, " "), strings.Split(after, " ")
		if !ok || len(fields) < 6 || len(of) < 3 {
			return nil, fmt.Errorf("the table of mounts has a line %q", line)
		}
		source, bad := unescape(of[1])
		directory, worse := unescape(fields[4])
		if err := errors.Join(bad, worse); err != nil {
			return nil, fmt.Errorf("the table of mounts has a line %q: %w", line, err)
		}
		all = append(all, entry{fields[2], source, directory})
	}
	if len(all) == 0 {
		return nil, errors.New("the table of mounts is empty")
	}
	return all, nil
}

// unescape reads \040 for a space, as Go does in a string.
func unescape(word string) (string, error) {
	return strconv.Unquote(`"` + strings.ReplaceAll(word, `"`, `\"`) + `"`)
}

// table is that of a process.
func table(proc string) ([]entry, error) {
	text, err := os.ReadFile(filepath.Join(proc, "mountinfo"))
	if err != nil {
		return nil, err
	}
	return parse(string(text))
}

// blockDevice is the number of a block device, as a table has it; "": it is none.
func blockDevice(path string) (number string, err error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return "", err
	}
	return fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev)), nil
}

// look finds what is mounted on the directory: from the device, and from others. An error: it is not known.
func (m Mount) look() (here, others []entry, err error) {
	all, err := table("/proc/self")
	if err != nil {
		return nil, nil, err
	}
	return m.sort(all)
}

func (m Mount) sort(all []entry) (here, others []entry, err error) {
	for _, e := range all {
		if e.directory != m.Directory {
			continue
		}
		ours := e.source == m.Device
		if !ours && m.local() { // it may have another name
			device, err := blockDevice(m.Device)
			if err != nil {
				return nil, nil, fmt.Errorf("not known whether %s, which is mounted on %s, is %s: %w", e.source, m.Directory, m.Device, err)
			}
			source, _ := blockDevice(e.source) // btrfs has a number of its own
			ours = device != "" && (e.number == device || source == device)
		}
		if ours {
			here = append(here, e)
		} else {
			others = append(others, e)
		}
	}
	return here, others, nil
}
