package child

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

// answerMarks is the stand-in of the guardians of these tests: who gives a mark learns whether its tree was seen dead.
func answerMarks(note []byte, seenDead func(box.TreeID) bool) (func(context.Context, net.Conn), error) {
	return func(_ context.Context, conn net.Conn) {
		defer conn.Close()
		mark, _ := bufio.NewReader(conn).ReadString('\n')
		fmt.Fprintf(conn, "%s %d %v\n", note, os.Getpid(), seenDead(box.TreeID{Mark: strings.TrimSpace(mark)}))
	}, nil
}

// inquire asks whoever answers at an address about a tree.
func inquire(t *testing.T, addr, mark string) (note string, by int, dead bool) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, patience)
	must.OK(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintln(conn, mark); err != nil {
		t.Fatal(err)
	}
	text, err := bufio.NewReader(conn).ReadString('\n')
	if n, _ := fmt.Sscan(text, &note, &by, &dead); n != 3 {
		t.Fatalf("answered %q, %v", text, err)
	}
	return note, by, dead
}

// Guardians answer for a supervisor that does not, each new one too; and vouch for a tree only once its lease has ended and
// they have seen it dead.
func TestGuardiansAnswerAtASharedListener(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{box.KindPidNS, box.KindWalk} {
		t.Run(kind, func(t *testing.T) {
			needKind(t, kind)
			t.Parallel()
			p := newPuppet(t, kind)
			p.do(command{Do: "begin", Epoch: 1})
			p.do(command{Do: "extend", Epoch: 1, In: time.Minute})
			unused := p.do(command{Do: "tree", Epoch: 1, Name: "b"}).ID // nothing is alive in it, but something could be started
			p.do(command{Do: "begin", Epoch: 2})
			end := p.do(command{Do: "extend", Epoch: 2, In: 6 * time.Second}).At
			id := p.do(command{Do: "tree", Epoch: 2, Name: "a"}).ID
			p.do(command{Do: "start", Name: "a", Script: stubborn})
			p.ready()
			old := p.do(command{Do: "share", Name: "old"}).ID.Name
			addr := p.do(command{Do: "share", Name: "new"}).ID.Name

			note, by, dead := inquire(t, addr, id.Mark)
			if note != "new" || dead && wire.Now() < end {
				t.Errorf("%s says dead: %v", note, dead)
			}
			if conn, err := net.DialTimeout("tcp", old, patience); err == nil { // nobody accepts there
				_ = conn.SetDeadline(time.Now().Add(3 * 100 * time.Millisecond))
				_, _ = fmt.Fprintln(conn, id.Mark)
				if n, _ := conn.Read(make([]byte, 1)); n > 0 {
					t.Error("the previous listener is still answered at")
				}
				conn.Close()
			}
			for i := range 2 { // both are replaced, one after the other
				kill9(by)
				awaitDeath(t, by)
				p.do(command{Do: "tree", Epoch: 1, Name: fmt.Sprint(i)}) // which takes both guardians
				p.guardians()
				if note, by, _ = inquire(t, addr, id.Mark); note != "new" {
					t.Errorf("%s answers", note)
				}
			}
			p.lives()
			freeze(t, p.cmd.Process.Pid)
			p.dead()
			for begun := wire.Now(); !dead && wire.Now() < begun+5*time.Second; { // the guardian looks again within milliseconds
				_, _, dead = inquire(t, addr, id.Mark)
			}
			if !dead {
				t.Error("what was seen dead is not vouched for")
			}
			for _, mark := range []string{unused.Mark, "us-0000000000", ""} {
				if _, _, dead := inquire(t, addr, mark); dead {
					t.Errorf("%q is called dead", mark)
				}
			}
		})
	}
}
