// Package containment chooses how process trees are contained on this machine: it tries, best first, what box and inside can do here.
//
// A supervisor runs it, before anything else.
package containment
