package steps

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"understudy/election/jute"
)

// What a log has beside the operations of package jute.
const (
	logMagic          = "ZKLG"
	opCreateContainer = 19
	opDeleteContainer = 20
	opCreateTTL       = 21
	opCloseSession    = -11
	opError           = -1
)

// Read returns the transactions of servers that are all up and agree, by their data directories, in order. Those up to the newest of a
// leader's that most logs have were committed. Of its last ones, which one log alone has, that is not known: a leader that is cut off
// leaves some that never were, and a server that is brought up to date by a snapshot lacks some that were.
func Read(dirs ...string) (committed []Txn, tails [][]Txn, err error) {
	found, count := map[int64]Txn{}, map[int64]int{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "version-2", "log.*"))
		if err != nil {
			return nil, nil, fmt.Errorf("find logs: %w", err)
		}
		here := map[int64]Txn{}
		for _, file := range files {
			if err := readLog(file, here); err != nil {
				return nil, nil, fmt.Errorf("read %s: %w", file, err)
			}
		}
		for zxid, t := range here {
			found[zxid] = t
			count[zxid]++
		}
	}
	newest, tail := map[int64]int64{}, map[int64][]Txn{} // by the leader's epoch
	for zxid, n := range count {
		if n > len(dirs)/2 {
			newest[zxid>>32] = max(newest[zxid>>32], zxid)
		}
	}
	for _, zxid := range slices.Sorted(maps.Keys(found)) {
		if epoch := zxid >> 32; zxid <= newest[epoch] {
			committed = append(committed, found[zxid])
		} else {
			tail[epoch] = append(tail[epoch], found[zxid])
		}
	}
	for _, epoch := range slices.Sorted(maps.Keys(tail)) {
		tails = append(tails, tail[epoch])
	}
	return committed, tails, nil
}

// readLog reads one file. A server may write to it: what is not whole yet is left out.
func readLog(path string, into map[int64]Txn) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	var head [16]byte // magic, version, and the database's number
	if _, err := io.ReadFull(in, head[:]); err != nil || string(head[:4]) == "\x00\x00\x00\x00" {
		return nil //nolint:nilerror // it is being made
	}
	if string(head[:4]) != logMagic {
		return errors.New("this is no log of ZooKeeper's")
	}
	for {
		var head [12]byte // the sum, as a long, and the length
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return nil //nolint:nilerror // no more
		}
		sum, length := binary.BigEndian.Uint64(head[:]), binary.BigEndian.Uint32(head[8:])
		if length == 0 || length > jute.MaxFrame { // what was allocated before it was needed
			return nil
		}
		record := make([]byte, length+1)
		if _, err := io.ReadFull(in, record); err != nil || record[length] != 'B' || uint64(adler32.Checksum(record[:length])) != sum {
			return nil //nolint:nilerror // it is being written
		}
		t, err := decode(record[:length])
		if err != nil {
			return err
		}
		into[t.Zxid] = t
	}
}

// decode reads a transaction.
func decode(record []byte) (t Txn, err error) {
	r := jute.NewReader(record)
	t.Session = r.Int64()
	cxid := r.Int32()
	t.Zxid, t.At = r.Int64(), time.UnixMilli(r.Int64())
	switch op := r.Int32(); op {
	case opCloseSession:
		t.Ended, t.Expired = true, cxid == 0
		return t, r.Err()
	case int32(jute.OpMulti):
		for n := r.Count(8); n > 0 && r.Err() == nil; n-- {
			op, body := r.Int32(), r.Buffer()
			if op == opError { // none of it was done
				return Txn{Zxid: t.Zxid, At: t.At}, r.Err()
			}
			if err := t.add(op, jute.NewReader(body)); err != nil {
				return t, err
			}
		}
		return t, r.Err()
	default:
		return t, t.add(op, r)
	}
}

func (t *Txn) add(op int32, r *jute.Reader) error {
	var o Op
	switch op {
	case int32(jute.OpCreate), int32(jute.OpCreate2), opCreateContainer, opCreateTTL:
		o = Op{Create, r.String(), r.Buffer()}
	case int32(jute.OpSetData):
		o = Op{Set, r.String(), r.Buffer()}
	case int32(jute.OpDelete), opDeleteContainer:
		o = Op{Kind: Delete, Path: r.String()}
	case int32(jute.OpCheck):
		o = Op{Kind: Check, Path: r.String()}
	default: // no change of znodes
		return nil
	}
	t.Ops = append(t.Ops, o)
	return r.Err()
}
