package jute

// Stat is a node's metadata.
type Stat struct {
	Czxid          int64
	Mzxid          int64
	Ctime          int64 // milliseconds since 1970
	Mtime          int64
	Version        int32
	Cversion       int32
	Aversion       int32
	EphemeralOwner int64
	DataLength     int32
	NumChildren    int32
	Pzxid          int64
}

// ACL gives an id permissions.
type ACL struct {
	Perms  int32
	Scheme string
	ID     string
}

// WorldACL lets everybody do what perms say.
func WorldACL(perms int32) []ACL { return []ACL{{perms, "world", "anyone"}} }

// Create is the request of create and create2.
type Create struct {
	Path  string
	Data  []byte
	ACL   []ACL
	Flags int32
}

// PathVersion is the request of delete and check. Version -1 matches any.
type PathVersion struct {
	Path    string
	Version int32
}

// PathWatch is the request of exists, getData, getChildren and getChildren2.
type PathWatch struct {
	Path  string
	Watch bool
}

// SetData is the request of setData. Version -1 matches any.
type SetData struct {
	Path    string
	Data    []byte
	Version int32
}

// SetACL is the request of setACL. Version is that of the ACL; -1 matches any.
type SetACL struct {
	Path    string
	ACL     []ACL
	Version int32
}

// Path is the request of getACL and sync, and the answer of create and sync.
type Path string
