package chat

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// formatSpec says how one value is written. It serves both the % operator and str.format.
type formatSpec struct {
	fill      string // one character
	align     byte   // < > ^ = or 0
	sign      byte   // + or space: shown before numbers that are not negative
	alternate bool   // #
	zero      bool   // pad numbers with zeros after the sign
	// noMinusZero writes a negative zero without its sign.
	noMinusZero bool
	width       int64
	precision   int64 // -1 when not given
	group       byte  // , or _ between groups of digits
	kind        byte  // the letter at the end, 0 when not given
}

// check charges what a value written by s may need, before it is made.
func (in *interp) check(s *formatSpec) error {
	if s.width > in.limits.BuiltBytes || s.precision > in.limits.BuiltBytes {
		return &LimitError{What: "bytes built", Limit: in.limits.BuiltBytes}
	}
	return in.build(s.width*int64(len(s.fill)) + max(s.precision, 0) + 32)
}

// pad brings text to the width. numeric says that zeros and the align = go between the sign and the digits.
func (s *formatSpec) pad(text string, def byte) string {
	missing := int(s.width) - utf8.RuneCountInString(text)
	if missing <= 0 {
		return text
	}
	align := s.align
	if align == 0 {
		align = def
	}
	switch align {
	case '<':
		return text + strings.Repeat(s.fill, missing)
	case '^':
		return strings.Repeat(s.fill, missing/2) + text + strings.Repeat(s.fill, missing-missing/2)
	case '=':
		n := signLength(text)
		return text[:n] + strings.Repeat(s.fill, missing) + text[n:]
	}
	return strings.Repeat(s.fill, missing) + text
}

// signLength is the length of a number's sign and base prefix.
func signLength(text string) int {
	n := 0
	if text != "" && strings.IndexByte("+- ", text[0]) >= 0 {
		n = 1
	}
	if len(text) > n+1 && text[n] == '0' && strings.IndexByte("xXob", text[n+1]) >= 0 {
		n += 2
	}
	return n
}

func (s *formatSpec) signed(negative bool, digits string) string {
	switch {
	case negative:
		return "-" + digits
	case s.sign != 0:
		return string(s.sign) + digits
	}
	return digits
}

// integer writes an int in the base of s.kind.
func (s *formatSpec) integer(i *big.Int) (string, error) {
	base, prefix := 10, ""
	switch s.kind {
	case 'b':
		base, prefix = 2, "0b"
	case 'o':
		base, prefix = 8, "0o"
	case 'x':
		base, prefix = 16, "0x"
	case 'X':
		base, prefix = 16, "0X"
	}
	digits := new(big.Int).Abs(i).Text(base)
	if base == 10 && len(digits) > maxIntDigits {
		return "", valueErrorf("Exceeds the limit (%d digits) for integer string conversion", maxIntDigits)
	}
	if s.kind == 'X' {
		digits = strings.ToUpper(digits)
	}
	if s.group != 0 {
		size := 3
		if base != 10 {
			size = 4
		}
		digits = s.grouped(digits, size, len(s.signed(i.Sign() < 0, "")))
	}
	if s.alternate {
		digits = prefix + digits
	}
	return s.signed(i.Sign() < 0, digits), nil
}

// grouped puts the separator between groups of digits, and with zero padding adds zeros up to the width.
func (s *formatSpec) grouped(digits string, size, signLen int) string {
	rest := ""
	if i := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' && r < 'A' || r == 'e' }); i >= 0 && size == 3 {
		digits, rest = digits[:i], digits[i:]
	}
	if s.zero || s.align == '=' && s.fill == "0" {
		want := int(s.width) - signLen - len(rest) // digits and separators
		n := want - want/(size+1)                  // digits
		if want%(size+1) == 0 {
			n++ // a number does not begin with a separator
		}
		digits = strings.Repeat("0", max(n-len(digits), 0)) + digits
	}
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%size == 0 {
			b.WriteByte(s.group)
		}
		b.WriteByte(digits[i])
	}
	return b.String() + rest
}

// float writes a float as s.kind, one of e f g and their capitals, or % or 0.
func (s *formatSpec) float(f float64) string {
	kind, precision := s.kind|0x20, int(s.precision)
	switch s.kind {
	case '%':
		f *= 100
		kind = 'f'
	case 0, 'n':
		kind = 'g'
		if s.kind == 0 && precision < 0 {
			return s.finish(f, reprFloat(math.Abs(f)))
		}
	}
	if precision < 0 {
		precision = 6
	}
	var text string
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		text = reprFloat(math.Abs(f))
	case kind == 'g':
		text = formatGeneral(math.Abs(f), max(precision, 1), s.alternate)
		if s.kind == 0 && !strings.ContainsAny(text, ".e") {
			text = generalWithPoint(math.Abs(f), max(precision, 1), text)
		}
	default:
		text = strconv.FormatFloat(math.Abs(f), kind, precision, 64)
		if s.alternate && precision == 0 {
			text = addPoint(text)
		}
	}
	return s.finish(f, text)
}

// generalWithPoint is what a float without a type looks like: it always shows that it is one.
func generalWithPoint(f float64, precision int, text string) string {
	if len(text) >= precision {
		return strconv.FormatFloat(f, 'e', len(strings.TrimRight(text, "0"))-1, 64)
	}
	return text + ".0"
}

func (s *formatSpec) finish(f float64, text string) string {
	if s.group != 0 {
		text = s.grouped(text, 3, len(s.signed(math.Signbit(f), "")))
	}
	if s.kind >= 'A' && s.kind <= 'Z' {
		text = strings.ToUpper(text)
	}
	if s.kind == '%' {
		text += "%"
	}
	negative := math.Signbit(f) && !math.IsNaN(f)
	if s.noMinusZero && !strings.ContainsAny(text, "123456789i") {
		negative = false
	}
	return s.signed(negative, text)
}

// formatGeneral is C's %g.
func formatGeneral(f float64, precision int, alternate bool) string {
	if !alternate {
		return strconv.FormatFloat(f, 'g', precision, 64)
	}
	e := strconv.FormatFloat(f, 'e', precision-1, 64)
	exponent, _ := strconv.Atoi(e[strings.IndexByte(e, 'e')+1:])
	if exponent < -4 || exponent >= precision {
		return addPoint(e)
	}
	return addPoint(strconv.FormatFloat(f, 'f', precision-1-exponent, 64))
}

// addPoint adds a decimal point to a number that has none.
func addPoint(text string) string {
	if strings.IndexByte(text, '.') >= 0 {
		return text
	}
	if e := strings.IndexByte(text, 'e'); e >= 0 {
		return text[:e] + "." + text[e:]
	}
	return text + "."
}

func formatFixed(f float64, digits int) string { return strconv.FormatFloat(f, 'f', digits, 64) }
