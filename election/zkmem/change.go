package zkmem

import "understudy/election/jute"

// order is a request for a change, as it was read. Several servers may carry the same one out.
type order struct {
	op    jute.Op
	code  jute.Code // not OK: it cannot be read
	multi jute.Multi
	acl   jute.SetACL
	step  jute.MultiOp
}

func decodeOrder(op jute.Op, body []byte) *order {
	o := &order{op: op}
	var err error
	known := true
	switch op {
	case jute.OpMulti:
		err = jute.Unmarshal(body, &o.multi)
	case jute.OpSetACL:
		err = jute.Unmarshal(body, &o.acl)
	case jute.OpReconfig:
		if err = jute.Unmarshal(body, new(jute.Reconfig)); err == nil {
			o.code = jute.ReconfigDisabled
		}
	default:
		o.step, known, err = decodeStep(op, body)
	}
	if !known {
		o.code = errUnknown
	} else if err != nil {
		o.code = jute.MarshallingError
	}
	return o
}

// carryOut does what takes a zxid, whether it succeeds or not.
func (r *replica) carryOut(who caller, o *order) (jute.Record, jute.Code) {
	x := r.db.begin()
	if o.code != jute.OK {
		return nil, o.code
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
		if o.op == jute.OpCheck && code == jute.OK {
			code = errSilent // it stumbles over the stat that it has not got
		}
	}
	r.observed(Commit{Zxid: x.zxid, By: who.session}, x.changes)
	r.watches.fire(x.changes)
	return record, code
}

// decodeStep reads a request that is a transaction of one step.
func decodeStep(op jute.Op, body []byte) (step jute.MultiOp, ok bool, err error) {
	step.Op = op
	switch op {
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer:
		err = jute.Unmarshal(body, &step.Create)
	case jute.OpCreateTTL:
		var ttl jute.CreateTTL
		err = jute.Unmarshal(body, &ttl)
		step.Create = ttl.Create
	case jute.OpSetData:
		err = jute.Unmarshal(body, &step.Set)
	case jute.OpDelete, jute.OpCheck:
		err = jute.Unmarshal(body, &step.Target)
	default:
		return step, false, nil
	}
	return step, true, err
}

func stepAnswer(res jute.MultiResult) (jute.Record, jute.Code) {
	switch res.Op {
	case jute.OpCreate:
		return jute.Path(res.Path), jute.OK
	case jute.OpCreate2, jute.OpCreateContainer:
		return jute.PathStat{Path: res.Path, Stat: res.Stat}, jute.OK
	case jute.OpSetData:
		return res.Stat, jute.OK
	}
	return nil, res.Code
}
