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
	"sync/atomic"

	"understudy/supervisor/child/notify"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/wait"
)

// Notes is where one service's pending undos are kept for the next supervisor: where a boot of the machine loses them, or where they last.
// Load says fs.ErrNotExist if there are none, and Save(nil, false) removes them. Lock excludes other processes that undo them. Try is why
// nothing could be saved. None of them waits for a file system that hangs for longer than wait.Reached does.
type Notes interface {
	Path() string
	Try(lasting bool) error
	Lock(ctx context.Context) (unlock func(), err error)
	Load() ([]byte, error)
	Save(data []byte, lasting bool) error
}

// undosFolder is emptied when the machine boots: an address is gone then, too. We run the commands that we read there. So a folder that
// another user made is refused: where /run is open to all, as in some containers, they can make it before us, and swap it at any time.
func undosFolder() string { return cmp.Or(undosDir, notify.DefaultDir()) }

// LastingFolder is for what survives a boot. It is judged in the same way.
func LastingFolder() string {
	switch run := undosFolder(); {
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

var undosDir, lastingDir string // tests set them

// files are a service's pending undos in one of two files.
type files struct {
	*keyfile.Store // in undosFolder
	lasting        *keyfile.Store
	none           atomic.Bool                   // it is known that there is no lasting one
	at             atomic.Pointer[keyfile.Store] // the one that counts, as far as that is known
	probes         [2]*keyfile.Store             // beside both
}

// undosFile is a name that no other node or service has. It is a hash: names may hold any separator, and may be long.
func undosFile(c Config) Notes {
	if c.Notes != nil {
		return c.Notes
	}
	name := undosName(c.Node, c.Service) + "." + c.Cluster + ".undo"
	in := func(name string) (now, lasting *keyfile.Store) {
		return &keyfile.Store{Dir: undosFolder(), Name: name}, &keyfile.Store{Dir: LastingFolder(), Name: name, Durable: true}
	}
	f := &files{}
	f.Store, f.lasting = in(name)
	f.probes[0], f.probes[1] = in(name + ".try")
	f.at.Store(f.Store)
	return f
}

func undosName(node, service string) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s", node, service)
	return strconv.FormatUint(h.Sum64(), 36)
}

// Path implements Notes.
func (f *files) Path() string { return f.at.Load().Path() }

// Load implements Notes. The lasting file lists all: there is another one only if we were killed after it was written.
func (f *files) Load() ([]byte, error) {
	data, err := f.lasting.Load()
	f.none.Store(errors.Is(err, fs.ErrNotExist))
	f.at.Store(f.lasting)
	if f.none.Load() || foreign(err) {
		f.at.Store(f.Store)
		return f.Store.Load()
	}
	return data, err
}

// Save implements Notes. The other disk is not touched where nothing is known to be on it: it may hang.
func (f *files) Save(data []byte, lasting bool) error {
	if !lasting {
		err := f.Store.Save(data)
		if err == nil && !f.none.Load() {
			err = drop(f.lasting)
			f.none.Store(err == nil)
		}
		f.at.Store(f.Store)
		return err
	}
	f.none.Store(false)
	f.at.Store(f.lasting)
	if err := f.lasting.Save(data); err != nil {
		return err
	}
	return drop(f.Store)
}

// drop removes a file, if it is there.
func drop(s *keyfile.Store) error {
	if there, err := s.There(); err != nil || !there {
		return err
	}
	return s.Save(nil)
}

// Try implements Notes.
func (f *files) Try(lasting bool) error {
	probe := f.probes[0]
	if lasting {
		probe = f.probes[1]
	}
	if err := probe.Save([]byte{'\n'}); err != nil {
		return err
	}
	return probe.Save(nil)
}

// foreign reports whether a file cannot be read for its folder: nothing in that is ours.
func foreign(err error) bool {
	_, is := errors.AsType[*keyfile.FolderError](err)
	return is
}

// reach is for what no store does.
var reach wait.Reach

// noted are the files of pending undos of this machine.
func noted(pattern string) (all []undoFile, broken bool) {
	for _, dir := range []string{undosFolder(), LastingFolder()} {
		in, err := wait.Reached(context.Background(), &reach, func() (notedIn, error) { return readNoted(dir, pattern), nil }, nil)
		all, broken = append(all, in.files...), broken || in.broken || err != nil
	}
	return all, broken
}

type notedIn struct {
	files  []undoFile
	broken bool // some cannot be read
}

func readNoted(dir, pattern string) (in notedIn) {
	folder, err := keyfile.Folder(dir, false)
	if err != nil {
		in.broken = !foreign(err)
		return in
	}
	defer folder.Close()
	names, err := matching(folder, pattern)
	in.broken = err != nil
	for _, name := range names {
		var left undoFile
		data, err := keyfile.ReadIn(folder, name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it is undone by now
		case err == nil && json.Unmarshal(data, &left) == nil:
			in.files = append(in.files, left)
		default:
			in.broken = true
		}
	}
	return in
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

func (l undoFile) save(store Notes) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return store.Save(data, l.Lasting > 0)
}
