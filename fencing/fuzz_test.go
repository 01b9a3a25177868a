package fencing

import "testing"

// A target comes over a command line. Whatever it is, it is read wholly or not at all.
func FuzzDecodeTarget(f *testing.F) {
	f.Add(target.Encode())
	f.Add("e30")
	f.Fuzz(func(t *testing.T, word string) {
		got, err := DecodeTarget(word)
		if err != nil {
			if got.Service != "" || got.Token != 0 || got.Tree != nil {
				t.Errorf("half read: %+v", got)
			}
			return
		}
		again, err := DecodeTarget(got.Encode())
		if err != nil || again.Service != got.Service || again.Token != got.Token || again.Machine != got.Machine {
			t.Errorf("%+v is not %+v, %v", again, got, err)
		}
	})
}
