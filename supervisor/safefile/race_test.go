package safefile

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// With fs.protected_hardlinks=0 a user gives root's file a second name in their own directory, and takes that name away again while root
// opens it: root then holds a file that has one name. Root's test may link whatever that is set to.
func TestAFileWhoseSecondNameComesAndGoesIsNotOpened(t *testing.T) {
	s := newScene(t)
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			name := s.at("home/log")
			_ = os.Link(s.at("secret/shadow"), name)
			if i%2 == 0 { // it may go from another directory, too
				_ = os.Rename(name, s.at("home/logs/log"))
				name = s.at("home/logs/log")
			}
			_ = os.Remove(name)
			select {
			case <-over:
				return
			default:
			}
		}
	}()
	defer func() {
		close(over)
		<-done
	}()
	precious, err := os.Stat(s.at("secret/shadow"))
	must(t, err)
	d, name, err := DirOf(s.at("home/log"), Who{UID: service})
	must(t, err)
	defer d.Close()
	refused := 0
	for range 50_000 {
		f, err := d.Open(name, unix.O_RDONLY, 0)
		if err != nil {
			if !os.IsNotExist(err) {
				refused++
			}
			continue
		}
		info, err := f.Stat()
		must(t, err, f.Close())
		if os.SameFile(info, precious) {
			t.Fatalf("root opened its own file by a name that a user gave it")
		}
	}
	if refused == 0 {
		t.Error("the name was never there")
	}
}
