package chat

import (
	"math"
	"math/big"
)

// valueFilters convert and inspect single values.
func valueFilters() map[string]*native {
	return map[string]*native{
		"abs":            fn("/ x", filterAbs),
		"attr":           fn("obj name", filterAttr),
		"count":          fn("/ obj", filterLength),
		"length":         fn("/ obj", filterLength),
		"d":              fn("value default_value? boolean?", filterDefault),
		"default":        fn("value default_value? boolean?", filterDefault),
		"filesizeformat": fn("value binary?", filterFileSize),
		"float":          fn("value default?", filterFloat),
		"int":            fn("value default? base?", filterInt),
		"items":          fn("value", filterItems),
		"pprint":         unsupported("the pprint filter"),
		"random":         unsupported("the random filter"),
		"round":          fn("value precision? method?", filterRound),
		"tojson":         fn("x ensure_ascii? indent? separators? sort_keys?", tojson),
	}
}

func filterAbs(in *interp, a *arguments) (Value, error) {
	switch v := a.v[0].(type) {
	case Float:
		return Float(math.Abs(float64(v))), nil
	case Int, Bool, bigInt:
		i, _ := asBig(v)
		return normalizeInt(new(big.Int).Abs(i)), nil
	}
	return nil, typeErrorf("bad operand type for abs(): '%s'", a.v[0].typeName())
}

func filterAttr(in *interp, a *arguments) (Value, error) {
	name, err := wantString(a.v[1], "attribute name")
	if err != nil {
		return nil, err
	}
	v, ok, err := in.pythonAttribute(a.v[0], name)
	if err != nil || ok {
		return v, err
	}
	return undefined{obj: a.v[0], name: Str(name)}, nil
}

func filterLength(in *interp, a *arguments) (Value, error) {
	n, err := in.length(a.v[0])
	return Int(n), err
}

func filterDefault(_ *interp, a *arguments) (Value, error) {
	v := a.v[0]
	if isUndefined(v) || truth(a.or(2, Bool(false))) && !truth(v) {
		return a.or(1, Str("")), nil
	}
	return v, nil
}

func filterFileSize(_ *interp, a *arguments) (Value, error) {
	size, err := toFloat(a.v[0])
	if err != nil {
		return nil, err
	}
	return Str(fileSize(size, truth(a.or(1, Bool(false))))), nil
}

func fileSize(size float64, binary bool) string {
	base, suffix, kilo := 1000.0, "B", "k"
	if binary {
		base, suffix, kilo = 1024, "iB", "K"
	}
	if size == 1 {
		return "1 Byte"
	}
	if size < base {
		i, err := floatToInt(size)
		if err != nil {
			return "nan Bytes"
		}
		return shortRepr(i) + " Bytes"
	}
	unit := base * base
	prefix := ""
	for _, prefix = range []string{kilo, "M", "G", "T", "P", "E", "Z", "Y"} {
		if size < unit || prefix == "Y" {
			break
		}
		unit *= base
	}
	return formatFixed(base*size/unit, 1) + " " + prefix + suffix
}

// toFloat is Python's float(v).
func toFloat(v Value) (float64, error) {
	if u, ok := v.(undefined); ok {
		return 0, u.error()
	}
	if s, ok := asString(v); ok {
		f, ok := parseFloat(s)
		if !ok {
			return 0, valueErrorf("could not convert string to float: %s", reprString(s))
		}
		return f, nil
	}
	if !isNumber(v) {
		return 0, typeErrorf("float() argument must be a string or a real number, not '%s'", v.typeName())
	}
	f, _, err := bothFloats(v, Float(0))
	return f, err
}

// toInt is Python's int(v).
func toInt(v Value) (Value, error) {
	switch v := v.(type) {
	case undefined:
		return nil, v.error()
	case Float:
		return floatToInt(float64(v))
	case Str, markup:
		s, _ := asString(v)
		i, ok := parseInt(s, 10)
		if !ok {
			return nil, valueErrorf("invalid literal for int() with base 10: %s", reprString(s))
		}
		return i, nil
	}
	i, ok := asBig(v)
	if !ok {
		return nil, typeErrorf("int() argument must be a string, a bytes-like object or a real number, not '%s'", v.typeName())
	}
	return normalizeInt(i), nil
}

