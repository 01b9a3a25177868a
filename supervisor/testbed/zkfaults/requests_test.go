package zkfaults_test

import (
	"fmt"
	"slices"
	"strings"

	"understudy/election/jute"
)

var open = jute.WorldACL(jute.PermAll)

func showEvent(ev jute.WatchEvent) string {
	names := map[jute.EventType]string{
		jute.EventNodeCreated: "created", jute.EventNodeDeleted: "deleted", jute.EventNodeDataChanged: "changed",
		jute.EventNodeChildrenChanged: "children",
	}
	if ev.State != jute.StateSyncConnected {
		return fmt.Sprintf("state %d", ev.State)
	}
	return names[ev.Type] + " " + ev.Path
}

// showStat tells all that is the same on every server: times must only be plausible.
func showStat(c *client, s jute.Stat) string {
	owner := fmt.Sprintf("%#x", s.EphemeralOwner)
	switch s.EphemeralOwner {
	case 0:
		owner = "nobody"
	case c.Session.SessionID:
		owner = "me"
	}
	if s.Ctime > s.Mtime || s.Mtime-s.Ctime > 60_000 {
		c.t.Errorf("ctime %d, mtime %d", s.Ctime, s.Mtime)
	}
	return fmt.Sprintf("zxid %+d%+d%+d version %d,%d,%d of %s len %d kids %d", s.Czxid-c.base, s.Mzxid-c.base,
		s.Pzxid-c.base, s.Version, s.Cversion, s.Aversion, owner, s.DataLength, s.NumChildren)
}

func stat(c *client, r *jute.Reader) string {
	var s jute.Stat
	r.Record(&s)
	return showStat(c, s)
}

func showPath(_ *client, r *jute.Reader) string { return r.String() }

func showPathStat(c *client, r *jute.Reader) string { return r.String() + " " + stat(c, r) }

func showData(_ *client, r *jute.Reader) string {
	var d jute.DataStat
	r.Record(&d)
	if d.Data == nil {
		return "null"
	}
	return fmt.Sprintf("%q", d.Data)
}

func showNames(_ *client, r *jute.Reader) string {
	var names jute.Children
	r.Record(&names)
	slices.Sort(names)
	return strings.Join(names, " ")
}

func showNamesStat(c *client, r *jute.Reader) string { return showNames(c, r) + " " + stat(c, r) }

func showACL(c *client, r *jute.Reader) string {
	var a jute.ACLStat
	r.Record(&a)
	var list []string
	for _, acl := range a.ACL {
		list = append(list, fmt.Sprintf("%d:%s:%s", acl.Perms, acl.Scheme, acl.ID))
	}
	return fmt.Sprintf("%s aversion %d", strings.Join(list, ","), a.Stat.Aversion)
}

func showMulti(c *client, r *jute.Reader) string {
	var m jute.MultiResponse
	r.Record(&m)
	var list []string
	for _, res := range m {
		text := fmt.Sprintf("%v/%d", res.Op, res.Code)
		if res.Path != "" {
			text += " " + res.Path
		}
		if res.Stat != (jute.Stat{}) {
			text += " " + showStat(c, res.Stat)
		}
		list = append(list, text)
	}
	return "[" + strings.Join(list, " | ") + "]"
}

func create(path, data string) request { return createAs(path, data, open, 0) }

func createAs(path, data string, acl []jute.ACL, flags int32) request {
	return request{jute.OpCreate, jute.Create{Path: path, Data: []byte(data), ACL: acl, Flags: flags}, showPath}
}

func create2(path, data string, flags int32) request {
	return request{jute.OpCreate2, jute.Create{Path: path, Data: []byte(data), ACL: open, Flags: flags}, showPathStat}
}

func remove(path string, version int32) request {
	return request{op: jute.OpDelete, body: jute.PathVersion{Path: path, Version: version}}
}

func set(path, data string, version int32) request {
	return request{jute.OpSetData, jute.SetData{Path: path, Data: []byte(data), Version: version}, stat}
}

func exists(path string, watch bool) request {
	return request{jute.OpExists, jute.PathWatch{Path: path, Watch: watch}, stat}
}

func get(path string, watch bool) request {
	return request{jute.OpGetData, jute.PathWatch{Path: path, Watch: watch}, showData}
}

func children(path string, watch bool) request {
	return request{jute.OpGetChildren, jute.PathWatch{Path: path, Watch: watch}, showNames}
}

func children2(path string, watch bool) request {
	return request{jute.OpGetChildren2, jute.PathWatch{Path: path, Watch: watch}, showNamesStat}
}

func getACL(path string) request { return request{jute.OpGetACL, jute.Path(path), showACL} }

func setACL(path string, acl []jute.ACL, version int32) request {
	return request{jute.OpSetACL, jute.SetACL{Path: path, ACL: acl, Version: version},
		func(_ *client, r *jute.Reader) string {
			var s jute.Stat
			r.Record(&s)
			return fmt.Sprint(s.Aversion)
		}}
}

func multi(ops ...jute.MultiOp) request { return request{jute.OpMulti, jute.Multi(ops), showMulti} }

func auth(scheme, credential string) request {
	return request{op: jute.OpAuth, body: jute.AuthPacket{Scheme: scheme, Auth: []byte(credential)}}
}

func setWatches(relative int64, data, exist, child []string) request {
	return request{op: jute.OpSetWatches,
		body: jute.SetWatches{RelativeZxid: relative, Data: data, Exist: exist, Child: child}}
}

var ping = request{op: jute.OpPing}
var sync = request{jute.OpSync, jute.Path("/"), showPath}
