package kit

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"understudy/supervisor/testbed/apart"
)

// Program is a testing.TB for what outlives a single test, and for a program that is no test at all. A failure ends it
// with a panic. Close undoes what was set up with it.
type Program struct {
	testing.TB // nil: only what is defined here may be used

	mu     sync.Mutex // guards the fields below
	undo   []func()
	temps  int
	failed bool
	dir    string
}

// Helper does nothing.
func (p *Program) Helper() {}

// Name is the program's.
func (p *Program) Name() string { return filepath.Base(os.Args[0]) }

// Cleanup keeps f for Close.
func (p *Program) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.undo = append(p.undo, f)
}

// TempDir makes a folder that goes with the program.
func (p *Program) TempDir() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == "" {
		dir, err := os.MkdirTemp("", "understudy-e2e-")
		if err != nil {
			panic(err)
		}
		p.dir = dir
	}
	p.temps++
	dir := filepath.Join(p.dir, fmt.Sprint(p.temps))
	if err := os.Mkdir(dir, 0o755); err != nil {
		panic(err)
	}
	return dir
}

// Log writes to stderr, and so does Logf.
func (p *Program) Log(args ...any) { fmt.Fprintln(os.Stderr, args...) }

// Logf writes to stderr.
func (p *Program) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Failed tells whether anything failed.
func (p *Program) Failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

func (p *Program) fail(text string) {
	p.Log(text)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = true
}

// Error notes a failure, and so does Errorf.
func (p *Program) Error(args ...any) { p.fail(fmt.Sprint(args...)) }

// Errorf notes a failure.
func (p *Program) Errorf(format string, args ...any) { p.fail(fmt.Sprintf(format, args...)) }

// Fatal ends the program, and so do Fatalf and Skip.
func (p *Program) Fatal(args ...any) {
	p.Error(args...)
	panic("cannot go on")
}

// Fatalf ends the program.
func (p *Program) Fatalf(format string, args ...any) { p.Fatal(fmt.Sprintf(format, args...)) }

// Skip ends the program, and so does Skipf.
func (p *Program) Skip(args ...any) { p.Fatal(args...) }

// Skipf ends the program.
func (p *Program) Skipf(format string, args ...any) { p.Fatalf(format, args...) }

// Close undoes everything, the newest first.
func (p *Program) Close() {
	for {
		p.mu.Lock()
		n := len(p.undo)
		if n == 0 {
			p.mu.Unlock()
			break
		}
		f := p.undo[n-1]
		p.undo = p.undo[:n-1]
		p.mu.Unlock()
		f()
	}
	if p.dir != "" {
		os.RemoveAll(p.dir)
	}
}

// Run runs a package's tests, undoes what they share, and exits. With -short it leaves out the whole package.
func (p *Program) Run(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("skipped by -short: it takes real servers and hosts")
		os.Exit(0)
	}
	code := apart.Run(m)
	p.Close()
	RemoveBinaries()
	os.Exit(code)
}
