// Package wire is how the processes of one host talk to each other: messages in packets, the files that go along, the descriptors that
// are waited for, and the clock that deadlines are points on.
//
// Supervisor, guardians and stubs run it, and a copy of these at its gate.
package wire
