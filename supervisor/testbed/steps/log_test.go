package steps

import (
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
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
	got, tails, err := Read(logged(t, append(all, alone)...), logged(t, append(all[1:], missed)...), logged(t, create))
	must.OK(t, err)
	if len(tails) != 2 || tails[0][0].Zxid != 7 || tails[1][0].Zxid != 1<<32+1 {
		t.Errorf("not known: %v", tails)
	}
	want := `1 1.000 7 [{0 /a [120]}]
2 1.001 7 [{3 /a []} {1 /a [121]} {2 /b []}]
3 1.002 0 []
4 1.003 7 []
5 1.004 7 [] ended true
6 1.005 8 [] ended false
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