func filterFloat(_ *interp, a *arguments) (Value, error) {
	f, err := toFloat(a.v[0])
	switch errorType(err) {
	case "TypeError", "ValueError":
		return a.or(1, Float(0)), nil
	}
	return Float(f), err
}

func filterInt(_ *interp, a *arguments) (Value, error) {
	def := a.or(1, Int(0))
	var v Value
	var err error
	if s, ok := asString(a.v[0]); ok {
		base, isInt := asInt(a.or(2, Int(10)))
		v, ok = parseInt(s, base)
		if ok && isInt {
			return v, nil
		}
		err = valueErrorf("invalid literal")
	} else {
		v, err = toInt(a.v[0])
	}
	switch errorType(err) {
	case "TypeError", "ValueError":
	default:
		return v, err
	}
	f, err := toFloat(a.v[0])
	if err != nil {
		return def, nil
	}
	if v, err = floatToInt(f); err != nil {
		return def, nil
	}
	return v, nil
}

func filterItems(_ *interp, a *arguments) (Value, error) {
	switch v := a.v[0].(type) {
	case *Dict:
		return &generator{typ: "generator", next: dictView{"items", v}.iterate()}, nil
	case undefined:
		return &generator{typ: "generator", next: sliceIterator(nil)}, nil
	}
	// Python says so when the items are first asked for, which a printed generator never does.
	return &generator{typ: "generator", next: func() (Value, bool, error) {
		return nil, false, typeErrorf("Can only get item pairs from a mapping.")
	}}, nil
}

func filterRound(in *interp, a *arguments) (Value, error) {
	method, _ := asString(a.or(2, Str("common")))
	if method != "common" && method != "ceil" && method != "floor" {
		return nil, runtimeErrorf("FilterArgumentError", "method must be common, ceil or floor")
	}
	v, precision := a.v[0], a.or(1, Int(0))
	if method == "common" {
		return pythonRound(v, precision)
	}
	scale, err := in.binary("**", Int(10), precision)
	if err != nil {
		return nil, err
	}
	scaled, err := in.binary("*", v, scale)
	if err != nil {
		return nil, err
	}
	f, isFloat := scaled.(Float)
	whole := scaled
	if isFloat {
		if method == "ceil" {
			f = Float(math.Ceil(float64(f)))
		} else {
			f = Float(math.Floor(float64(f)))
		}
		if whole, err = floatToInt(float64(f)); err != nil {
			return nil, err
		}
	} else if !isNumber(scaled) {
		return nil, typeErrorf("must be real number, not %s", scaled.typeName())
	}
	return in.binary("/", whole, scale)
}

// pythonRound is Python's round(v, precision).
func pythonRound(v, precision Value) (Value, error) {
	if !isNumber(v) {
		return nil, typeErrorf("type %s doesn't define __round__ method", v.typeName())
	}
	f, isFloat := v.(Float)
	if _, none := precision.(None); none {
		if !isFloat {
			return toInt(v)
		}
		if math.IsInf(float64(f), 0) || math.IsNaN(float64(f)) {
			return floatToInt(float64(f))
		}
		return floatToInt(math.RoundToEven(float64(f)))
	}
	digits, ok := asInt(precision)
	if !ok {
		return nil, typeErrorf("'%s' object cannot be interpreted as an integer", precision.typeName())
	}
	if isFloat {
		return Float(roundFloat(float64(f), digits)), nil
	}
	i, _ := asBig(v)
	if digits >= 0 {
		return normalizeInt(i), nil
	}
	if digits < -maxIntDigits*5 {
		return Int(0), nil
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(-digits), nil)
	q := roundHalfEven(new(big.Rat).SetInt(i), unit)
	return normalizeInt(q.Mul(q, unit)), nil
}
