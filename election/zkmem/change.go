package zkmem

import "understudy/election/jute"

// Order is a request for a change, as it was read. Several servers may carry the same one out.
type Order struct {
	op    jute.Op
	code  jute.Code // not OK: it cannot be read
	multi jute.Multi
	acl   jute.SetACL
	step  jute.MultiOp
}

// NewOrder reads a request.
func NewOrder(op jute.Op, body []byte) *Order {
	o := &Order{op: op, step: jute.MultiOp{Op: op}}
	var err error
	switch op {
	case jute.OpMulti:
		err = jute.Unmarshal(body, &o.multi)
	case jute.OpSetACL:
		err = jute.Unmarshal(body, &o.acl)
	case jute.OpCreate, jute.OpCreate2:
		err = jute.Unmarshal(body, &o.step.Create)
	case jute.OpSetData:
		err = jute.Unmarshal(body, &o.step.Set)
	case jute.OpDelete:
		err = jute.Unmarshal(body, &o.step.Target)
	default:
		o.code = jute.Unimplemented
	}
	if err != nil {
		o.code = jute.MarshallingError
	}
	return o
}

// Do carries a change out. It takes a zxid, whether it succeeds or not.
func (d *Data) Do(who Caller, o *Order) (jute.Record, jute.Code, []Change) {
	x := d.begin()
	if o.code != jute.OK {
		return nil, o.code, nil
	}
	var record jute.Record
	code := jute.OK
	switch o.op {
	case jute.OpMulti:
		record = x.multi(who, o.multi)
	case jute.OpSetACL:
		record, code = x.setACL(who, o.acl)
	default:
		record, code = stepAnswer(x.step(who, o.step))
	}
	return record, code, x.changes
}

// Skip takes a zxid for a change that is refused.
func (d *Data) Skip() { d.begin() }

func stepAnswer(res jute.MultiResult) (jute.Record, jute.Code) {
	switch res.Op {
	case jute.OpCreate:
		return jute.Path(res.Path), jute.OK
	case jute.OpCreate2:
		return jute.PathStat{Path: res.Path, Stat: res.Stat}, jute.OK
	case jute.OpSetData:
		return res.Stat, jute.OK
	}
	return nil, res.Code
}
