package golden

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/election"
	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor/config"
	"understudy/supervisor/guard"
	"understudy/supervisor/handoff"
	"understudy/supervisor/service"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/unit"
)

var release = flag.String("release", "", "write testdata/formats of this release, when it is made")

// formats are what one version writes and another one reads: in ZooKeeper, between nodes, from one image of a supervisor to the next, and
// between a supervisor and guardians of an older version.
func formats() map[string]any {
	return map[string]any{
		"znode nodes/NODE":                &election.Node{},
		"znode ActiveStandbyElectorLock":  &election.Lock{},
		"znode ActiveBreadCrumb":          &election.BreadCrumb{},
		"znode members/NODE":              &election.Member{},
		"znode control":                   &election.Control{},
		"znode drained":                   &election.Undrained{},
		"znode drained/NODE":              &election.Drained{},
		"znode copies":                    &election.Promotion{},
		"znode copies/NODE":               &election.CopyReport{},
		"znode history/n_N":               &election.Activation{},
		"agent: question":                 &agent.Question{},
		"agent: answer":                   &fencing.Statement{},
		"upgrade: the state that is left": &handoff.Envelope{},
		"upgrade: the offer":              &handoff.Offer{},
		"guardians: message":              &guard.Message{},
		"guardians: ticket":               &election.Ticket{},
		"guardians: release":              &election.Release{},
		"file: what a node has seen":      &service.Known{},
		"file: what is to be undone":      &unit.PendingUndo{},
	}
}

// What each release has written is read by this version, and nothing of it is lost. A new key needs no new file; a key that is renamed or
// removed, or has another type, fails here.
//
//	go test ./supervisor/testbed/golden -run Formats -release 0.2.0    # with a release: its files are never changed afterwards
func TestFormatsOfPreviousReleasesAreRead(t *testing.T) {
	if *release != "" {
		write := map[string]json.RawMessage{}
		for name, v := range formats() {
			fill(reflect.ValueOf(v).Elem())
			data, err := json.Marshal(v)
			must.OK(t, err)
			write[name] = data
		}
		text, err := json.MarshalIndent(write, "", "\t")
		must.OK(t, err)
		must.OK(t, os.WriteFile(filepath.Join("testdata/formats", *release+".json"), append(text, '\n'), 0o644))
	}
	files, err := filepath.Glob("testdata/formats/*.json")
	must.OK(t, err)
	if len(files) == 0 {
		t.Fatal("no release has left its formats")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.OK(t, err)
		var written map[string]json.RawMessage
		must.OK(t, json.Unmarshal(text, &written))
		known := formats()
		for _, name := range slices.Sorted(maps.Keys(written)) {
			v, there := known[name]
			if !there {
				t.Errorf("%s: nothing reads %q any more", file, name)
				continue
			}
			decoder := json.NewDecoder(bytes.NewReader(written[name]))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(v); err != nil {
				t.Errorf("%s: %s: %v", file, name, err)
				continue
			}
			again, err := json.Marshal(v)
			must.OK(t, err)
			if diff := cmp.Diff(tree(t, written[name]), within(tree(t, written[name]), tree(t, again))); diff != "" {
				t.Errorf("%s: %s is not what was written (-written +read):\n%s", file, name, diff)
			}
		}
	}
}

func tree(t *testing.T, text []byte) (v any) {
	t.Helper()
	must.OK(t, json.Unmarshal(text, &v))
	return v
}

// within leaves out of b the keys that a does not have.
func within(a, b any) any {
	switch a := a.(type) {
	case map[string]any:
		b, _ := b.(map[string]any)
		some := map[string]any{}
		for key, value := range a {
			if other, there := b[key]; there {
				some[key] = within(value, other)
			}
		}
		return some
	case []any:
		b, _ := b.([]any)
		if len(a) != len(b) {
			return b
		}
		some := make([]any, len(a))
		for i := range a {
			some[i] = within(a[i], b[i])
		}
		return some
	}
	return b
}

// fill gives every field a value that is written.
func fill(v reflect.Value) {
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
		return
	case *json.RawMessage:
		*at = json.RawMessage(`{"kind":"cgroup"}`)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.ToLower(v.Type().Name()))
		if v.Type() == reflect.TypeFor[config.IP]() {
			v.SetString("192.0.2.10/32")
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), value)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				fill(v.Field(i))
			}
		}
	}
}
