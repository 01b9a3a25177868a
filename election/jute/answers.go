package jute

// PathStat is the answer of create2.
type PathStat struct {
	Path string
	Stat Stat
}

// DataStat is the answer of getData.
type DataStat struct {
	Data []byte
	Stat Stat
}

// ACLStat is the answer of getACL.
type ACLStat struct {
	ACL  []ACL
	Stat Stat
}

// Children is the answer of getChildren.
type Children []string

// ChildrenStat is the answer of getChildren2.
type ChildrenStat struct {
	Children []string
	Stat     Stat
}
