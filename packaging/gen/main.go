// Command gen writes what a package has besides the binary, from what the source says anyway: manual pages from the commands,
// the Debian changelog, and the licences of what the binary is made of.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("gen WHAT VERSION PATH: man into a folder; changelog; the copyright of a binary")
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	made := about{version: args[1], date: time.Unix(seconds, 0).UTC()}
	var text []byte
	switch path := args[2]; args[0] {
	case "man":
		return made.manual(path)
	case "changelog":
		text = made.changelog()
	case "copyright":
		text, err = copyright(path)
	default:
		err = fmt.Errorf("%q cannot be made", args[0])
	}
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	return err
}

// about is what all that is written says of itself.
type about struct {
	version string
	date    time.Time
}

// manual writes all manual pages.
func (a about) manual(dir string) error {
	for name, text := range a.commands() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// changelog is in Debian's form, which has one entry a version; what is new is in CHANGELOG.md beside it.
func (a about) changelog() []byte {
	return fmt.Appendf(nil, "understudy (%s) unstable; urgency=medium\n\n  * What is new is in CHANGELOG.md.\n\n -- %s  %s\n",
		a.version, os.Getenv("MAINTAINER"), a.date.Format(time.RFC1123Z))
}
