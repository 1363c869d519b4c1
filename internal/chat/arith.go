package chat

import (
	"math"
	"math/big"
	"math/bits"
	"strings"
)

func operandError(op string, left, right Value) error {
	if op == "**" {
		op = "** or pow()"
	}
	return typeErrorf("unsupported operand type(s) for %s: '%s' and '%s'", op, left.typeName(), right.typeName())
}

// binary is Python's left op right for + - * / // % **.
func (in *interp) binary(op string, left, right Value) (Value, error) {
	_, leftStr := asString(left)
	if leftStr && op == "%" {
		return in.percent(left, right)
	}
	if u, ok := left.(undefined); ok {
		return nil, u.error()
	}
	if u, ok := right.(undefined); ok {
		if _, safe := left.(markup); safe && op == "*" {
			return nil, typeErrorf("'Undefined' object cannot be interpreted as an integer")
		}
		return nil, u.error()
	}
	if isNumber(left) && isNumber(right) {
		return in.number(op, left, right)
	}
	switch op {
	case "+":
		return in.add(left, right)
	case "*":
		switch {
		case isSequence(left) && isInt(right):
			return in.repeat(left, right)
		case isSequence(right) && isInt(left):
			return in.repeat(right, left)
		case isSequence(left):
			return nil, typeErrorf("can't multiply sequence by non-int of type '%s'", right.typeName())
		}
	}
	return nil, operandError(op, left, right)
}

// add joins sequences.
func (in *interp) add(left, right Value) (Value, error) {
	switch l := left.(type) {
	case Str, markup:
		return in.addStrings(l, right)
	case *List:
		if r, ok := right.(*List); ok {
			items, err := in.concatItems(l.Items, r.Items)
			return &List{items}, err
		}
		return nil, typeErrorf(`can only concatenate list (not "%s") to list`, right.typeName())
	case tuple:
		if r, ok := right.(tuple); ok {
			items, err := in.concatItems(l, r)
			return tuple(items), err
		}
		return nil, typeErrorf(`can only concatenate tuple (not "%s") to tuple`, right.typeName())
	case bytesValue:
		if r, ok := right.(bytesValue); ok {
			return l + r, in.build(int64(len(l) + len(r)))
		}
	}
	return nil, operandError("+", left, right)
}

// addStrings joins two strings; next to one that is marked safe the other is escaped.
func (in *interp) addStrings(left, right Value) (Value, error) {
	r, ok := asString(right)
	if !ok {
		if _, safe := left.(markup); safe {
			return nil, operandError("+", left, right)
		}
		return nil, typeErrorf(`can only concatenate str (not "%s") to str`, right.typeName())
	}
	l, _ := asString(left)
	_, leftSafe := left.(markup)
	_, rightSafe := right.(markup)
	switch {
	case leftSafe && !rightSafe:
		m, err := in.escapeText(r)
		if err != nil {
			return nil, err
		}
		r = string(m)
	case rightSafe && !leftSafe:
		m, err := in.escapeText(l)
		if err != nil {
			return nil, err
		}
		l = string(m)
	}
	s, err := in.joinStrings([]string{l, r}, "")
	if leftSafe || rightSafe {
		return markup(s), err
	}
	return Str(s), err
}

func (in *interp) concatItems(a, b []Value) ([]Value, error) {
	if err := in.build(int64(len(a)+len(b)) * elementBytes); err != nil {
		return nil, err
	}
	return append(append(make([]Value, 0, len(a)+len(b)), a...), b...), nil
}

func isSequence(v Value) bool {
	switch v.(type) {
	case Str, markup, bytesValue, *List, tuple:
		return true
	}
	return false
}

func isInt(v Value) bool { return isNumber(v) && v.typeName() != "float" }

