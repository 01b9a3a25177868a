package jute

import "reflect"

// Record is anything that can be written in a frame: a bool, an int32, an int64, a string, a buffer, or a struct or a list of such, field
// by field; or what has a method Encode(*Writer) of its own.
type Record any

// Decoder is a pointer to anything that can be read from one, in the same way; or what has a method Decode(*Reader).
type Decoder any

// Record writes one record.
func (w *Writer) Record(rec Record) {
	if own, ok := rec.(interface{ Encode(*Writer) }); ok {
		own.Encode(w)
		return
	}
	w.value(reflect.Indirect(reflect.ValueOf(rec)))
}

func (w *Writer) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		w.Bool(v.Bool())
	case reflect.Int32:
		w.Int32(int32(v.Int()))
	case reflect.Int64:
		w.Int64(v.Int())
	case reflect.String:
		w.String(v.String())
	case reflect.Struct:
		for i := range v.NumField() {
			w.value(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			w.Buffer(v.Bytes())
			return
		}
		w.Count(v.Len())
		for i := range v.Len() {
			w.value(v.Index(i))
		}
	default:
		panic("jute: no field can be a " + v.Type().String())
	}
}

// Record reads one record.
func (r *Reader) Record(rec Decoder) {
	if own, ok := rec.(interface{ Decode(*Reader) }); ok {
		own.Decode(r)
		return
	}
	r.value(reflect.ValueOf(rec).Elem())
}

func (r *Reader) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.Bool())
	case reflect.Int32:
		v.SetInt(int64(r.Int32()))
	case reflect.Int64:
		v.SetInt(r.Int64())
	case reflect.String:
		v.SetString(r.String())
	case reflect.Struct:
		for i := range v.NumField() {
			r.value(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(r.Buffer())
			return
		}
		v.SetZero()
		if n := r.Count(4); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		for i := range v.Len() {
			r.value(v.Index(i))
		}
	default:
		panic("jute: no field can be a " + v.Type().String())
	}
}
