package unit

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/supervisor/child/notify"
	"understudy/supervisor/config"
	"understudy/supervisor/testbed/must"
)

// The next image reads a config as it was written: otherwise it would start the programs anew for nothing.
func TestProgramsAreHandedOverAsTheyAre(t *testing.T) {
	var all config.Process
	filled(reflect.ValueOf(&all).Elem())
	all.Address.IP = "192.0.2.10/32" // text that its reader takes
	file := filepath.Join(t.TempDir(), "understudy.yaml")
	text := "node: a\nzookeeper: {servers: [a]}\nservices: {s: {command: [\"true\"], inherit_env: false, env: {}, limits: {}, capabilities: {bounding: [], ambient: []}}}\n"
	must.OK(t, os.WriteFile(file, []byte(text), 0o600))
	r := config.Read(file, "")
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	empty := r.Config.Services["s"].Processes[0]
	for _, p := range []config.Process{all, empty, config.DefaultService("true").Processes[0]} {
		out := CarriedRun{Programs: []config.Process{p}}
		data, err := json.Marshal(out)
		must.OK(t, err)
		var in CarriedRun
		must.OK(t, json.Unmarshal(data, &in))
		if diff := cmp.Diff(out.Programs, in.Programs); diff != "" {
			t.Error(diff)
		}
	}
}

// filled gives every field a value.
func filled(v reflect.Value) {
	if v.Type() == reflect.TypeFor[config.IP]() {
		v.SetString("192.0.2.1/32")
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			filled(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		filled(v.Index(0))
		filled(v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		filled(key)
		filled(value)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("some")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	default:
		panic(v.Type())
	}
}

// Programs are started anew only if a config means something else, not if it is only written in another way.
func TestTheSameInOtherWordsIsNoOtherConfig(t *testing.T) {
	one, other := config.DefaultService("true"), config.DefaultService("true")
	p, q := &one.Processes[0], &other.Processes[0]
	p.Caps = config.Capabilities{Bounding: &[]config.Capability{1, 2}, Ambient: []config.Capability{2, 1}}
	q.Caps = config.Capabilities{Bounding: &[]config.Capability{2, 1}, Ambient: []config.Capability{1, 2}}
	p.Env, p.Limits = map[string]string{}, map[string]config.Limit{}
	q.Env, q.Limits = nil, nil
	if diff := cmp.Diff(startSettings(one), startSettings(other), cmp.AllowUnexported(startSetting{})); diff != "" {
		t.Error(diff)
	}
	*q.Caps.Bounding = nil // none at all, unlike all of the supervisor's own
	p.Caps.Bounding = nil
	if reflect.DeepEqual(startSettings(one), startSettings(other)) {
		t.Error("other capabilities are taken for the same")
	}
	q.Caps = p.Caps
	if q.Env = map[string]string{"A": "b"}; reflect.DeepEqual(startSettings(one), startSettings(other)) {
		t.Error("another environment is taken for the same")
	}
}

// The program that keeps an address says that another machine claims it. It is counted, also after an upgrade.
func TestAClaimOfAnAddressIsTold(t *testing.T) {
	socket, err := notify.Listen(notify.Config{Dir: t.TempDir(), UID: uint32(os.Geteuid())})
	must.OK(t, err)
	defer socket.Close()
	told := make(chan struct{}, 1)
	r := &Run{u: debtor(t, "a", "db", nil), cfg: RunConfig{Claimed: func() { told <- struct{}{} }}, over: make(chan struct{})}
	r.hear(t.Context(), socket)
	defer r.hearers.Wait()
	defer close(r.over)
	conn, err := net.Dial("unixgram", strings.TrimPrefix(socket.Env(), "NOTIFY_SOCKET="))
	if err == nil {
		_, err = conn.Write([]byte(notify.Claimed + "=1"))
	}
	must.OK(t, err)
	select {
	case <-told:
	case <-time.After(10 * time.Second):
		t.Error("nobody is told")
	}
	_ = conn.Close()
}
