package kit

import "github.com/go-zookeeper/zk"

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
