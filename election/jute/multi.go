package jute

import "fmt"

// MultiOp is one step of a transaction. Which fields count depends on Op:
// Create for the creates, SetData for setData, Target for delete and check.
type MultiOp struct {
	Op     Op
	Create Create
	Set    SetData
	Target PathVersion
}

// CreateOp is a create inside a transaction.
func CreateOp(c Create) MultiOp { return MultiOp{Op: OpCreate, Create: c} }

// DeleteOp is a delete inside a transaction.
func DeleteOp(path string, version int32) MultiOp {
	return MultiOp{Op: OpDelete, Target: PathVersion{path, version}}
}

// SetDataOp is a setData inside a transaction.
func SetDataOp(s SetData) MultiOp { return MultiOp{Op: OpSetData, Set: s} }

// CheckOp makes a transaction fail unless the node exists with this data version (any, when -1).
func CheckOp(path string, version int32) MultiOp {
	return MultiOp{Op: OpCheck, Target: PathVersion{path, version}}
}

// Path is the node that the step is about.
func (m MultiOp) Path() string {
	switch m.Op {
	case OpCreate, OpCreate2:
		return m.Create.Path
	case OpSetData:
		return m.Set.Path
	}
	return m.Target.Path
}

func multiHeader(w *Writer, op Op, done bool, code Code) {
	w.Int32(int32(op))
	w.Bool(done)
	w.Int32(int32(code))
}

// Multi is a transaction: all steps or none.
type Multi []MultiOp

// Encode implements Record.
func (m Multi) Encode(w *Writer) {
	for _, op := range m {
		multiHeader(w, op.Op, false, -1)
		switch op.Op {
		case OpCreate, OpCreate2:
			w.Record(op.Create)
		case OpSetData:
			w.Record(op.Set)
		default:
			w.Record(op.Target)
		}
	}
	multiHeader(w, -1, true, -1)
}

// Decode implements Decoder.
func (m *Multi) Decode(r *Reader) {
	*m = nil
	for r.Err() == nil {
		op, done, _ := Op(r.Int32()), r.Bool(), r.Int32()
		if r.Err() != nil || done {
			return
		}
		step := MultiOp{Op: op}
		switch op {
		case OpCreate, OpCreate2:
			r.Record(&step.Create)
		case OpSetData:
			r.Record(&step.Set)
		case OpDelete, OpCheck:
			r.Record(&step.Target)
		default:
			r.Fail(fmt.Errorf("jute: %v inside a transaction", op))
		}
		*m = append(*m, step)
	}
}

// MultiResult is what one step of a transaction came to. Op is OpError in every step of a failed transaction: Code is
// then the error in the step that failed, OK in those before it, RuntimeInconsistency in those after it.
type MultiResult struct {
	Op   Op
	Code Code
	Path string // of the creates
	Stat Stat   // of setData and of the creates but the plain one
}

// MultiResponse is the answer to a transaction.
type MultiResponse []MultiResult

// Encode implements Record.
func (m MultiResponse) Encode(w *Writer) {
	for _, res := range m {
		multiHeader(w, res.Op, false, res.Code)
		switch res.Op {
		case OpError:
			w.Int32(int32(res.Code))
		case OpCreate:
			w.String(res.Path)
		case OpCreate2:
			w.Record(PathStat{res.Path, res.Stat})
		case OpSetData:
			w.Record(res.Stat)
		}
	}
	multiHeader(w, -1, true, -1)
}

// Decode implements Decoder.
func (m *MultiResponse) Decode(r *Reader) {
	*m = nil
	for r.Err() == nil {
		op, done, code := Op(r.Int32()), r.Bool(), Code(r.Int32())
		if r.Err() != nil || done {
			return
		}
		res := MultiResult{Op: op, Code: code}
		switch op {
		case OpError:
			res.Code = Code(r.Int32())
		case OpCreate:
			res.Path = r.String()
		case OpCreate2:
			res.Path = r.String()
			r.Record(&res.Stat)
		case OpSetData:
			r.Record(&res.Stat)
		case OpDelete, OpCheck:
		default:
			r.Fail(fmt.Errorf("jute: %v inside a transaction's answer", op))
		}
		*m = append(*m, res)
	}
}

// Err is the code of the step that made the transaction fail, or nil.
func (m MultiResponse) Err() error {
	for _, res := range m {
		if res.Op == OpError && res.Code != OK {
			return res.Code
		}
	}
	return nil
}
