// Package jute is the part of ZooKeeper's wire format that Understudy speaks: frames, the primitive types, and the
// records of the requests it sends or, in the embedded server, answers.
//
// It promises that no input makes it panic or allocate more than a small multiple of the input's own size: every
// length is checked against what is really there before anything is reserved. It checks form only; whether a path or
// an ACL makes sense is the server's business.
package jute
