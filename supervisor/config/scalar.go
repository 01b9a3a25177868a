package config

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// scalar tells what one word of the file has to be to go into v, and how it does; read is nil where v takes more than a word.
func scalar(v reflect.Value) (want string, read func(word string) error) {
	switch target := v.Addr().Interface().(type) {
	case *time.Duration:
		return "a duration", func(word string) error { return put(target, word, ReadDuration) }
	case encoding.TextUnmarshaler:
		return "text", func(word string) error { return target.UnmarshalText([]byte(word)) }
	case choice:
		words := target.choices()
		return oneOf(words), func(word string) error {
			if message := mustBeOneOf(word, words); message != "" {
				return errors.New(message)
			}
			v.SetString(word)
			return nil
		}
	case *string:
		return "text", func(word string) error { *target = word; return nil }
	case *int:
		return "a number", func(word string) error { return put(target, word, readInt) }
	case *bool:
		return "true or false", func(word string) error { return put(target, word, readBool) }
	}
	return "", nil
}

// put leaves the target as it was where the word cannot be read.
func put[T any](target *T, word string, read func(string) (T, error)) error {
	value, err := read(word)
	if err == nil {
		*target = value
	}
	return err
}

// ReadDuration reads a duration, and names what is wrong with it.
func ReadDuration(word string) (time.Duration, error) {
	length, err := time.ParseDuration(word)
	if err == nil {
		return length, nil
	}
	if number, err := strconv.ParseFloat(word, 64); err == nil && !math.IsInf(number, 0) && !math.IsNaN(number) {
		if number >= 500 { // more seconds are seldom meant
			return 0, fmt.Errorf("%s has no unit: write %sms for milliseconds, or %[2]ss for seconds", quoted(word), shorten(word))
		}
		return 0, fmt.Errorf("%s has no unit: write %ss for seconds", quoted(word), shorten(word))
	}
	days, unit := strings.CutSuffix(word, "d")
	if number, err := strconv.ParseUint(days, 10, 16); unit && err == nil {
		return 0, fmt.Errorf("%s: days have no unit: write %dh", quoted(word), 24*number)
	}
	return 0, fmt.Errorf("%s is not a duration such as 500ms, 1.5s or 2m", quoted(word))
}

func readInt(word string) (int, error) {
	number, err := strconv.ParseInt(word, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s is not a whole number", quoted(word))
	}
	return int(number), nil
}

func readBool(word string) (bool, error) {
	hint := DidYouMean(word, []string{"true", "false"})
	switch {
	case word == "true" || word == "false":
		return word == "true", nil
	case slices.Contains([]string{"yes", "on", "True", "TRUE", "Yes", "On", "all"}, word):
		hint = ` (did you mean "true"?)`
	case slices.Contains([]string{"no", "off", "False", "FALSE", "No", "Off", "none"}, word):
		hint = ` (did you mean "false"?)`
	}
	return false, fmt.Errorf("%s must be true or false%s", quoted(word), hint)
}
