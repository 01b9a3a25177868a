package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// copyright is in Debian's form: the licence of this project, and those of all that the binary has inside, which ask to be
// handed on with it.
func copyright(binary string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read what %s is made of: %w", binary, err)
	}
	var b bytes.Buffer
	b.WriteString("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: understudy\n\n" +
		"Files: *\nCopyright: the Understudy authors\nLicense: Apache-2.0\n" +
		" On Debian systems, the full text is in /usr/share/common-licenses/Apache-2.0.\n")
	goRoot, err := output("go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	if err := notice(&b, "the Go standard library and run time", goRoot); err != nil {
		return nil, err
	}
	for _, m := range info.Deps {
		dir, err := output("go", "list", "-m", "-f", "{{.Dir}}", m.Path)
		if err == nil {
			err = notice(&b, m.Path+" "+m.Version, dir)
		}
		if err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// isNotice tells whether a module's file says under which terms it is handed on.
func isNotice(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasPrefix(name, "LICENSE") || strings.HasPrefix(name, "COPYING") || strings.HasPrefix(name, "NOTICE")
}

// notice adds the licence files of a module.
func notice(b *bytes.Buffer, what, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !isNotice(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		found = true
		if bytes.Contains(text, []byte("Version 2.0, January 2004")) && bytes.Contains(text, []byte("Apache License")) {
			fmt.Fprintf(b, "\nComment: %s is part of the program, under the Apache License 2.0 too.\n", what)
			continue
		}
		fmt.Fprintf(b, "\nComment: %s is part of the program, under these terms (%s):\n", what, e.Name())
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimRight(line, " \t\r\n\f"); line == "" {
				line = "."
			}
			fmt.Fprintf(b, " %s\n", line)
		}
	}
	if !found {
		return fmt.Errorf("%s comes without a licence", what)
	}
	return nil
}

func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
