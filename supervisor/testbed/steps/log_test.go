package steps

import (
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"understudy/election/jute"
	"understudy/supervisor/testbed/must"
)

// header is a transaction's in a log.
type header struct {
	Session int64
	Cxid    int32
	Zxid    int64
	At      int64
	Type    int32
}

type created struct {
	Path      string
	Data      []byte
	ACL       []jute.ACL
	Ephemeral bool
	Children  int32
}

type part struct {
	Type int32
	Body []byte
}

func encoded(records ...jute.Record) []byte {
	return jute.Frame(records...)[4:] // without its length
}

// logged is a server's data directory with a log of these records, after which space was allocated.
func logged(t *testing.T, records ...[]byte) (dir string) {
	t.Helper()
	text := []byte("ZKLG\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00")
	for _, r := range records {
		text = binary.BigEndian.AppendUint64(text, uint64(adler32.Checksum(r)))
		text = append(append(binary.BigEndian.AppendUint32(text, uint32(len(r))), r...), 'B')
	}
	dir = t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(dir, "version-2"), 0o755))
	must.OK(t, os.WriteFile(filepath.Join(dir, "version-2", "log.1"), append(text, make([]byte, 100)...), 0o600))
	return dir
}

func TestLogsAreReadAsServersWriteThem(t *testing.T) {
	create := encoded(header{7, 1, 1, 1000, 1}, created{"/a", []byte("x"), jute.WorldACL(31), false, 1})
	multi := encoded(header{7, 2, 2, 1001, 14}, []part{
		{13, encoded(jute.PathVersion{Path: "/a", Version: 1})},
		{5, encoded(jute.SetData{Path: "/a", Data: []byte("y"), Version: 1})},
		{2, encoded("/b")},
	})
	failed := encoded(header{7, 3, 3, 1002, 14}, []part{{2, encoded("/a")}, {-1, encoded(int32(-101))}})
	refused := encoded(header{7, 4, 4, 1003, -1}, int32(-101))
	expired, closed := encoded(header{7, 0, 5, 1004, -11}), encoded(header{8, 9, 6, 1005, -11}, []string{"/e"})
	alone := encoded(header{7, 5, 7, 1006, 2}, "/a")
	all := [][]byte{create, multi, failed, refused, expired, closed}
	missed := encoded(header{7, 6, 1<<32 + 1, 1007, 2}, "/c")
	got, ends, err := Read(logged(t, append(all, alone)...), logged(t, append(all[1:], missed)...), logged(t, create))
	must.OK(t, err)
	if want := (Ends{0: {6, 7, 6}, 1: {0, 1<<32 + 1, 1<<32 + 1}}); !maps.EqualFunc(ends, want, slices.Equal) {
		t.Errorf("ends: %v, want %v", ends, want)
	}
	want := `1 1.000 7 [{0 /a [120]}]
2 1.001 7 [{3 /a []} {1 /a [121]} {2 /b []}]
3 1.002 0 []
4 1.003 7 []
5 1.004 7 [] ended true
6 1.005 8 [] ended false
7 1.006 7 [{2 /a []}]
4294967297 1.007 7 [{2 /c []}]
`
	text := ""
	for _, x := range got {
		text += fmt.Sprintf("%d %d.%03d %d %v", x.Zxid, x.At.Unix(), x.At.UnixMilli()%1000, x.Session, x.Ops)
		if x.Ended {
			text += fmt.Sprint(" ended ", x.Expired)
		}
		text += "\n"
	}
	if text != want {
		t.Errorf("read:\n%s", text)
	}
}

// Which of the last transactions of a leader were committed is what the steps allow: with "a" of each epoch's, and without "b".
func TestWhatLogsLeaveOpenIsAsTheStepsAllow(t *testing.T) {
	txn := func(zxid int64, path string) []byte { return encoded(header{7, 1, zxid, 1000, 2}, path) }
	for name, logs := range map[string][3][][]byte{
		"most have what was committed":              {{txn(1, "a"), txn(2, "a")}, {txn(1, "a"), txn(2, "a")}, {txn(1, "a")}},
		"one has what never was":                    {{txn(1, "a"), txn(2, "b")}, {txn(1, "a")}, {txn(1, "a")}},
		"one has what was":                          {{txn(1, "a"), txn(2, "a"), txn(1<<32+1, "a")}, {txn(1, "a"), txn(1<<32+1, "a")}, {txn(1, "a")}},
		"one that was brought up to date forgot it": {{txn(1, "a"), txn(2, "b")}, {txn(1, "a"), txn(2, "b"), txn(1<<32+1, "a")}, {txn(1, "a"), txn(1<<32+1, "a")}},
	} {
		all, ends, err := Read(logged(t, logs[0]...), logged(t, logs[1]...), logged(t, logs[2]...))
		must.OK(t, err)
		wanted := 0
		for _, x := range all {
			if x.Ops[0].Path == "a" {
				wanted++
			}
		}
		if refused := ends.Least(all, func(history []Txn) (refused []string) {
			for _, x := range history {
				if x.Ops[0].Path == "b" {
					refused = append(refused, "b")
				}
			}
			return append(refused, make([]string, wanted+len(refused)-len(history))...)
		}); len(refused) > 0 {
			t.Errorf("%s: %q", name, refused)
		}
	}
	all, ends, err := Read(logged(t, txn(1, "b"), txn(2, "a")), logged(t, txn(1, "b"), txn(2, "a")), logged(t, txn(1, "b")))
	must.OK(t, err)
	if refused := ends.Least(all, func(history []Txn) []string { return []string{"b"} }); len(refused) != 1 {
		t.Errorf("what all logs have was no step: %q", refused)
	}
}

// A log that is being written ends in the middle of a record, or in one whose sum is not there yet.
func TestALogMayEndAnywhere(t *testing.T) {
	record := encoded(header{7, 1, 1, 1000, 2}, "/a")
	dir := logged(t, record, record)
	file := filepath.Join(dir, "version-2", "log.1")
	text, err := os.ReadFile(file)
	must.OK(t, err)
	for length := range text {
		must.OK(t, os.WriteFile(file, text[:length], 0o600))
		got, _, err := Read(dir)
		whole := 16 + 12 + len(record) + 1
		if err != nil || len(got) != min(length/whole, 1) {
			t.Fatalf("%d bytes: %v, %v", length, got, err)
		}
	}
	must.OK(t, os.WriteFile(file, []byte("another kind of file"), 0o600))
	if got, _, err := Read(dir); err == nil {
		t.Errorf("it is no log: %v", got)
	}
}
