// Package watch sees a service as its clients and its network do: who has an address, who answers, and what is without an answer for how
// long. Tests of real programs demand something of what it sees, and the comparison with other tools prints it.
package watch
