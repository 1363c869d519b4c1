package chat

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// softString is the text of a str, or str(v) of anything else.
func (in *interp) softString(v Value) (Value, error) {
	if _, ok := asString(v); ok {
		return v, nil
	}
	s, err := in.str(v)
	return Str(s), err
}

// wantString is v as text where Python wants a str.
func wantString(v Value, what string) (string, error) {
	s, ok := asString(v)
	if !ok {
		return "", typeErrorf("%s must be str, not %s", what, v.typeName())
	}
	return s, nil
}

// wantInt is v where Python wants an int, cut off to what a sequence can have.
func wantInt(v Value) (int64, error) {
	if b, ok := v.(bigInt); ok {
		return 0, runtimeErrorf("OverflowError", "Python int too large to convert to C ssize_t (%d bits)", b.i.BitLen())
	}
	i, ok := asInt(v)
	if !ok {
		return 0, typeErrorf("'%s' object cannot be interpreted as an integer", v.typeName())
	}
	return i, nil
}

// parseInt is Python's int(s, base).
func parseInt(s string, base int64) (Value, bool) {
	if base != 0 && (base < 2 || base > 36) {
		return nil, false
	}
	s = strings.TrimFunc(s, isSpace)
	negative := strings.HasPrefix(s, "-")
	digits := strings.TrimPrefix(s, "-")
	if !negative {
		digits = strings.TrimPrefix(s, "+")
	}
	digits, base, ok := cutBase(digits, base)
	if !ok || !validUnderscores(digits) {
		return nil, false
	}
	digits = asciiDigits(strings.ReplaceAll(digits, "_", ""))
	if len(digits) > maxIntDigits {
		return nil, false
	}
	for i := range len(digits) {
		if c := digits[i]; !isDecimal(c) && !(c|0x20 >= 'a' && c|0x20 <= 'z') {
			return nil, false
		}
	}
	i, ok := new(big.Int).SetString(digits, int(base))
	if !ok {
		return nil, false
	}
	if negative {
		i.Neg(i)
	}
	return normalizeInt(i), true
}

// cutBase takes a base prefix off the digits where base allows it.
func cutBase(digits string, base int64) (string, int64, bool) {
	if len(digits) > 1 && digits[0] == '0' {
		prefixed := int64(0)
		switch digits[1] | 0x20 {
		case 'b':
			prefixed = 2
		case 'o':
			prefixed = 8
		case 'x':
			prefixed = 16
		}
		if prefixed != 0 && (base == 0 || base == prefixed) {
			return strings.TrimPrefix(digits[2:], "_"), prefixed, true
		}
	}
	if base != 0 {
		return digits, base, true
	}
	if len(digits) > 1 && digits[0] == '0' && strings.Trim(digits, "0_") != "" {
		return "", 0, false
	}
	return digits, 10, true
}

func validUnderscores(s string) bool {
	return s != "" && s[0] != '_' && s[len(s)-1] != '_' && !strings.Contains(s, "__")
}

// parseFloat is Python's float(s).
func parseFloat(s string) (float64, bool) {
	s = asciiDigits(strings.TrimFunc(s, isSpace))
	if s == "" || strings.ContainsAny(s, "xXpP") {
		return 0, false
	}
	if strings.Contains(s, "_") {
		for i := range len(s) {
			if s[i] == '_' && (i == 0 || i+1 == len(s) || !isDecimal(s[i-1]) || !isDecimal(s[i+1])) {
				return 0, false
			}
		}
		s = strings.ReplaceAll(s, "_", "")
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || math.IsInf(f, 0)
}

// floatToInt is Python's int(f).
func floatToInt(f float64) (Value, error) {
	if math.IsNaN(f) {
		return nil, valueErrorf("cannot convert float NaN to integer")
	}
	if math.IsInf(f, 0) {
		return nil, runtimeErrorf("OverflowError", "cannot convert float infinity to integer")
	}
	i, _ := big.NewFloat(f).Int(nil)
	return normalizeInt(i), nil
}

// roundFloat is Python's round(f, digits): half to even on the exact value.
func roundFloat(f float64, digits int64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) || f == 0 || digits > 323 {
		return f
	}
	if digits >= 0 {
		r, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(digits), 64), 64)
		return r
	}
	if digits < -308 {
		return math.Copysign(0, f)
	}
	i, _ := new(big.Float).SetFloat64(f).Rat(nil)
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(-digits), nil)
	q := roundHalfEven(i, unit)
	r, _ := new(big.Rat).SetInt(q.Mul(q, unit)).Float64()
	if r == 0 {
		return math.Copysign(0, f)
	}
	return r
}

// roundHalfEven is x / unit rounded to an integer, half to even.
func roundHalfEven(x *big.Rat, unit *big.Int) *big.Int {
	den := new(big.Int).Mul(x.Denom(), unit)
	q, r := new(big.Int).DivMod(x.Num(), den, new(big.Int))
	twice := r.Lsh(r, 1)
	if c := twice.Cmp(den); c > 0 || c == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	return q
}
