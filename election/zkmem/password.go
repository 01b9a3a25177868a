package zkmem

import "encoding/binary"

// Password is the password of a session. As in the real server it follows from the id alone, by a constant that everybody
// knows (ZooKeeperServer.generatePasswd): a client that knows an id, which the Stat of each ephemeral znode tells, can attach to
// that session, keep it, have it run out early, or close it.
func Password(session int64) []byte {
	const superSecret = 0xB3415C00
	random := newJavaRandom(session ^ superSecret)
	var password []byte
	for range 4 {
		password = binary.LittleEndian.AppendUint32(password, random.next())
	}
	return password
}

// javaRandom is java.util.Random.
type javaRandom struct{ state uint64 }

const javaFactor, javaMask = 0x5DEECE66D, 1<<48 - 1

func newJavaRandom(seed int64) *javaRandom {
	return &javaRandom{(uint64(seed) ^ javaFactor) & javaMask}
}

func (r *javaRandom) next() uint32 {
	r.state = (r.state*javaFactor + 0xB) & javaMask
	return uint32(r.state >> 16)
}
