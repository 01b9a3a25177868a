package zkmem

import "encoding/binary"

// Password is the password of a session. As in the real server it follows from the id alone, by a constant that everybody
// knows (ZooKeeperServer.generatePasswd): a client that knows an id, which the Stat of each ephemeral znode tells, can attach to
// that session, keep it, have it run out early, or close it.
func Password(session int64) []byte {
	const superSecret, factor, mask = 0xB3415C00, 0x5DEECE66D, 1<<48 - 1
	state := (uint64(session^superSecret) ^ factor) & mask // of a java.util.Random
	var password []byte
	for range 4 {
		state = (state*factor + 0xB) & mask
		password = binary.LittleEndian.AppendUint32(password, uint32(state>>16))
	}
	return password
}
