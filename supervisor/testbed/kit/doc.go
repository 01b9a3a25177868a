// Package kit is what the acceptance tests and the bench are made of: hosts (network namespaces with identities of their
// own), the faults that befall them, the supervisor as a black box, and the checker that reads the accounts of the
// wrapped program's processes and tells whether two of them ever ran at once.
//
// It promises nothing to anybody else: it is test code. It knows Understudy only from outside: its command line, its
// znodes, its processes.
package kit