// repeat is a sequence times an int.
func (in *interp) repeat(seq, times Value) (Value, error) {
	n, ok := asInt(times)
	if !ok {
		return nil, runtimeErrorf("OverflowError", "cannot fit 'int' into an index-sized integer")
	}
	var size int64
	switch s := seq.(type) {
	case Str:
		size = int64(len(s))
	case markup:
		size = int64(len(s))
	case bytesValue:
		size = int64(len(s))
	case *List:
		size = int64(len(s.Items)) * elementBytes
	case tuple:
		size = int64(len(s)) * elementBytes
	}
	if size == 0 || n <= 0 {
		size, n = 0, 0
	}
	hi, total := bits.Mul64(uint64(size), uint64(n))
	if hi != 0 || total > math.MaxInt64 {
		return nil, &LimitError{What: "bytes built", Limit: in.limits.BuiltBytes}
	}
	if err := in.build(int64(total)); err != nil {
		return nil, err
	}
	switch s := seq.(type) {
	case *List:
		return &List{repeatItems(s.Items, n)}, nil
	case tuple:
		return tuple(repeatItems(s, n)), nil
	case bytesValue:
		return bytesValue(strings.Repeat(string(s), int(n))), nil
	}
	s, _ := asString(seq)
	return like(seq, strings.Repeat(s, int(n))), nil
}

func repeatItems(items []Value, n int64) []Value {
	out := make([]Value, 0, int64(len(items))*n)
	for range n {
		out = append(out, items...)
	}
	return out
}

// number is arithmetic on two numbers.
func (in *interp) number(op string, left, right Value) (Value, error) {
	_, leftFloat := left.(Float)
	_, rightFloat := right.(Float)
	if leftFloat || rightFloat {
		l, r, err := bothFloats(left, right)
		if err != nil {
			return nil, err
		}
		return floatArith(op, l, r)
	}
	if l, ok := asInt(left); ok {
		if r, ok := asInt(right); ok {
			if v, ok := smallArith(op, l, r); ok {
				return v, nil
			}
		}
	}
	l, _ := asBig(left)
	r, _ := asBig(right)
	if op == "*" && l.BitLen()+r.BitLen() > maxIntBits {
		return nil, intTooLarge()
	}
	if err := in.scan(l.BitLen() + r.BitLen()); err != nil {
		return nil, err
	}
	return bigArith(op, l, r)
}

func intTooLarge() error { return &LimitError{What: "bits in an int", Limit: maxIntBits} }

func bothFloats(left, right Value) (l, r float64, err error) {
	l, _ = asFloat(left)
	r, _ = asFloat(right)
	_, bigLeft := left.(bigInt)
	_, bigRight := right.(bigInt)
	if bigLeft && math.IsInf(l, 0) || bigRight && math.IsInf(r, 0) {
		return 0, 0, runtimeErrorf("OverflowError", "int too large to convert to float")
	}
	return l, r, nil
}

// smallArith handles what fits 64 bits and is no error; ok is false otherwise.
func smallArith(op string, l, r int64) (Value, bool) {
	switch op {
	case "+":
		s := l + r
		return Int(s), (s > l) == (r > 0)
	case "-":
		s := l - r
		return Int(s), (s < l) == (r > 0)
	case "*":
		if l == 0 || r == 0 {
			return Int(0), true
		}
		s := l * r
		return Int(s), s/r == l && !(l == -1 && r == math.MinInt64) && !(r == -1 && l == math.MinInt64)
	}
	return nil, false
}

func zeroDivision(msg string) error { return runtimeErrorf("ZeroDivisionError", "%s", msg) }

func bigArith(op string, l, r *big.Int) (Value, error) {
	out := new(big.Int)
	switch op {
	case "+":
		out.Add(l, r)
	case "-":
		out.Sub(l, r)
	case "*":
		out.Mul(l, r)
	case "/":
		if r.Sign() == 0 {
			return nil, zeroDivision("division by zero")
		}
		f, _ := new(big.Rat).SetFrac(l, r).Float64()
		if l.Sign() == 0 && r.Sign() < 0 {
			f = math.Copysign(0, -1)
		}
		if math.IsInf(f, 0) {
			return nil, runtimeErrorf("OverflowError", "integer division result too large for a float")
		}
		return Float(f), nil
	case "//", "%":
		if r.Sign() == 0 {
			return nil, zeroDivision("integer division or modulo by zero")
		}
		quotient, rest := new(big.Int).QuoRem(l, r, new(big.Int))
		if rest.Sign() != 0 && (rest.Sign() < 0) != (r.Sign() < 0) {
			quotient.Sub(quotient, big.NewInt(1))
			rest.Add(rest, r)
		}
		if op == "%" {
			return normalizeInt(rest), nil
		}
		return normalizeInt(quotient), nil
	case "**":
		return bigPower(l, r)
	}
	if out.BitLen() > maxIntBits {
		return nil, intTooLarge()
	}
	return normalizeInt(out), nil
}

