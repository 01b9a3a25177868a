package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"time"
)

// stranger comes to an agent's port, knows how agents talk, and lacks a key, or all.
type stranger struct {
	who    string
	dress  *tls.Config // nil: he does not speak TLS
	inside bool        // his certificate is good, or none is asked for: he may be greeted
	secret []byte      // what he seals with
	taped  []byte      // what he seals for, that he was greeted with another time; nil: what he is greeted with
}

// reached is how far a stranger came.
type reached int

const (
	nowhere reached = iota
	there
	greeted
	answered
)

// purposes are what agents seal questions for.
const (
	asDeath   = "understudy agent: question"
	asPromise = "understudy agent: ask for a promise"
)

const (
	helloSize = 40 // bytes: the protocol's name, and
	nonceSize = 32 // what a question is to be sealed for
)

// visit holds one conversation, in which he seals a question for a purpose. Without one he says it as it is.
func (s stranger) visit(addr, purpose string, question []byte) reached {
	conn, err := net.DialTimeout("tcp", addr, sec)
	if err != nil {
		return nowhere
	}
	defer func() { conn.Close() }()
	_ = conn.(*net.TCPConn).SetLinger(0) // no port is used up
	_ = conn.SetDeadline(time.Now().Add(sec))
	if s.dress != nil {
		conn = tls.Client(conn, s.dress)
	}
	hello := make([]byte, helloSize)
	_, err = io.ReadFull(conn, hello)
	far := there
	if err == nil {
		far = greeted
	}
	nonce := hello[helloSize-nonceSize:]
	if s.taped != nil {
		nonce = s.taped
	}
	if purpose != "" {
		question = sealed(s.secret, purpose, nonce, question)
	}
	if _, err := conn.Write(question); err != nil {
		return far
	}
	if _, err := conn.Read(hello[:1]); err == nil && far == greeted {
		far = answered
	}
	return far
}

// sealed is a whole message of an agent's protocol.
func sealed(secret []byte, purpose string, nonce, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(purpose))
	for _, part := range [][]byte{nonce, body} {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write(part)
	}
	return mac.Sum(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
}
