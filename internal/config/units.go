package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size. It is written as a number with an optional unit: 65536, 512MiB, 2GB, 1.5g. Units with an i, and bare
// letters, are powers of 1024; MB and GB are powers of 1000.
type Bytes int64

// unitSizes are the units of Bytes, in lower case.
func unitSize(unit string) (float64, bool) {
	switch strings.ToLower(unit) {
	case "", "b":
		return 1, true
	case "kb":
		return 1e3, true
	case "mb":
		return 1e6, true
	case "gb":
		return 1e9, true
	case "k", "ki", "kib":
		return 1 << 10, true
	case "m", "mi", "mib":
		return 1 << 20, true
	case "g", "gi", "gib":
		return 1 << 30, true
	case "t", "ti", "tib":
		return 1 << 40, true
	}
	return 0, false
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Bytes) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	size, ok := unitSize(strings.TrimSpace(s[len(digits):]))
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !ok || n < 0 || n*size >= math.MaxInt64 {
		return fmt.Errorf("size %q is not a number of bytes such as 512MiB or 2GB", s)
	}
	*b = Bytes(n * size)
	return nil
}

// String writes the size in the largest binary unit that divides it, else rounded to three digits.
func (b Bytes) String() string {
	n, units := float64(b), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for len(units) > 1 && n >= 1024 {
		n, units = n/1024, units[1:]
	}
	return strconv.FormatFloat(n, 'g', 4, 64) + " " + units[0]
}

// Budget is a size that may be left to the server: auto, a size like Bytes, 0 or off for nothing.
type Budget int64

// Auto is the budget that the server chooses.
const Auto Budget = -1

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Budget) UnmarshalText(text []byte) error {
	switch strings.ToLower(strings.TrimSpace(string(text))) {
	case "auto":
		*b = Auto
		return nil
	case "off", "none":
		*b = 0
		return nil
	}
	var n Bytes
	if err := n.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w, nor auto or off", err)
	}
	*b = Budget(n)
	return nil
}

// String writes the budget as it is read.
func (b Budget) String() string {
	switch b {
	case Auto:
		return "auto"
	case 0:
		return "off"
	}
	return Bytes(b).String()
}

// Keys are secrets, divided by commas. An empty text is one empty key, which Validate refuses, and not a list without keys:
// whoever passes a variable that is not set wants a key, and must not get a server without one.
type Keys []string

// UnmarshalText implements encoding.TextUnmarshaler. It adds to the keys, since the flag may be repeated.
func (k *Keys) UnmarshalText(text []byte) error {
	*k = append(*k, strings.Split(string(text), ",")...)
	return nil
}

// Seconds is a length of time. It is written as Go writes durations, 1m30s, or as a number of seconds.
type Seconds time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Seconds) UnmarshalText(text []byte) error {
	if n, err := strconv.ParseFloat(string(text), 64); err == nil && n >= 0 && n < 1e9 {
		*s = Seconds(n * float64(time.Second))
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 {
		return fmt.Errorf("time %q is neither a number of seconds nor a duration such as 1m30s", text)
	}
	*s = Seconds(d)
	return nil
}

// String writes the time as Go does.
func (s Seconds) String() string { return time.Duration(s).String() }
