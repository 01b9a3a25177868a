package zkmem

import "understudy/election/jute"

// change does a request that takes a zxid, whether it succeeds or not.
func (s *Server) change(c *conn, op jute.Op, body []byte) (jute.Record, jute.Code) {
	return s.carryOut(caller{c.session, c.ids}, op, body)
}

func (s *Server) carryOut(who caller, op jute.Op, body []byte) (jute.Record, jute.Code) {
	x := s.db.begin()
	var record jute.Record
	code := jute.OK
	switch op {
	case jute.OpMulti:
		var ops jute.Multi
		if jute.Unmarshal(body, &ops) != nil {
			return nil, jute.MarshallingError
		}
		record = x.multi(who, ops)
	case jute.OpSetACL:
		var req jute.SetACL
		if jute.Unmarshal(body, &req) != nil {
			return nil, jute.MarshallingError
		}
		var stat jute.Stat
		stat, code = x.setACL(who, req)
		record = stat
	default:
		step, ok, err := decodeStep(op, body)
		if !ok {
			return nil, errUnknown
		}
		if err != nil {
			return nil, jute.MarshallingError
		}
		record, code = stepAnswer(x.step(who, step))
		if op == jute.OpCheck && code == jute.OK {
			code = errSilent // it stumbles over the stat that it has not got
		}
	}
	s.observed(Commit{Zxid: x.zxid}, x.changes)
	s.watches.fire(x.changes)
	s.armCleaning()
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
