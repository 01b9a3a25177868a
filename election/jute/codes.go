package jute

import "strconv"

// Op says what a request asks for, or, inside a transaction's answer, what kind of result follows.
type Op int32

// The requests that Understudy, plain clients and the embedded server use.
const (
	OpCreate        Op = 1
	OpDelete        Op = 2
	OpExists        Op = 3
	OpGetData       Op = 4
	OpSetData       Op = 5
	OpGetACL        Op = 6
	OpSetACL        Op = 7
	OpGetChildren   Op = 8
	OpSync          Op = 9
	OpPing          Op = 11
	OpGetChildren2  Op = 12
	OpCheck         Op = 13
	OpMulti         Op = 14
	OpCreate2       Op = 15
	OpAuth          Op = 100
	OpSetWatches    Op = 101
	OpCreateSession Op = -10
	OpCloseSession  Op = -11
	OpError         Op = -1
)

var opNames = map[Op]string{
	OpCreate: "create", OpDelete: "delete", OpExists: "exists", OpGetData: "getData",
	OpSetData: "setData", OpGetACL: "getACL", OpSetACL: "setACL", OpGetChildren: "getChildren", OpSync: "sync",
	OpPing: "ping", OpGetChildren2: "getChildren2", OpCheck: "check", OpMulti: "multi", OpCreate2: "create2",
	OpAuth: "auth", OpSetWatches: "setWatches", OpCreateSession: "createSession", OpCloseSession: "closeSession", OpError: "error",
}

func (o Op) String() string {
	if name, ok := opNames[o]; ok {
		return name
	}
	return "op " + strconv.Itoa(int(o))
}

// Writes tells whether a request of this kind changes the tree or the sessions, and so takes a zxid of its own.
func (o Op) Writes() bool {
	switch o {
	case OpCreate, OpCreate2, OpDelete, OpSetData, OpSetACL, OpMulti, OpCreateSession, OpCloseSession:
		return true
	}
	return false
}

// The xids of frames that do not answer a numbered request.
const (
	XidNotification int32 = -1
	XidPing         int32 = -2
	XidAuth         int32 = -4
	XidSetWatches   int32 = -8
)

// Code is the server's verdict on a request. Every code but OK is an error.
type Code int32

// The codes of a ZooKeeper 3.8 server.
const (
	OK                      Code = 0
	SystemError             Code = -1
	RuntimeInconsistency    Code = -2
	DataInconsistency       Code = -3
	ConnectionLoss          Code = -4
	MarshallingError        Code = -5
	Unimplemented           Code = -6
	OperationTimeout        Code = -7
	BadArguments            Code = -8
	UnknownSession          Code = -12
	NewConfigNoQuorum       Code = -13
	ReconfigInProgress      Code = -14
	APIError                Code = -100
	NoNode                  Code = -101
	NoAuth                  Code = -102
	BadVersion              Code = -103
	NoChildrenForEphemerals Code = -108
	NodeExists              Code = -110
	NotEmpty                Code = -111
	SessionExpired          Code = -112
	InvalidCallback         Code = -113
	InvalidACL              Code = -114
	AuthFailed              Code = -115
	SessionMoved            Code = -118
	NotReadOnly             Code = -119
	NoWatcher               Code = -121
	RequestTimeout          Code = -122
	ReconfigDisabled        Code = -123
	RequiresSASL            Code = -124
	QuotaExceeded           Code = -125
	ThrottledOp             Code = -127
)

var codeNames = map[Code]string{
	OK: "ok", SystemError: "system error", RuntimeInconsistency: "runtime inconsistency",
	DataInconsistency: "data inconsistency", ConnectionLoss: "connection loss", MarshallingError: "marshalling error",
	Unimplemented: "unimplemented", OperationTimeout: "operation timeout", BadArguments: "bad arguments",
	UnknownSession: "unknown session", NewConfigNoQuorum: "no quorum of the new config",
	ReconfigInProgress: "reconfig in progress", APIError: "api error", NoNode: "no node", NoAuth: "no auth",
	BadVersion: "bad version", NoChildrenForEphemerals: "no children for ephemerals", NodeExists: "node exists",
	NotEmpty: "not empty", SessionExpired: "session expired", InvalidCallback: "invalid callback",
	InvalidACL: "invalid acl", AuthFailed: "auth failed", SessionMoved: "session moved", NotReadOnly: "not read only",
	NoWatcher: "no watcher", RequestTimeout: "request timeout", RequiresSASL: "requires SASL authentication",
	ReconfigDisabled: "reconfig disabled", QuotaExceeded: "quota exceeded",
	ThrottledOp: "throttled",
}

// Error makes a Code usable as an error. OK must not be returned as one.
func (c Code) Error() string {
	if name, ok := codeNames[c]; ok {
		return "zookeeper: " + name
	}
	return "zookeeper: code " + strconv.Itoa(int(c))
}

// EventType says what a watch saw.
type EventType int32

// The events that watches fire.
const (
	EventNodeCreated         EventType = 1
	EventNodeDeleted         EventType = 2
	EventNodeDataChanged     EventType = 3
	EventNodeChildrenChanged EventType = 4
)

// StateSyncConnected is the state that every watch event of a healthy server carries.
const StateSyncConnected int32 = 3

// The flags of a create.
const (
	FlagPersistent          int32 = 0
	FlagEphemeral           int32 = 1
	FlagSequence            int32 = 2
	FlagEphemeralSequential int32 = 3
)

// The permissions of an ACL.
const (
	PermRead   int32 = 1
	PermWrite  int32 = 2
	PermCreate int32 = 4
	PermDelete int32 = 8
	PermAdmin  int32 = 16
	PermAll    int32 = 31
)
