package unit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"understudy/supervisor/child/notify"
	"understudy/supervisor/keyfile"
)

// Notes is where one service's debts are kept for the next supervisor: where a boot of the machine loses them, or where they last. Load says
// fs.ErrNotExist if there are none, and Save(nil, false) removes them. Lock excludes other processes that undo them.
type Notes interface {
	Path() string
	Lock(ctx context.Context) (unlock func(), err error)
	Load() ([]byte, error)
	Save(data []byte, lasting bool) error
}

// debtsFolder is emptied when the machine boots: an address is gone then, too. We run the commands that we read there. So a folder that another
// user made is refused: where /run is open to all, as in some containers, they can make it before us, and swap it at any time.
func debtsFolder() string { return cmp.Or(debtsDir, notify.DefaultDir()) }

// LastingFolder is for what survives a boot. It is judged in the same way.
func LastingFolder() string {
	switch run := debtsFolder(); {
	case lastingDir != "":
		return lastingDir
	case run == os.Getenv(keyfile.RunVariable):
		return filepath.Join(run, "lasting")
	case os.Geteuid() == 0:
		return "/var/lib/understudy"
	}
	home, _ := os.UserHomeDir() // "": then nothing can be noted there, and nothing is done
	return filepath.Join(home, ".local", "state", "understudy")
}

var debtsDir, lastingDir string // tests set them

// files are a service's debts in one of two files.
type files struct {
	*keyfile.Store // in debtsFolder
	lasting        *keyfile.Store
}

// debtsFile is a name that no other node or service has. It is a hash: names may hold any separator, and may be long.
func debtsFile(c Config) Notes {
	if c.Notes != nil {
		return c.Notes
	}
	name := debtsName(c.Node, c.Service) + "." + c.Cluster + ".undo"
	return &files{&keyfile.Store{Dir: debtsFolder(), Name: name}, &keyfile.Store{Dir: LastingFolder(), Name: name, Durable: true}}
}

func debtsName(node, service string) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s", node, service)
	return strconv.FormatUint(h.Sum64(), 36)
}

// Path implements Notes.
func (f *files) Path() string {
	if there(f.lasting) && trusted(f.lasting.Dir) {
		return f.lasting.Path()
	}
	return f.Store.Path()
}

// Load implements Notes. The lasting file lists all: there is another one only if we were killed after it was written.
func (f *files) Load() ([]byte, error) {
	data, err := f.lasting.Load()
	if errors.Is(err, fs.ErrNotExist) || err != nil && !errors.Is(err, keyfile.ErrNoAnswer) && !trusted(f.lasting.Dir) {
		return f.Store.Load()
	}
	return data, err
}

// Save implements Notes.
func (f *files) Save(data []byte, lasting bool) error {
	now, other := f.Store, f.lasting
	if lasting {
		now, other = other, now
	}
	if err := now.Save(data); err != nil || !there(other) {
		return err
	}
	return other.Save(nil)
}

func there(s *keyfile.Store) bool {
	_, err := os.Lstat(s.Path())
	return err == nil
}

func trusted(dir string) bool {
	folder, err := keyfile.Folder(dir, false)
	if err == nil {
		_ = folder.Close()
	}
	return err == nil
}

// noted are the files of debts of this machine.
func noted(pattern string) (all []debtFile, broken bool) {
	for _, dir := range []string{debtsFolder(), LastingFolder()} {
		folder, err := keyfile.Folder(dir, false)
		if err != nil {
			continue
		}
		files, err := matching(folder, pattern)
		broken = broken || err != nil
		for _, file := range files {
			var left debtFile
			data, err := keyfile.ReadIn(folder, file)
			switch {
			case errors.Is(err, fs.ErrNotExist): // it is undone by now
			case err == nil && json.Unmarshal(data, &left) == nil:
				all = append(all, left)
			default:
				broken = true
			}
		}
		_ = folder.Close()
	}
	return all, broken
}

// matching are the names of a folder's files that match. fs.Glob would sort all, and each service has some and asks.
func matching(folder *os.Root, pattern string) (names []string, err error) {
	all, err := folder.Open(".")
	if err != nil {
		return nil, err
	}
	defer all.Close()
	names, err = all.Readdirnames(-1)
	return slices.DeleteFunc(names, func(name string) bool {
		match, _ := filepath.Match(pattern, name) // a bad pattern is the only error
		return !match
	}), err
}

func (l debtFile) save(store Notes) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return store.Save(data, l.Lasting > 0)
}