func bigPower(base, exponent *big.Int) (Value, error) {
	if exponent.Sign() < 0 {
		l, r, err := bothFloats(bigInt{base}, bigInt{exponent})
		if err != nil {
			return nil, err
		}
		return floatPower(l, r)
	}
	if base.BitLen() > 1 && (!exponent.IsInt64() || exponent.Int64() > maxIntBits || int64(base.BitLen()-1)*exponent.Int64() > maxIntBits) {
		return nil, intTooLarge()
	}
	if base.BitLen() <= 1 { // 0, 1 or -1
		if exponent.Sign() == 0 {
			return Int(1), nil
		}
		if base.Sign() < 0 && exponent.Bit(0) == 0 {
			return Int(1), nil
		}
		return normalizeInt(base), nil
	}
	return normalizeInt(new(big.Int).Exp(base, exponent, nil)), nil
}

func floatArith(op string, l, r float64) (Value, error) {
	switch op {
	case "+":
		return Float(l + r), nil
	case "-":
		return Float(l - r), nil
	case "*":
		return Float(l * r), nil
	case "**":
		return floatPower(l, r)
	}
	if r == 0 {
		switch op {
		case "/":
			return nil, zeroDivision("float division by zero")
		case "//":
			return nil, zeroDivision("float floor division by zero")
		default:
			return nil, zeroDivision("float modulo")
		}
	}
	if op == "/" {
		return Float(l / r), nil
	}
	quotient, rest := floatDivMod(l, r)
	if op == "%" {
		return Float(rest), nil
	}
	return Float(quotient), nil
}

// floatDivMod is Python's divmod of floats: the rest has the sign of the divisor.
func floatDivMod(l, r float64) (quotient, rest float64) {
	rest = math.Mod(l, r)
	div := (l - rest) / r
	if rest != 0 {
		if (r < 0) != (rest < 0) {
			rest += r
			div--
		}
	} else {
		rest = math.Copysign(0, r)
	}
	if div == 0 {
		return math.Copysign(0, l/r), rest
	}
	quotient = math.Floor(div)
	if div-quotient > 0.5 {
		quotient++
	}
	return quotient, rest
}

func floatPower(l, r float64) (Value, error) {
	if l == 0 && r < 0 {
		return nil, zeroDivision("0.0 cannot be raised to a negative power")
	}
	if l < 0 && r != math.Trunc(r) && !math.IsInf(l, 0) && !math.IsInf(r, 0) {
		return nil, runtimeErrorf("NotImplementedError", "complex numbers are not supported")
	}
	f := power(l, r)
	if math.IsInf(f, 0) && !math.IsInf(l, 0) && !math.IsInf(r, 0) {
		return nil, runtimeErrorf("OverflowError", "(34, 'Numerical result out of range')")
	}
	return Float(f), nil
}

// unary is Python's +v and -v.
func (in *interp) unary(op string, v Value) (Value, error) {
	switch v := v.(type) {
	case undefined:
		return nil, v.error()
	case Float:
		if op == "-" {
			return -v, nil
		}
		return v, nil
	}
	i, ok := asBig(v)
	if !ok {
		return nil, typeErrorf("bad operand type for unary %s: '%s'", op, v.typeName())
	}
	if op == "-" {
		i = new(big.Int).Neg(i)
	}
	return normalizeInt(i), nil
}

// power is l to the power of r. Where r is a whole number or a half it is rounded correctly, which math.Pow is not.
func power(l, r float64) float64 {
	twice := r * 2
	if l <= 0 || math.IsInf(l, 0) || math.IsNaN(l) || twice != math.Trunc(twice) || math.Abs(twice) > 2048 {
		return math.Pow(l, r)
	}
	const precision = 256
	base := new(big.Float).SetPrec(precision).SetFloat64(l)
	if math.Mod(twice, 2) != 0 {
		base.Sqrt(base)
	} else {
		twice /= 2
	}
	out := new(big.Float).SetPrec(precision).SetInt64(1)
	for n := int(math.Abs(twice)); n > 0; n >>= 1 {
		if n&1 == 1 {
			out.Mul(out, base)
		}
		base.Mul(base, base)
	}
	if twice < 0 {
		out.Quo(new(big.Float).SetPrec(precision).SetInt64(1), out)
	}
	f, _ := out.Float64()
	return f
}
