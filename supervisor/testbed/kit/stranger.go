package kit

import (
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"

	"understudy/election/jute"
	"understudy/election/zkmem"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zktest"
)

// Trespass has a client try all that can be done to a znode: to read it, to list, to write and to delete it, to add to it, and to
// own it. It tells what came of each.
func Trespass(c *zk.Conn, path string) map[string]error {
	_, _, read := c.Get(path)
	_, _, list := c.Children(path)
	_, write := c.Set(path, []byte("{}"), -1)
	_, add := c.Create(path+"/x", nil, 0, zk.WorldACL(zk.PermAll))
	_, own := c.SetACL(path, zk.WorldACL(zk.PermAll), -1)
	return map[string]error{"read": read, "list": list, "write": write, "add": add, "own": own, "delete": c.Delete(path, -1)}
}

// EndSession has a client without credentials ask a server whose session an ephemeral znode belongs to, attach to that session, whose
// password follows from its id, and close it.
func EndSession(tb testing.TB, server, path string) {
	tb.Helper()
	must.OK(tb, TryEndSession(server, path))
}

// TryEndSession is EndSession where there may be neither server nor znode.
func TryEndSession(server, path string) error {
	asker, err := zktest.DialRaw(server, jute.ConnectRequest{Timeout: 4000})
	if err != nil {
		return err
	}
	defer asker.Close()
	var stat jute.Stat
	if _, err := asker.Call(jute.OpExists, jute.PathWatch{Path: path}, &stat); err != nil {
		return fmt.Errorf("ask whose %s is: %w", path, err)
	}
	id := stat.EphemeralOwner
	endedByStrangers.Store(id, true)
	attached, err := zktest.DialRaw(server, jute.ConnectRequest{Timeout: 4000, SessionID: id, Password: zkmem.Password(id)})
	if err != nil {
		return fmt.Errorf("attach to session %#x: %w", id, err)
	}
	defer attached.Close()
	if _, err := attached.Call(jute.OpCloseSession, nil, nil); err != nil {
		return fmt.Errorf("close session %#x: %w", id, err)
	}
	return nil
}
