// Package runas is as whom a program runs, and what it inherits: users and groups as this machine knows them, and the environment of its
// supervisor.
//
// A supervisor runs it, and its guardians for what they start; so do commands that want to know the same.
package runas
