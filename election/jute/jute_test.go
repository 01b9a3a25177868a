package jute

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var stat = Stat{1, 2, 3, 4, 5, -6, 7, -8, 9, 10, 11}

func samples() map[string][2]any {
	c := Create{Path: "/a", Data: []byte{1}, ACL: WorldACL(PermAll), Flags: FlagSequence}
	path := Path("/p")
	children := Children{"a", ""}
	multi := Multi{
		CreateOp(c), {Op: OpCreate2, Create: c},
		DeleteOp("/d", -1), SetDataOp(SetData{"/s", nil, 3}), CheckOp("/c", 0),
	}
	response := MultiResponse{
		{Op: OpCreate, Path: "/a"}, {Op: OpCreate2, Path: "/b", Stat: stat}, {Op: OpSetData, Stat: stat}, {Op: OpDelete},
		{Op: OpCheck}, {Op: OpError, Code: NoNode},
	}
	watches := SetWatches{RelativeZxid: 9, Data: []string{"/d"}, Exist: []string{"/e", "/f"}, Child: []string{"/c"}}
	return map[string][2]any{
		"connect":          {&ConnectRequest{1, 2, 3, 4, []byte("pw"), true, false}, &ConnectRequest{}},
		"old connect":      {&ConnectRequest{SessionID: 4, NoReadOnly: true}, &ConnectRequest{}},
		"connected":        {&ConnectResponse{1, 2, 3, []byte("pw"), true, false}, &ConnectResponse{}},
		"old connected":    {&ConnectResponse{SessionID: 4, NoReadOnly: true}, &ConnectResponse{}},
		"request header":   {&RequestHeader{1, OpPing}, &RequestHeader{}},
		"reply header":     {&ReplyHeader{1, 2, NoNode}, &ReplyHeader{}},
		"auth":             {&AuthPacket{0, "digest", []byte("a:b")}, &AuthPacket{}},
		"event":            {&WatchEvent{EventNodeDeleted, StateSyncConnected, "/a"}, &WatchEvent{}},
		"set watches":      {&watches, &SetWatches{}},
		"stat":             {&stat, &Stat{}},
		"create":           {&c, &Create{}},
		"path and version": {&PathVersion{"/a", -1}, &PathVersion{}},
		"path and watch":   {&PathWatch{"/a", true}, &PathWatch{}},
		"set data":         {&SetData{"/a", nil, 2}, &SetData{}},
		"set acl":          {&SetACL{"/a", WorldACL(1), 2}, &SetACL{}},
		"path":             {&path, new(Path)},
		"path and stat":    {&PathStat{"/a", stat}, &PathStat{}},
		"data and stat":    {&DataStat{[]byte{}, stat}, &DataStat{}},
		"acl and stat":     {&ACLStat{WorldACL(2), stat}, &ACLStat{}},
		"children":         {&children, new(Children)},
		"names and stat":   {&ChildrenStat{[]string{"x"}, stat}, &ChildrenStat{}},
		"multi":            {&multi, new(Multi)},
		"multi response":   {&response, new(MultiResponse)},
	}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	for name, s := range samples() {
		raw := Frame(s[0])[4:]
		r := NewReader(raw)
		r.Record(s[1])
		if r.Err() != nil || r.Remaining() != 0 {
			t.Errorf("%s: %v, %d bytes left", name, r.Err(), r.Remaining())
		}
		if diff := cmp.Diff(s[0], s[1]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestARecordCutShortIsAFault(t *testing.T) {
	for name, s := range samples() {
		raw := Frame(s[0])[4:]
		for n := range len(raw) {
			if name == "connect" || name == "connected" {
				if n == len(raw)-1 { // it is then the record of an old client
					continue
				}
			}
			if err := Unmarshal(raw[:n], s[1]); err == nil {
				t.Errorf("%s: %d of %d bytes make a record", name, n, len(raw))
			}
		}
	}
}

func TestLengthsThatCannotBeAreFaults(t *testing.T) {
	var buffer DataStat
	if err := Unmarshal([]byte{0xff, 0xff, 0xff, 0xfe}, &buffer); !errors.Is(err, ErrLength) {
		t.Error(err)
	}
	if err := Unmarshal([]byte{0x7f, 0xff, 0xff, 0xff}, &buffer); !errors.Is(err, ErrShort) {
		t.Error(err)
	}
	var names Children
	if err := Unmarshal([]byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0}, &names); !errors.Is(err, ErrShort) {
		t.Error(err)
	}
	if err := Unmarshal([]byte{0xff, 0xff, 0xff, 0xff}, &names); err != nil || names != nil {
		t.Error(names, err)
	}
	var path Path
	if err := Unmarshal([]byte{0xff, 0xff, 0xff, 0xff}, &path); !errors.Is(err, ErrLength) {
		t.Error(err)
	}
}

func TestNullIsToldFromEmpty(t *testing.T) {
	for _, data := range [][]byte{nil, {}} {
		var got DataStat
		if err := Unmarshal(Frame(DataStat{Data: data})[4:], &got); err != nil || (got.Data == nil) != (data == nil) {
			t.Errorf("%v became %v, %v", data, got.Data, err)
		}
	}
}

func TestFramesAreBounded(t *testing.T) {
	frame := Frame(Path("/a"))
	got, err := ReadFrame(bytes.NewReader(frame), 0)
	if err != nil || !bytes.Equal(got, frame[4:]) {
		t.Error(got, err)
	}
	if _, err := ReadFrame(bytes.NewReader(frame), len(frame)-5); !errors.Is(err, ErrFrame) {
		t.Error(err)
	}
	if _, err := ReadFrame(bytes.NewReader([]byte{0xff, 0, 0, 0}), 0); !errors.Is(err, ErrFrame) {
		t.Error(err)
	}
	if _, err := ReadFrame(bytes.NewReader(frame[:6]), 0); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if _, err := ReadFrame(bytes.NewReader(nil), 0); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	big := bytes.Repeat([]byte{7}, 300_000)
	if got, err := ReadFrame(bytes.NewReader(Frame(DataStat{Data: big})), 0); err != nil || len(got) != len(big)+4+68 {
		t.Error(len(got), err)
	}
}

func TestATransactionNamesTheStepThatFailed(t *testing.T) {
	ok := MultiResponse{{Op: OpCheck}}
	bad := MultiResponse{{Op: OpError}, {Op: OpError, Code: NodeExists}, {Op: OpError, Code: RuntimeInconsistency}}
	if ok.Err() != nil || !errors.Is(bad.Err(), NodeExists) {
		t.Error(ok.Err(), bad.Err())
	}
}

func TestCodesAndOpsHaveNames(t *testing.T) {
	if NoNode.Error() != "zookeeper: no node" || Code(-999).Error() != "zookeeper: code -999" {
		t.Error(NoNode, Code(-999))
	}
	if OpCreate.String() != "create" || Op(77).String() != "op 77" {
		t.Error(OpCreate, Op(77))
	}
}

// FuzzDecode reads anything as every record: it must not panic, and what it accepts it must write back the same.
func FuzzDecode(f *testing.F) {
	for _, s := range samples() {
		f.Add(Frame(s[0])[4:])
	}
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, raw []byte) {
		for name, s := range samples() {
			r := NewReader(raw)
			r.Record(s[1])
			if r.Err() != nil {
				continue
			}
			again := samples()[name][1]
			if err := Unmarshal(Frame(s[1])[4:], again); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(s[1], again); diff != "" {
				t.Fatalf("%s: %s", name, diff)
			}
		}
	})
}

func FuzzReadFrame(f *testing.F) {
	f.Add(Frame(Path("/a")))
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		body, err := ReadFrame(bytes.NewReader(raw), 0)
		if err == nil && len(body)+4 > len(raw) {
			t.Fatal("a frame longer than what was sent")
		}
	})
}
